/* SPDX-License-Identifier: BSL-1.0 */
/* The C library from outside. */
#include <zarrbits/zarrbits_c.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  char why[200] = "";
  uint16_t values[2] = {0xABC, 0xABC};
  unsigned char chunk[4] = {0, 0, 0, 0xEE}; /* one more than it takes */
  zarrbits_codec* codec =
      zarrbits_make_codec("{\"name\": \"packbits\", \"configuration\": {\"last_bit\": 11}}", "uint16", why, sizeof why);
  if (codec == NULL || zarrbits_interface() != 1 || strlen(zarrbits_version()) < 5) return fprintf(stderr, "%s\n", why), 1;
  if (zarrbits_encode(codec, values, sizeof values, chunk, sizeof chunk) != ZARRBITS_DONE) return 2;
  if (chunk[3] != 0xEE || zarrbits_encode(codec, values, sizeof values, chunk, 2) != ZARRBITS_WRONG_SIZE) return 6;
  if (zarrbits_decode(codec, chunk, sizeof chunk, values, sizeof values) != ZARRBITS_WRONG_SIZE) return 7;
  if (chunk[0] != 0xBC || chunk[1] != 0xCA || chunk[2] != 0xAB) return 3;
  values[1] = 0x1000;
  if (zarrbits_encode(codec, values, sizeof values, chunk, sizeof chunk) != 1) return 4; /* the element that does not fit */
  zarrbits_free_codec(codec);
  if (zarrbits_make_codec("{}", "uint16", why, sizeof why) != NULL || strlen(why) == 0) return 5;
  return 0;
}
