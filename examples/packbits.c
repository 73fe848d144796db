/* SPDX-License-Identifier: BSL-1.0 */
/*
 * Packs a row of 12-bit pixels, unpacks some of them from the bytes that hold them, and shows what happens to a pixel that does
 * not fit. With an installed zarrbits: cc packbits.c $(pkg-config --cflags --libs zarrbits-c)
 */
#include <zarrbits/zarrbits_c.h>

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  enum { pixels = 1000, first = 300, count = 10 };
  uint16_t row[pixels], part[count];
  char reason[200];
  zarrbits_codec* codec;
  unsigned char* packed;
  uint64_t size, offset, bytes, element = 0;
  zarrbits_result result;
  int i;

  for (i = 0; i < pixels; ++i) row[i] = (uint16_t)(i * 4);
  codec = zarrbits_make_codec("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}", "uint16", reason, sizeof reason);
  if (codec == NULL) {
    fprintf(stderr, "%s\n", reason);
    return EXIT_FAILURE;
  }
  if (zarrbits_encoded_size(codec, pixels, &size) != ZARRBITS_OK) return EXIT_FAILURE;
  packed = malloc((size_t)size);
  if (packed == NULL) return EXIT_FAILURE;
  if (zarrbits_encode(codec, row, sizeof row, packed, (size_t)size, NULL) != ZARRBITS_OK) return EXIT_FAILURE;
  printf("%d pixels of %u bytes are %llu bytes\n", pixels, (unsigned)sizeof row[0], (unsigned long long)size);

  /* only these bytes are needed for the pixels 300 to 309: read them from a file, or by a range request */
  if (zarrbits_encoded_range(codec, pixels, first, count, &offset, &bytes) != ZARRBITS_OK) return EXIT_FAILURE;
  if (zarrbits_decode_range(codec, pixels, first, packed + offset, (size_t)bytes, part, sizeof part, NULL) != ZARRBITS_OK)
    return EXIT_FAILURE;
  printf("pixel %d is %u, out of %llu bytes at %llu\n", first, part[0], (unsigned long long)bytes, (unsigned long long)offset);

  row[77] = 5000;
  result = zarrbits_encode(codec, row, sizeof row, packed, (size_t)size, &element);
  if (result == ZARRBITS_REFUSED_ELEMENT) printf("pixel %llu does not fit in 12 bits\n", (unsigned long long)element);

  free(packed);
  zarrbits_free_codec(codec);
  return result == ZARRBITS_REFUSED_ELEMENT && element == 77 && part[0] == first * 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
