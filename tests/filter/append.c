/* SPDX-License-Identifier: BSL-1.0 */
/*
 * Opens a file, doubles the length of its dataset "camera", and writes the new half:
 *
 *   append FILE load     with zarrbits_hdf5_load(), as docs/guide/hdf5.md says
 *   append FILE          without
 */
#include <zarrbits/hdf5.h>

#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : exit(__LINE__ % 200 + 1))

int main(int argc, char** argv) {
  hsize_t start = 0, count = 0, size = 0;
  unsigned short* values = NULL;
  hid_t file, d, space, memory;
  CHECK(argc > 1);
  if (argc > 2) CHECK(zarrbits_hdf5_load() >= 0);
  file = H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT);
  d = H5Dopen2(file, "camera", H5P_DEFAULT);
  space = H5Dget_space(d);
  CHECK(H5Sget_simple_extent_dims(space, &start, NULL) == 1);
  H5Sclose(space);
  count = start;
  size = start + count;
  CHECK(H5Dset_extent(d, &size) >= 0);
  space = H5Dget_space(d);
  memory = H5Screate_simple(1, &count, NULL);
  values = (unsigned short*)malloc((size_t)count * sizeof *values);
  for (hsize_t i = 0; i < count; ++i) values[i] = (unsigned short)((start + i) & 0xFFF);
  CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0);
  CHECK(H5Dwrite(d, H5T_NATIVE_USHORT, memory, space, H5P_DEFAULT, values) >= 0);
  free(values);
  H5Sclose(memory);
  H5Sclose(space);
  CHECK(H5Dclose(d) >= 0);
  CHECK(H5Fclose(file) >= 0);
  return 0;
}
