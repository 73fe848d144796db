// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_FILTER_CHUNK_EXAMPLES_HPP
#define ZARRBITS_TESTS_FILTER_CHUNK_EXAMPLES_HPP

#include "tests/filter/chunk_support.hpp"

#include <boost/test/unit_test.hpp>

#include <random>
#include <vector>

// Random chunks, packed by a model.
namespace chunk_support {

using zarrbits::padding;

inline std::mt19937_64 random_bits(20240611);
inline std::uint64_t below(std::uint64_t n) { return random_bits() % n; }

inline std::uint64_t low_bits(unsigned n) { return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }

// The packbits text, one bit at a time.
inline bytes_of model(const std::vector<std::uint64_t>& values, unsigned bits, unsigned first_bit, padding count_byte) {
  bytes_of body((values.size() * bits + 7) / 8);
  std::size_t at = 0;
  for (const auto v : values)
    for (unsigned b = 0; b < bits; ++b, ++at)
      if (v >> (first_bit + b) & 1) body[at / 8] = static_cast<unsigned char>(body[at / 8] | 1u << at % 8);
  const auto count = static_cast<unsigned char>((8 - at % 8) % 8);
  if (count_byte == padding::first_byte) body.insert(body.begin(), count);
  if (count_byte == padding::last_byte) body.push_back(count);
  return body;
}

inline bytes_of in_memory(const std::vector<std::uint64_t>& values, unsigned size, bool big) {
  bytes_of out;
  for (const auto v : values)
    for (unsigned b = 0; b < size; ++b) out.push_back(static_cast<unsigned char>(v >> 8 * (big ? size - 1 - b : b)));
  return out;
}

struct example {
  packbits_chunk chunk;
  bytes_of decoded, encoded;
};

// A chunk of values that fit in `bits` bits from first_bit on.
inline example make(unsigned size, unsigned bits, unsigned first_bit, padding count_byte, bool is_signed, bool big,
                    unsigned components, std::uint64_t elements) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < elements * components; ++i) {
    std::uint64_t v = random_bits() & low_bits(bits);
    if (is_signed && (v >> (bits - 1) & 1)) v |= ~low_bits(bits);
    values.push_back((v << first_bit) & low_bits(8 * size));
  }
  example x;
  sentence why;
  const packbits_parameters_in user{bits, static_cast<unsigned>(count_byte), first_bit};
  BOOST_REQUIRE_MESSAGE(resolve(user, number(size, is_signed, big, components), elements, x.chunk, why), why.text);
  x.decoded = in_memory(values, size, big);
  x.encoded = model(values, bits, first_bit, count_byte);
  return x;
}

inline example any_example() {
  const unsigned size = 1u << below(4), bits = 1 + static_cast<unsigned>(below(8 * size));
  const auto first_bit = static_cast<unsigned>(below(8 * size - bits + 1));
  return make(size, bits, first_bit, static_cast<padding>(below(3)), below(2), below(2), 1 + static_cast<unsigned>(below(3)),
              1 + below(3000));
}

}  // namespace chunk_support
#endif
