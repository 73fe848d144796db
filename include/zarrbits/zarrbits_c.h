/* SPDX-License-Identifier: BSL-1.0 */
/*
 * The codecs for other languages: libzarrbits.so, plain C. Python's package loads it through ctypes; docs/guide/c.md has more.
 *
 *   char reason[500];
 *   zarrbits_codec* c = zarrbits_make_codec("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}", "uint16",
 *                                           reason, sizeof reason);
 *   uint64_t size, element;
 *   if (zarrbits_encoded_size(c, 1000, &size) != ZARRBITS_OK) ...                      1500 bytes
 *   zarrbits_result result = zarrbits_encode(c, values, 2000, chunk, size, &element);  the element that does not fit, if any
 *   zarrbits_free_codec(c);
 *
 * A function that can fail returns a zarrbits_result, 0 for success, and the rest through pointers; zarrbits_make_codec() returns
 * NULL for failure.
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

typedef enum zarrbits_result {
  ZARRBITS_OK = 0,
  ZARRBITS_REFUSED_ELEMENT, /* a value that does not fit, or a bool that is neither 0 nor 1 */
  ZARRBITS_WRONG_SIZE,      /* the sizes do not match, are too large, or the chunk has no such elements */
  ZARRBITS_WRONG_CHUNK      /* the chunk's count byte disagrees with its number of elements */
} zarrbits_result;

/* Version of this interface; it grows when the meaning of anything in it changes. */
int zarrbits_interface(void);
/* Version of zarrbits, as "0.2.0". */
const char* zarrbits_version(void);

/* Makes a codec from its JSON and a data type's name or JSON. NULL on error; `reason` is then a sentence, cut at `size` bytes. */
zarrbits_codec* zarrbits_make_codec(const char* codec_json, const char* data_type, char* reason, size_t size);
/* Frees it; NULL is allowed. */
void zarrbits_free_codec(zarrbits_codec* codec);

/* Bytes of a chunk of this many elements. */
zarrbits_result zarrbits_encoded_size(const zarrbits_codec* codec, uint64_t elements, uint64_t* size);
/* The bytes of a chunk that hold the elements `first` ... `first + count - 1`. */
zarrbits_result zarrbits_encoded_range(const zarrbits_codec* codec, uint64_t elements, uint64_t first, uint64_t count,
                                       uint64_t* offset, uint64_t* size);

/* Encodes elements in this machine's byte order as a chunk. `chunk` may have more room than zarrbits_encoded_size() says: what
 * follows the chunk stays as it is. `element` gets the index of the element of ZARRBITS_REFUSED_ELEMENT; it may be NULL. */
zarrbits_result zarrbits_encode(const zarrbits_codec* codec, const void* elements, size_t elements_size, void* chunk,
                                size_t chunk_size, uint64_t* element);
/* The reverse. `chunk_size` is the size of the chunk, and no other. */
zarrbits_result zarrbits_decode(const zarrbits_codec* codec, const void* chunk, size_t chunk_size, void* elements,
                                size_t elements_size, uint64_t* element);
/* Decodes elements from `first` on of a chunk of `all` elements, from only the bytes of zarrbits_encoded_range(). `element` is
 * an index in the chunk. */
zarrbits_result zarrbits_decode_range(const zarrbits_codec* codec, uint64_t all, uint64_t first, const void* bytes,
                                      size_t bytes_size, void* elements, size_t elements_size, uint64_t* element);

#ifdef __cplusplus
}
#endif

#endif
