/* SPDX-License-Identifier: BSL-1.0 */
/*
 * <zarrbits/hdf5_file.hpp> for other languages: boxes of HDF5 datasets, read in several threads. libzarrbits_reader.so.
 *
 *   zarrbits_hdf5_file* f = zarrbits_hdf5_open("in.h5", "");
 *   if (!f) fprintf(stderr, "%s\n", zarrbits_hdf5_error());
 *   zarrbits_hdf5_dataset* d = zarrbits_hdf5_open_dataset(f, "/a/b");
 *   uint64_t first[] = {0, 0}, count[] = {10, 10};
 *   float values[100];
 *   int status = zarrbits_hdf5_read(d, 2, first, count, NULL, values, sizeof values);   0, or a number of zarrbits::errc
 *   zarrbits_hdf5_close_dataset(d);
 *   zarrbits_hdf5_close(f);
 *
 * A function that can fail returns 0 for success, or the number of the error; one that returns a pointer, NULL for failure.
 *
 * Many threads may use a file at once. A dataset keeps its file open. Texts are UTF-8, or the bytes of the file. After fork(),
 * the child may use open files and datasets; files on servers it has to open again.
 */
#ifndef ZARRBITS_HDF5_FILE_H
#define ZARRBITS_HDF5_FILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zarrbits_hdf5_file zarrbits_hdf5_file;
typedef struct zarrbits_hdf5_dataset zarrbits_hdf5_dataset;

/* Version of this interface; it grows when the meaning of anything in it changes. */
int zarrbits_hdf5_interface(void);

/* The last error of this thread, as a sentence; its number, of zarrbits::errc. */
const char* zarrbits_hdf5_error(void);
int zarrbits_hdf5_error_code(void);

/* Opens a file or URL. `options`: lines "NAME VALUE" of the members of hdf5_file_options and remote_access: threads, chunk_cache,
 * remote_cache, lock (0 or 1), external (repeatable), endpoint, profile, ca_file, header (repeatable), no_sign_request,
 * request_payer, follow_private, no_etag. NULL on error. */
zarrbits_hdf5_file* zarrbits_hdf5_open(const char* path, const char* options);
/* Closes it; NULL is allowed. */
void zarrbits_hdf5_close(zarrbits_hdf5_file* file);

/* hdf5_file::describe() and attributes(): `size` bytes to free; NULL on error. */
char* zarrbits_hdf5_describe(const zarrbits_hdf5_file* file, const char* path, size_t* size);
char* zarrbits_hdf5_attributes(const zarrbits_hdf5_file* file, const char* path, size_t* size);
/* Frees what a function returned; NULL is allowed. */
void zarrbits_hdf5_free(char* bytes);

/* Opens a dataset; NULL on error. */
zarrbits_hdf5_dataset* zarrbits_hdf5_open_dataset(const zarrbits_hdf5_file* file, const char* path);
/* Closes it; NULL is allowed. */
void zarrbits_hdf5_close_dataset(zarrbits_hdf5_dataset* dataset);

/* Reads `count` elements from `first` on along each of `rank` dimensions; every step-th one, if `step` is not NULL. `size`: bytes
 * of `out`. Returns 0, or the number of the error. */
int zarrbits_hdf5_read(const zarrbits_hdf5_dataset* dataset, size_t rank, const uint64_t* first, const uint64_t* count,
                       const uint64_t* step, void* out, size_t size);
/* hdf5_dataset::read_packed(): `size` bytes to free; NULL on error. */
char* zarrbits_hdf5_read_packed(const zarrbits_hdf5_dataset* dataset, size_t rank, const uint64_t* first, const uint64_t* count,
                                const uint64_t* step, size_t* size);

/* hdf5_statistics, its members in order. */
void zarrbits_hdf5_statistics(const zarrbits_hdf5_file* file, uint64_t out[5]);

/* <zarrbits/hdf5_decoders.hpp>, for chunks that another libhdf5 reads and writes. `filters`: of each filter in the order of
 * writing its number, the number of its parameters, and these; `length` numbers in all. 1 if there are decoders, or encoders, for
 * all. */
int zarrbits_hdf5_has_decoders(const unsigned* filters, size_t length);
int zarrbits_hdf5_has_encoders(const unsigned* filters, size_t length);
/* Decodes a stored chunk to `size` bytes. Returns 0, or the number of the error. */
int zarrbits_hdf5_decode_chunk(const unsigned* filters, size_t length, unsigned mask, const void* stored, size_t stored_size,
                               void* values, size_t size);
/* Encodes a chunk: `stored_size` bytes to free; NULL on error. */
char* zarrbits_hdf5_encode_chunk(const unsigned* filters, size_t length, const void* values, size_t size, size_t* stored_size);

#ifdef __cplusplus
}
#endif

#endif
