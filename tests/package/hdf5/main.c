/* SPDX-License-Identifier: BSL-1.0 */
/* A C program outside of zarrbits packs a dataset through the installed plugin, which it finds by HDF5_PLUGIN_PATH. */
#include <stdio.h>
#include <string.h>
#include <zarrbits/hdf5.h>

int main(void) {
  unsigned short pixels[1000], back[1000];
  hsize_t shape[1] = {1000}, chunk[1] = {1000}, stored = 0;
  for (int i = 0; i < 1000; ++i) pixels[i] = (unsigned short)(i * 4 + 1);

  hid_t file = H5Fcreate("packed.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(1, shape, NULL);
  hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(dcpl, 1, chunk);
  if (H5Pset_zarrbits_packbits(dcpl, 12, ZARRBITS_HDF5_PADDING_NONE, 0) < 0) return 1;
  hid_t d = H5Dcreate2(file, "pixels", H5T_STD_U16LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  if (d < 0 || H5Dwrite(d, H5T_NATIVE_USHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels) < 0) return 1;
  H5Dclose(d);
  H5Fclose(file);

  file = H5Fopen("packed.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  d = H5Dopen2(file, "pixels", H5P_DEFAULT);
  if (d < 0 || H5Dread(d, H5T_NATIVE_USHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) < 0) return 1;
  stored = H5Dget_storage_size(d);
  printf("1000 pixels in %lu bytes\n", (unsigned long)stored);
  return stored == 1500 && memcmp(pixels, back, sizeof pixels) == 0 ? 0 : 1;
}
