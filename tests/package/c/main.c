/* SPDX-License-Identifier: BSL-1.0 */
/* The C library from outside. */
#include <zarrbits/zarrbits_c.h>

#include <stdio.h>
#include <string.h>

static zarrbits_codec* make(const char* json, const char* type) {
  char reason[200] = "";
  zarrbits_codec* codec = zarrbits_make_codec(json, type, reason, sizeof reason);
  if (codec == NULL) fprintf(stderr, "%s\n", reason);
  return codec;
}

/* 0, or the number of the check that failed */
static int check_packbits(void) {
  uint16_t values[2] = {0xABC, 0xABC}, one = 0;
  unsigned char chunk[4] = {0, 0, 0, 0xEE}; /* one more than it takes */
  uint64_t size = 7, offset = 7, element = 7;
  zarrbits_codec* codec = make("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}", "uint16");
  if (codec == NULL) return 1;
  if (zarrbits_encoded_size(codec, UINT64_MAX, &size) != ZARRBITS_WRONG_SIZE || size != 7) return 2;
  if (zarrbits_encoded_size(codec, 2, &size) != ZARRBITS_OK || size != 3) return 3;
  if (zarrbits_encode(codec, values, sizeof values, chunk, sizeof chunk, &element) != ZARRBITS_OK || element != 7) return 4;
  if (chunk[0] != 0xBC || chunk[1] != 0xCA || chunk[2] != 0xAB || chunk[3] != 0xEE) return 5;
  if (zarrbits_encode(codec, values, sizeof values, chunk, 2, NULL) != ZARRBITS_WRONG_SIZE) return 6;
  if (zarrbits_decode(codec, chunk, sizeof chunk, values, sizeof values, NULL) != ZARRBITS_WRONG_SIZE) return 7;
  if (zarrbits_decode(codec, chunk, 3, values, sizeof values, NULL) != ZARRBITS_OK || values[1] != 0xABC) return 8;
  if (zarrbits_encoded_range(codec, 2, 1, 2, &offset, &size) != ZARRBITS_WRONG_SIZE || offset != 7) return 9;
  if (zarrbits_encoded_range(codec, 2, 1, 1, &offset, &size) != ZARRBITS_OK || offset != 1 || size != 2) return 10;
  if (zarrbits_decode_range(codec, 2, 1, chunk + offset, (size_t)size, &one, sizeof one, NULL) != ZARRBITS_OK) return 11;
  if (one != 0xABC) return 12;
  if (zarrbits_decode_range(codec, 2, 2, chunk + offset, (size_t)size, &one, sizeof one, NULL) != ZARRBITS_WRONG_SIZE) return 13;
  values[1] = 0x1000; /* does not fit */
  if (zarrbits_encode(codec, values, sizeof values, chunk, sizeof chunk, NULL) != ZARRBITS_REFUSED_ELEMENT) return 14;
  if (zarrbits_encode(codec, values, sizeof values, chunk, sizeof chunk, &element) != ZARRBITS_REFUSED_ELEMENT) return 15;
  if (element != 1) return 16;
  zarrbits_free_codec(codec);
  return 0;
}

static int check_other_results(void) {
  unsigned char bools[3] = {1, 0, 2}, out[3];
  uint16_t value = 0;
  uint64_t element = 7;
  zarrbits_codec* codec = make("{\"name\": \"bytes\"}", "bool");
  if (codec == NULL) return 20;
  if (zarrbits_decode(codec, bools, sizeof bools, out, sizeof out, &element) != ZARRBITS_REFUSED_ELEMENT) return 21;
  if (element != 2) return 22;
  if (zarrbits_decode_range(codec, 3, 1, bools + 1, 2, out, 2, &element) != ZARRBITS_REFUSED_ELEMENT) return 23;
  if (element != 2) return 24; /* counted in the chunk */
  zarrbits_free_codec(codec);

  codec = make("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11, \"padding_encoding\": \"first_byte\"}}", "uint16");
  if (codec == NULL) return 25;
  if (zarrbits_decode(codec, "\5\0\0", 3, &value, sizeof value, NULL) != ZARRBITS_WRONG_CHUNK) return 26;
  if (zarrbits_decode(codec, "\4\1\0", 3, &value, sizeof value, NULL) != ZARRBITS_OK || value != 1) return 27;
  zarrbits_free_codec(codec);
  return 0;
}

int main(void) {
  char reason[200] = "";
  int failed;
  if (zarrbits_interface() != 2 || strlen(zarrbits_version()) < 5) return 30;
  if (zarrbits_make_codec("{}", "uint16", reason, sizeof reason) != NULL || strlen(reason) == 0) return 31;
  failed = check_packbits();
  return failed != 0 ? failed : check_other_results();
}
