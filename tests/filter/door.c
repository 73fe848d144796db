/* SPDX-License-Identifier: BSL-1.0 */
/*
 * What a C program does: <zarrbits/hdf5.h>, the plugins found by HDF5_PLUGIN_PATH alone. Compiled as C99; linked to the shared
 * libhdf5 and, with -rdynamic, to the static one.
 */
#include <zarrbits/hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

static void fail(int line, const char* condition) {
  H5Eprint2(H5E_DEFAULT, stderr);
  fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition);
  exit(1);
}

static herr_t find_ours(unsigned n, const H5E_error2_t* e, void* data) {
  (void)n;
  if (e->desc && strncmp(e->desc, "zarrbits: ", 10) == 0) *(const char**)data = "found";
  return 0;
}

static int our_sentence_is_there(void) {
  const char* found = NULL;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_ours, &found);
  return found != NULL;
}

static hid_t create(hid_t file, const char* name, hid_t type, hid_t dcpl, hsize_t n) {
  const hid_t space = H5Screate_simple(1, &n, NULL);
  const hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  H5Sclose(space);
  return d;
}

/* the functions of <zarrbits/hdf5.h> set the filters as optional, and so they are in the file */
static int is_optional(hid_t dcpl, H5Z_filter_t id) {
  unsigned flags = 99;
  size_t n = 0;
  return H5Pget_filter_by_id2(dcpl, id, &flags, &n, NULL, 0, NULL, NULL) >= 0 && flags == H5Z_FLAG_OPTIONAL;
}

static int is_optional_in_the_file(hid_t d, H5Z_filter_t id) {
  const hid_t dcpl = H5Dget_create_plist(d);
  const int optional = is_optional(dcpl, id);
  H5Pclose(dcpl);
  return optional;
}

static void packs_twelve_bits(hid_t file) {
  const hsize_t chunk = 4, origin[1] = {0};
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  const unsigned short written[8] = {0xABC, 0x123, 0xFFF, 0, 1, 2, 0x1000, 3};
  /* 0x123ABC and 0x000FFF as two little-endian numbers of 24 bits */
  const unsigned char packed[6] = {0xBC, 0x3A, 0x12, 0xFF, 0x0F, 0x00};
  const hsize_t second[1] = {4};
  unsigned short back[8] = {0};
  unsigned char stored[64];
  unsigned mask = 99;
  hsize_t size = 0;
  hid_t d;

  CHECK(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
  CHECK(H5Pset_zarrbits_packbits(dcpl, 12, ZARRBITS_HDF5_PADDING_NONE | ZARRBITS_HDF5_RANGE_RAW, 0) >= 0);
  CHECK(is_optional(dcpl, ZARRBITS_HDF5_PACKBITS_ID));
  d = create(file, "camera", H5T_STD_U16LE, dcpl, 8);
  CHECK(d >= 0);
  CHECK(H5Dwrite(d, H5T_NATIVE_USHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written) >= 0);
  CHECK(H5Dflush(d) >= 0);
  CHECK(H5Dget_chunk_storage_size(d, origin, &size) >= 0 && size == 6);
  CHECK(H5Dread_chunk(d, H5P_DEFAULT, origin, &mask, stored) >= 0 && mask == 0 && memcmp(stored, packed, 6) == 0);
  /* the chunk with 0x1000 is there as it is */
  CHECK(H5Dget_chunk_storage_size(d, second, &size) >= 0 && size == 8);
  CHECK(H5Dread_chunk(d, H5P_DEFAULT, second, &mask, stored) >= 0 && mask == 0 && memcmp(stored, written + 4, 8) == 0);
  CHECK(H5Dclose(d) >= 0);
  d = H5Dopen2(file, "camera", H5P_DEFAULT);
  CHECK(is_optional_in_the_file(d, ZARRBITS_HDF5_PACKBITS_ID));
  CHECK(H5Dread(d, H5T_NATIVE_USHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
  CHECK(memcmp(back, written, sizeof written) == 0);
  CHECK(H5Dclose(d) >= 0);
  H5Pclose(dcpl);
}

static void refuses_damaged_chunks(hid_t file) {
  const hsize_t chunk = 1000, origin[1] = {0};
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  static unsigned char noise[4000], back[1000];
  size_t size;
  hid_t d;
  CHECK(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
  CHECK(H5Pset_zarrbits_packbits(dcpl, 3, ZARRBITS_HDF5_PADDING_LAST_BYTE, 0) >= 0);
  d = create(file, "damaged", H5T_STD_U8LE, dcpl, 1000);
  CHECK(d >= 0);
  memset(noise, 0x5A, sizeof noise);
  /* 375 bytes of payload and a count byte of 0 are right; 0x5A is not a count of padding bits */
  for (size = 1; size <= 4000; size = size < 380 ? size + 1 : size * 2) {
    CHECK(H5Dwrite_chunk(d, H5P_DEFAULT, 0, origin, size, noise) >= 0);
    CHECK(H5Dread(d, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) < 0);
    CHECK(our_sentence_is_there());
  }
  noise[375] = 0;
  CHECK(H5Dwrite_chunk(d, H5P_DEFAULT, 0, origin, 376, noise) >= 0);
  CHECK(H5Dread(d, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
  CHECK(back[0] == (0x5A & 7));
  CHECK(H5Dclose(d) >= 0);
  H5Pclose(dcpl);
}

static void writes_big_endian_bytes(hid_t file) {
  const hsize_t chunk = 2, origin[1] = {0};
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  const unsigned written[2] = {0x01020304, 0x05060708};
  const unsigned char wanted[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  unsigned char stored[8];
  unsigned mask = 99, back[2] = {0, 0};
  hid_t d;
  CHECK(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
  CHECK(H5Pset_zarrbits_bytes(dcpl, 1) >= 0);
  CHECK(is_optional(dcpl, ZARRBITS_HDF5_BYTES_ID));
  d = create(file, "bytes", H5T_STD_U32LE, dcpl, 2);
  CHECK(d >= 0);
  CHECK(H5Dwrite(d, H5T_NATIVE_UINT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written) >= 0);
  CHECK(H5Dclose(d) >= 0);
  d = H5Dopen2(file, "bytes", H5P_DEFAULT);
  CHECK(is_optional_in_the_file(d, ZARRBITS_HDF5_BYTES_ID));
  CHECK(H5Dread_chunk(d, H5P_DEFAULT, origin, &mask, stored) >= 0 && mask == 0 && memcmp(stored, wanted, 8) == 0);
  CHECK(H5Dread(d, H5T_NATIVE_UINT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0 && memcmp(back, written, 8) == 0);
  CHECK(H5Dclose(d) >= 0);
  H5Pclose(dcpl);
}

static void says_why_it_refuses(hid_t file) {
  const hsize_t n = 4;
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, NULL);
  CHECK(H5Pset_chunk(dcpl, 1, &n) >= 0);
  CHECK(H5Pset_zarrbits_packbits(dcpl, 17, 0, 0) >= 0);
  CHECK(H5Dcreate2(file, "refused", H5T_STD_U16LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT) < 0);
  CHECK(our_sentence_is_there());
  H5Sclose(space);
  H5Pclose(dcpl);
}

/* without the plugin an optional filter would be left out in silence */
static int says_that_the_plugin_is_missing(void) {
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t n = 4;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  CHECK(H5Pset_chunk(dcpl, 1, &n) >= 0);
  CHECK(H5Pset_zarrbits_packbits(dcpl, 12, 0, 0) < 0);
  CHECK(our_sentence_is_there());
  CHECK(H5Pset_zarrbits_bytes(dcpl, 0) < 0);
  CHECK(H5Pget_nfilters(dcpl) == 0);
  puts("door: missing plugins are reported");
  return 0;
}

int main(int argc, char** argv) {
  hid_t file;
  const char* path = argc > 1 ? argv[1] : "door.h5";
  if (argc > 1 && strcmp(argv[1], "--missing") == 0) return says_that_the_plugin_is_missing();
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(file >= 0);
  packs_twelve_bits(file);
  refuses_damaged_chunks(file);
  writes_big_endian_bytes(file);
  says_why_it_refuses(file);
  CHECK(H5Fclose(file) >= 0);
  puts("door: 0 failures");
  return 0;
}
