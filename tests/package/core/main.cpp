// SPDX-License-Identifier: BSL-1.0
// The core from outside: 12 of 16 bits, there and back.
#include <zarrbits/zarrbits.hpp>

#include <cstdint>
#include <cstring>
#include <iostream>
#include <vector>

int main() {
  if (std::strcmp(zarrbits::version(), ZARRBITS_VERSION_STRING) != 0) {
    std::cerr << "headers and library are of different versions\n";
    return 1;
  }
  const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
  const std::vector<std::uint16_t> pixels = {0xABC, 0x123, 0xFFF};
  std::vector<std::uint16_t> back(pixels.size());
  std::vector<std::byte> packed(camera.encoded_size(pixels.size()));
  if (!zarrbits::encode_chunk(camera, pixels, packed) || packed != zarrbits::encode(camera, pixels)) return 1;
  if (!zarrbits::decode_chunk(camera, packed, back) || back != zarrbits::decode<std::uint16_t>(camera, packed)) return 1;
  // by hand: 0xABC and 0x123 from the least significant end are bc 3a 12; 0xFFF and four bits of padding are ff 0f
  const unsigned char expected[] = {0xBC, 0x3A, 0x12, 0xFF, 0x0F};
  return packed.size() == sizeof expected && std::memcmp(packed.data(), expected, sizeof expected) == 0 && back == pixels ? 0 : 1;
}
