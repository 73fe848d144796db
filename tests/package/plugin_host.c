/* SPDX-License-Identifier: BSL-1.0 */
/*
 * The golden vectors through what the wheel zarrbits-plugins has, where no Python is at hand: a program for any system whose
 * compiler is zig. It links nothing, and loads the libhdf5 that it is given, which loads the plugins.
 *
 *   plugin_host LIBHDF5 PLUGINS LIBZARRBITS VECTORS FILE.h5
 *
 * tests/package/plugin_wheels.py writes VECTORS, a line each, words separated by tabs, bytes in hexadecimal or "-":
 *   codec JSON TYPE ELEMENTS DECODED ENCODED STAGE WRONG   STAGE: both, encode, decode or configure: what is tried; WRONG: 1 if
 * it has to be refused filter ID VALUES TYPE SIZE ELEMENTS DECODED ENCODED    VALUES: cd_values with commas; TYPE: a variable of
 * libhdf5, or bool
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
static void* load(const char* path) { return (void*)LoadLibraryExA(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH); }
static void* symbol(void* library, const char* name) { return (void*)(uintptr_t)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>
static void* load(const char* path) { return dlopen(path, RTLD_NOW); }
static void* symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

typedef int64_t hid;
typedef uint64_t hsize;

static void stop(const char* what, const char* which) {
  fprintf(stderr, "plugin_host: %s: %.300s\n", what, which);
  exit(1);
}

static void* need(void* library, const char* name) {
  void* found = symbol(library, name);
  if (!found) stop("there is no symbol", name);
  return found;
}

/* a function of the library, as a variable of its own name; looked for once, because that takes time in an emulator */
#define FUNCTION(library, result, name, parameters) \
  static result(*name) parameters = NULL;           \
  if (!name) name = (result(*) parameters)(uintptr_t)need(library, #name)

static size_t bytes_of(const char* text, unsigned char** out) {
  const size_t size = strcmp(text, "-") == 0 ? 0 : strlen(text) / 2;
  *out = malloc(size + 1); /* of its own, so that nothing is beside it */
  for (size_t i = 0; i < size; ++i) {
    unsigned value = 0;
    if (sscanf(text + 2 * i, "%2x", &value) != 1) stop("these are not bytes", text);
    (*out)[i] = (unsigned char)value;
  }
  return size;
}

static void* library = NULL;

static void check_codec(char** word, const char* line) {
  FUNCTION(library, void*, zarrbits_make_codec, (const char*, const char*, char*, size_t));
  FUNCTION(library, void, zarrbits_free_codec, (void*));
  FUNCTION(library, int, zarrbits_encoded_size, (const void*, uint64_t, uint64_t*));
  FUNCTION(library, int, zarrbits_encode, (const void*, const void*, size_t, void*, size_t, uint64_t*));
  FUNCTION(library, int, zarrbits_decode, (const void*, const void*, size_t, void*, size_t, uint64_t*));
  char reason[500] = "";
  void* codec = zarrbits_make_codec(word[1], word[2], reason, sizeof reason);
  const char* stage = word[6];
  const int wrong = atoi(word[7]);
  if (strcmp(stage, "configure") == 0) {
    if (codec || !*reason) stop("a codec was made of", line);
    return;
  }
  if (!codec) stop(reason, line);
  unsigned char *decoded, *encoded;
  const size_t decoded_size = bytes_of(word[4], &decoded), encoded_size = bytes_of(word[5], &encoded);
  if (strcmp(stage, "decode") != 0) {
    uint64_t size = 0;
    if (zarrbits_encoded_size(codec, strtoull(word[3], NULL, 10), &size) != 0) stop("the chunk is too large", line);
    unsigned char* made = malloc((size_t)size + 1);
    const int result = zarrbits_encode(codec, decoded, decoded_size, made, (size_t)size, NULL);
    if ((result == 0) == wrong) stop(wrong ? "this was encoded" : "this was not encoded", line);
    if (!wrong && ((size_t)size != encoded_size || memcmp(made, encoded, encoded_size) != 0))
      stop("the chunk is another one", line);
    free(made);
  }
  if (strcmp(stage, "encode") != 0) {
    unsigned char* back = malloc(decoded_size + 1);
    const int result = zarrbits_decode(codec, encoded, encoded_size, back, decoded_size, NULL);
    if ((result == 0) == wrong) stop(wrong ? "this was decoded" : "this was not decoded", line);
    if (!wrong && memcmp(back, decoded, decoded_size) != 0) stop("the elements are others", line);
    free(back);
  }
  free(decoded);
  free(encoded);
  zarrbits_free_codec(codec);
}

static void* hdf5 = NULL;
static hid file = -1;

static hid type_of(const char* name) {
  FUNCTION(hdf5, hid, H5Tcopy, (hid));
  FUNCTION(hdf5, hid, H5Tenum_create, (hid));
  FUNCTION(hdf5, int, H5Tenum_insert, (hid, const char*, const void*));
  if (strcmp(name, "bool") != 0) return H5Tcopy(*(const hid*)need(hdf5, name));
  const signed char no = 0, yes = 1;
  const hid type = H5Tenum_create(*(const hid*)need(hdf5, "H5T_STD_I8LE_g"));
  if (H5Tenum_insert(type, "FALSE", &no) < 0 || H5Tenum_insert(type, "TRUE", &yes) < 0) stop("the type cannot be made", name);
  return type;
}

/* Both directions, each by the filter on one side and without it on the other. */
static void check_filter(char** word, const char* line) {
  FUNCTION(hdf5, hid, H5Pcreate, (hid));
  FUNCTION(hdf5, int, H5Pset_chunk, (hid, int, const hsize*));
  FUNCTION(hdf5, int, H5Pset_filter, (hid, int, unsigned, size_t, const unsigned*));
  FUNCTION(hdf5, int, H5Pclose, (hid));
  FUNCTION(hdf5, hid, H5Screate_simple, (int, const hsize*, const hsize*));
  FUNCTION(hdf5, int, H5Sclose, (hid));
  FUNCTION(hdf5, int, H5Tclose, (hid));
  FUNCTION(hdf5, hid, H5Dcreate2, (hid, const char*, hid, hid, hid, hid, hid));
  FUNCTION(hdf5, int, H5Dwrite, (hid, hid, hid, hid, hid, const void*));
  FUNCTION(hdf5, int, H5Dread, (hid, hid, hid, hid, hid, void*));
  FUNCTION(hdf5, int, H5Dflush, (hid));
  FUNCTION(hdf5, int, H5Dget_chunk_storage_size, (hid, const hsize*, hsize*));
  FUNCTION(hdf5, int, H5Dwrite_chunk, (hid, hid, uint32_t, const hsize*, size_t, const void*));
  FUNCTION(hdf5, int, H5Dclose, (hid));
  /* 2.0 has two of them, and the older one under a name of its own */
  static int (*read_chunk)(hid, hid, const hsize*, uint32_t*, void*) = NULL;
  if (!read_chunk) {
    void* found = symbol(hdf5, "H5Dread_chunk1");
    read_chunk = (int (*)(hid, hid, const hsize*, uint32_t*, void*))(uintptr_t)(found ? found : need(hdf5, "H5Dread_chunk"));
  }
  static unsigned number = 0;
  unsigned values[8] = {0};
  size_t count = 0;
  for (char* at = word[2]; *at && count < 8; at += *at == ',') values[count++] = (unsigned)strtoul(at, &at, 10);
  const hsize elements = strtoull(word[5], NULL, 10), zero = 0;
  const size_t whole = (size_t)elements * strtoull(word[4], NULL, 10);
  unsigned char *decoded, *encoded, *other = malloc(whole + 4096);
  const size_t decoded_size = bytes_of(word[6], &decoded), encoded_size = bytes_of(word[7], &encoded);
  if (decoded_size != whole) stop("the sizes differ", line);

  const hid type = type_of(word[3]), space = H5Screate_simple(1, &elements, NULL);
  const hid list = H5Pcreate(*(const hid*)need(hdf5, "H5P_CLS_DATASET_CREATE_ID_g"));
  if (H5Pset_chunk(list, 1, &elements) < 0 || H5Pset_filter(list, atoi(word[1]), 1, count, values) < 0) stop("the filter", line);
  hid sets[2];
  for (int i = 0; i < 2; ++i) {
    char name[20];
    snprintf(name, sizeof name, "%u", number++);
    sets[i] = H5Dcreate2(file, name, type, space, 0, list, 0);
    if (sets[i] < 0) stop("the dataset cannot be made", line);
  }
  uint32_t mask = 7;
  hsize stored = 0;
  if (H5Dwrite(sets[0], type, 0, 0, 0, decoded) < 0 || H5Dflush(sets[0]) < 0) stop("the write failed", line);
  if (H5Dget_chunk_storage_size(sets[0], &zero, &stored) < 0 || stored != encoded_size) stop("the chunk has another size", line);
  if (read_chunk(sets[0], 0, &zero, &mask, other) < 0 || mask != 0) stop("the chunk is not packed", line);
  if (memcmp(other, encoded, encoded_size) != 0) stop("the chunk in the file is another one", line);
  memset(other, 0xEE, whole);
  if (H5Dwrite_chunk(sets[1], 0, 0, &zero, encoded_size, encoded) < 0) stop("the chunk cannot be written", line);
  if (H5Dread(sets[1], type, 0, 0, 0, other) < 0 || memcmp(other, decoded, whole) != 0) stop("the values read are others", line);
  if (H5Dclose(sets[0]) < 0 || H5Dclose(sets[1]) < 0 || H5Pclose(list) < 0 || H5Sclose(space) < 0 || H5Tclose(type) < 0)
    stop("closing failed", line);
  free(decoded);
  free(encoded);
  free(other);
}

int main(int argc, char** argv) {
  if (argc != 6) stop("arguments", "LIBHDF5 PLUGINS LIBZARRBITS VECTORS FILE.h5");
  if (!(hdf5 = load(argv[1]))) stop("this libhdf5 cannot be loaded", argv[1]);
  if (!(library = load(argv[3]))) stop("this library cannot be loaded", argv[3]);
  FUNCTION(hdf5, int, H5open, (void));
  FUNCTION(hdf5, int, H5get_libversion, (unsigned*, unsigned*, unsigned*));
  FUNCTION(hdf5, int, H5PLprepend, (const char*));
  FUNCTION(hdf5, int, H5Zfilter_avail, (int));
  FUNCTION(hdf5, hid, H5Fcreate, (const char*, unsigned, hid, hid));
  FUNCTION(hdf5, int, H5Fclose, (hid));
  FUNCTION(library, const char*, zarrbits_version, (void));
  unsigned version[3] = {0};
  if (H5open() < 0 || H5get_libversion(version, version + 1, version + 2) < 0) stop("libhdf5 does not start", argv[1]);
  if (H5Zfilter_avail(45429) > 0) stop("there is a filter before there is a plugin", argv[1]);
  if (H5PLprepend(argv[2]) < 0) stop("this folder is refused", argv[2]);
  if (H5Zfilter_avail(45429) <= 0 || H5Zfilter_avail(45438) <= 0) stop("libhdf5 does not load the plugins in", argv[2]);
  if ((file = H5Fcreate(argv[5], 2, 0, 0)) < 0) stop("this file cannot be made", argv[5]);

  FILE* vectors = fopen(argv[4], "rb");
  if (!vectors) stop("this file cannot be read", argv[4]);
  const size_t room = 1 << 20;
  char *line = malloc(room), *copy = malloc(room);
  unsigned codecs = 0, filters = 0;
  while (fgets(line, (int)room, vectors)) {
    line[strcspn(line, "\r\n")] = '\0';
    strcpy(copy, line);
    char* word[9] = {0};
    int words = 0;
    for (char* at = copy; at && words < 8; ++words) {
      word[words] = at;
      if ((at = strchr(at, '\t'))) *at++ = '\0';
    }
    if (words != 8) stop("a line with other words", line);
    if (strcmp(word[0], "codec") == 0) check_codec(word, line), ++codecs;
    else check_filter(word, line), ++filters;
  }
  fclose(vectors);
  if (H5Fclose(file) < 0) stop("the file cannot be closed", argv[5]);
  printf("right: zarrbits %s, libhdf5 %u.%u.%u: %u vectors by the library, %u by the filters\n", zarrbits_version(), version[0],
         version[1], version[2], codecs, filters);
  return 0;
}
