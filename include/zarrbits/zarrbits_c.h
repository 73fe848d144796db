/* SPDX-License-Identifier: BSL-1.0 */
/*
 * The codecs for other languages: libzarrbits.so, plain C. Python's package loads it through ctypes; docs/guide/c.md has more.
 *
 *   char why[500];
 *   zarrbits_codec *c = zarrbits_make_codec("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}", "uint16",
 *                                           why, sizeof why);
 *   int64_t size = zarrbits_encoded_size(c, 1000);             1500 bytes
 *   int64_t at = zarrbits_encode(c, values, 2000, out, size);  -1, or the element that does not fit
 *   zarrbits_free_codec(c);
 *
 * Many threads may use a codec at once. Only zarrbits_make_codec() allocates, and no function throws. The library needs libc
 * alone. A function that is here stays as it is for as long as the library's SONAME does.
 */
#ifndef ZARRBITS_ZARRBITS_C_H
#define ZARRBITS_ZARRBITS_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A codec for a data type. */
typedef struct zarrbits_codec zarrbits_codec;

/* Results of encode and decode other than the index of an element. */
enum { ZARRBITS_DONE = -1, ZARRBITS_WRONG_SIZE = -2, ZARRBITS_WRONG_CHUNK = -3 };

/* Version of this interface; it grows when the meaning of anything in it changes. */
int zarrbits_interface(void);
/* Version of zarrbits, as "0.2.0". */
const char* zarrbits_version(void);

/* Makes a codec from its JSON and a data type's name or JSON. NULL on error; `why` is then a sentence, cut at `size` bytes. */
zarrbits_codec* zarrbits_make_codec(const char* codec_json, const char* data_type, char* why, size_t size);
/* Frees it; NULL is allowed. */
void zarrbits_free_codec(zarrbits_codec* codec);

/* Bytes of a chunk of this many elements; -1 if they do not fit in 63 bits. */
int64_t zarrbits_encoded_size(const zarrbits_codec* codec, uint64_t elements);
/* The bytes of a chunk that hold the elements `first` ... `first + count - 1`. Returns 0 if there are no such elements. */
int zarrbits_encoded_range(const zarrbits_codec* codec, uint64_t elements, uint64_t first, uint64_t count, uint64_t* offset,
                           uint64_t* size);

/* Encodes elements in this machine's byte order as a chunk, and decodes it. Both return ZARRBITS_DONE; the index of the element
 * that is refused; ZARRBITS_WRONG_SIZE if the sizes do not match; ZARRBITS_WRONG_CHUNK if the count byte disagrees. To encode,
 * `chunk` may have more room than zarrbits_encoded_size() says: what follows the chunk stays as it is. To decode, `chunk_size` is
 * the size of the chunk, and no other. */
int64_t zarrbits_encode(const zarrbits_codec* codec, const void* elements, size_t elements_size, void* chunk, size_t chunk_size);
/* The reverse, with the same results. */
int64_t zarrbits_decode(const zarrbits_codec* codec, const void* chunk, size_t chunk_size, void* elements, size_t elements_size);
/* Decodes elements from `first` on of a chunk of `all` elements, from only the bytes of zarrbits_encoded_range(). */
int64_t zarrbits_decode_range(const zarrbits_codec* codec, uint64_t all, uint64_t first, const void* bytes, size_t bytes_size,
                              void* elements, size_t elements_size);

#ifdef __cplusplus
}
#endif

#endif
