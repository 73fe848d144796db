/* SPDX-License-Identifier: BSL-1.0 */
/*
 * Drives the plugin as libnetcdf's NCZarr does, without netCDF: the entry points, the JSON both ways, the working parameters, the
 * filter with malloc's buffers. The program plays libnetcdf itself: it exports (-rdynamic) the functions that are asked about a
 * variable.
 *
 *   netcdf_driver PLUGIN
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

static void fail(int line, const char* condition) {
  fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition);
  exit(1);
}

/* netcdf_filter_build.h and H5Zpublic.h, as far as they matter here */
typedef struct {
  int version, sort;
  const char* codecid;
  unsigned hdf5id;
  void (*initialize)(void);
  void (*finalize)(void);
  int (*codec_to_hdf5)(const char*, size_t*, unsigned**);
  int (*hdf5_to_codec)(size_t, const unsigned*, char**);
  int (*modify_parameters)(int, int, size_t*, unsigned**, size_t*, unsigned**);
} codec;
typedef struct {
  int version, id;
  unsigned encoder_present, decoder_present;
  const char* name;
  void (*can_apply)(void);
  void (*set_local)(void);
  size_t (*filter)(unsigned, size_t, const unsigned[], size_t, size_t*, void**);
} filter;

static int variable_type = 7, variable_rank = 2; /* NC_UBYTE */
static size_t chunk[2] = {3, 7};

__attribute__((visibility("default"))) int nc_inq_vartype(int ncid, int varid, int* type) {
  return *type = variable_type, ncid == 5 && varid == 6 ? 0 : -33;
}
__attribute__((visibility("default"))) int nc_inq_varndims(int ncid, int varid, int* rank) {
  return *rank = variable_rank, ncid == 5 && varid == 6 ? 0 : -33;
}
__attribute__((visibility("default"))) int nc_inq_var_chunking(int ncid, int varid, int* storage, size_t* sizes) {
  *storage = 0;
  memcpy(sizes, chunk, sizeof chunk);
  return ncid == 5 && varid == 6 ? 0 : -33;
}

static void* entry(void* plugin, const char* name) {
  void* found = dlsym(plugin, name);
  if (!found) fail(__LINE__, name);
  return found;
}

int main(int argc, char** argv) {
  const filter* f;
  const codec* c;
  const void* (*get)(void);
  int (*get_type)(void);
  const char* (*last_error)(void);
  void *plugin, *found, *buffer;
  unsigned *visible = NULL, *working = NULL;
  size_t visible_n = 0, working_n = 0, size, n;
  char* json = NULL;
  unsigned char values[21], expected[4] = {3, 0, 0, 0};
  int i;

  CHECK(argc == 2);
  plugin = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!plugin) fail(__LINE__, dlerror());
  memcpy(&get_type, (found = entry(plugin, "H5PLget_plugin_type"), &found), sizeof found);
  CHECK(get_type() == 0);
  memcpy(&get, (found = entry(plugin, "H5PLget_plugin_info"), &found), sizeof found);
  f = get();
  memcpy(&get, (found = entry(plugin, "NCZ_get_codec_info"), &found), sizeof found);
  c = get();
  memcpy(&last_error, (found = entry(plugin, "zarrbits_hdf5_last_error"), &found), sizeof found);
  CHECK(dlsym(plugin, "NCZ_codec_info_defaults") == NULL); /* libnetcdf takes the one or the other */

  /* what libnetcdf checks of them */
  CHECK(f->version == 1 && f->encoder_present && f->decoder_present);
  CHECK(c->version == 1 && c->sort == 1 && strcmp(c->codecid, "packbits") == 0 && (int)c->hdf5id == f->id);

  /* the metadata of the store, both ways */
  CHECK(c->codec_to_hdf5("{\"id\": \"packbits\"}", &visible_n, &visible) == 0 && visible_n == 2 && visible[0] == 1 &&
        visible[1] == 17);
  CHECK(c->hdf5_to_codec(visible_n, visible, &json) == 0 && strcmp(json, "{\"id\": \"packbits\"}") == 0);
  free(json);
  CHECK(c->hdf5_to_codec(0, NULL, &json) == 0 && strcmp(json, "{\"id\": \"packbits\"}") == 0);
  free(json);
  CHECK(c->codec_to_hdf5("{\"id\": \"packbits\", \"bits\": 12}", &n, &working) == -132 && strstr(last_error(), "configuration"));
  CHECK(c->codec_to_hdf5("{\"id\": \"pack", &n, &working) == -132);
  CHECK(c->codec_to_hdf5("", &n, &working) == -132);
  {
    const unsigned twelve[1] = {12}, lowest_first[1] = {1};
    CHECK(c->hdf5_to_codec(1, twelve, &json) == -132 && strstr(last_error(), "numcodecs"));
    CHECK(c->hdf5_to_codec(1, lowest_first, &json) == -132);
  }

  /* what only the variable knows */
  CHECK(c->modify_parameters(5, 6, &visible_n, &visible, &working_n, &working) == 0 && working_n == 12 && visible_n == 2);
  variable_type = 4; /* NC_INT */
  CHECK(c->modify_parameters(5, 6, &visible_n, &visible, &n, &working) == -132 && strstr(last_error(), "netCDF type 4"));
  variable_type = 7;
  CHECK(c->modify_parameters(5, 7, &visible_n, &visible, &n, &working) == -132);
  chunk[1] = (size_t)-1;
  CHECK(c->modify_parameters(5, 6, &visible_n, &visible, &n, &working) == -132);

  /* the filter: flags 0 and 0x100, the byte that counts padding bits, then numpy.packbits' order */
  for (i = 0; i < 21; ++i) {
    values[i] = (unsigned char)(i * i % 5 % 2);
    if (values[i]) expected[1 + i / 8] = (unsigned char)(expected[1 + i / 8] | 0x80 >> i % 8);
  }
  buffer = malloc(21);
  CHECK(buffer != NULL);
  memcpy(buffer, values, 21);
  size = 21;
  CHECK(f->filter(0, working_n, working, 21, &size, &buffer) == 4 && memcmp(buffer, expected, 4) == 0);
  buffer = realloc(buffer, 4);
  size = 4;
  CHECK(f->filter(0x100, working_n, working, 4, &size, &buffer) == 21 && size >= 21 && memcmp(buffer, values, 21) == 0);
  ((unsigned char*)buffer)[20] = 2; /* no boolean */
  CHECK(f->filter(0, working_n, working, 21, &size, &buffer) == 0 && strstr(last_error(), "must be 0 or 1"));
  CHECK(memcmp(buffer, values, 20) == 0);
  free(buffer);
  free(visible);
  free(working);
  CHECK(dlclose(plugin) == 0);
  puts("netcdf_driver: 0 failures");
  return 0;
}
