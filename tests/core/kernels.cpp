// SPDX-License-Identifier: BSL-1.0
//
// Every table of kernels against a reference that goes bit by bit, for every size, number of bits, first bit and sign, between guard
// pages.
//
#include "core/kernels/kernels.hpp"
#include "core/packing.hpp"
#include "tests/support/guarded_buffer.hpp"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace zarrbits::detail;

namespace {

std::mt19937_64 random_bits(42);

// A number from memory, byte by byte. Nothing here is shared with the library.
std::uint64_t number(const packing& p, const std::byte* in) {
  std::uint64_t v = 0;
  const bool big = (std::endian::native == std::endian::big) != p.swap_memory;
  for (unsigned i = 0; i < p.size; ++i) {
    const unsigned at = big ? p.size - 1 - i : i;
    v |= std::to_integer<std::uint64_t>(in[at]) << (8 * i);
  }
  return v;
}

void put(const packing& p, std::uint64_t v, std::byte* out) {
  const bool big = (std::endian::native == std::endian::big) != p.swap_memory;
  for (unsigned i = 0; i < p.size; ++i) out[big ? p.size - 1 - i : i] = static_cast<std::byte>(v >> (8 * i));
}

bool bit(const std::vector<std::byte>& bytes, std::size_t i) { return std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8) & 1; }

// What the text says: bit i of the sequence is bit i % 8 of byte i / 8, the lowest kept bit of a component first.
std::vector<std::byte> packed(const packing& p, const std::byte* in, std::size_t n) {
  std::vector<std::byte> out((n * p.bits + 7) / 8);
  for (std::size_t i = 0; i < n; ++i)
    for (unsigned b = 0; b < p.bits; ++b)
      if (number(p, in + i * p.size) >> (p.first_bit + b) & 1) {
        const std::size_t at = i * p.bits + b;
        out[at / 8] |= static_cast<std::byte>(1 << (p.msb_first ? 7 - at % 8 : at % 8));
      }
  return out;
}

// And back: bits at first_bit, zeros below, the sign or zeros above.
std::uint64_t unpacked(const packing& p, const std::vector<std::byte>& in, std::size_t i) {
  std::uint64_t v = 0;
  bool last = false;
  for (unsigned b = 0; b < p.bits; ++b) {
    std::size_t at = i * p.bits + b;
    if (p.msb_first) at = at / 8 * 8 + 7 - at % 8;
    last = bit(in, at);
    v |= std::uint64_t{last} << (p.first_bit + b);
  }
  const unsigned top = p.zero_above ? p.type_bits : 8u * p.size;
  for (unsigned b = p.first_bit + p.bits; b < top; ++b) v |= std::uint64_t{p.is_signed && last} << b;
  return v;
}

std::string describe(const packing& p, std::size_t n) {
  return std::to_string(n) + " components of " + std::to_string(p.size) + " bytes, bits " + std::to_string(p.first_bit) + " + " +
         std::to_string(p.bits) + " of " + std::to_string(p.type_bits) + (p.is_signed ? ", signed" : "") + (p.swap_memory ? ", swapped" : "") +
         (p.zero_above ? ", zeros above" : "");
}

guarded_buffer decoded_memory(1 << 16), encoded_memory(1 << 16), again_memory(1 << 16);

// n components that fit, encoded and decoded by `k` at both ends of guarded memory.
void round_trip(const kernel_table& k, const packing& p, std::size_t n, bool at_back) {
  const std::size_t size = (n * p.bits + 7) / 8;
  const auto in = at_back ? decoded_memory.back(n * p.size) : decoded_memory.front(n * p.size);
  const auto out = at_back ? encoded_memory.back(size) : encoded_memory.front(size);
  const auto again = at_back ? again_memory.back(n * p.size) : again_memory.front(n * p.size);
  std::vector<std::byte> bits(size);
  for (auto& b : bits) b = static_cast<std::byte>(random_bits());
  for (std::size_t i = n * p.bits; i < size * 8; ++i) bits[i / 8] &= static_cast<std::byte>(~(1u << (p.msb_first ? 7 - i % 8 : i % 8)));
  for (std::size_t i = 0; i < n; ++i) put(p, unpacked(p, bits, i), in.data() + i * p.size);
  const std::vector<std::byte> wanted = packed(p, in.data(), n);

  std::memset(out.data(), 0xa5, out.size());
  BOOST_REQUIRE_MESSAGE(encode_components(k, p, in.data(), out.data(), n) == n, std::string(k.name) + ": refused " + describe(p, n));
  BOOST_REQUIRE_MESSAGE(std::equal(out.begin(), out.end(), wanted.begin(), wanted.end()), std::string(k.name) + ": encode " + describe(p, n));
  BOOST_REQUIRE(first_refused(k, p, in.data(), n) == n);

  std::memset(again.data(), 0x5a, again.size());
  BOOST_REQUIRE(decode_components(k, p, out.data(), again.data(), n) == n);
  BOOST_REQUIRE_MESSAGE(std::equal(in.begin(), in.end(), again.begin()), std::string(k.name) + ": decode " + describe(p, n));

  // in place: the packed bytes overwrite what has been read
  std::copy(in.begin(), in.end(), again.begin());
  encode_components(k, p, again.data(), again.data(), n);
  BOOST_REQUIRE_MESSAGE(std::equal(wanted.begin(), wanted.end(), again.begin()), std::string(k.name) + ": encode in place " + describe(p, n));
}

template <class Use>
void each_packing(Use use) {
  for (const unsigned size : {1u, 2u, 4u, 8u})
    for (unsigned bits = 1; bits <= 8 * size; ++bits)
      for (unsigned first = 0; first + bits <= 8 * size; ++first)
        for (const bool is_signed : {false, true}) {
          packing p;
          p.size = static_cast<std::uint8_t>(size);
          p.type_bits = static_cast<std::uint8_t>(8 * size);
          p.first_bit = static_cast<std::uint8_t>(first);
          p.bits = static_cast<std::uint8_t>(bits);
          p.is_signed = is_signed;
          use(p);
        }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_width_first_bit_and_sign_agrees_with_the_bitwise_reference) {
  std::size_t packings = 0;
  for (const kernel_table* k : all_kernels())
    each_packing([&](const packing& p) {
      ++packings;
      for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{17}, 1 + static_cast<std::size_t>(random_bits() % 90)})
        round_trip(*k, p, n, n % 2);
    });
  BOOST_TEST(packings >= 2u * (36 + 136 + 528 + 2080));
}

BOOST_AUTO_TEST_CASE(every_number_of_components_stays_within_its_memory) {
  for (const kernel_table* k : all_kernels())
    for (const unsigned size : {1u, 2u, 4u, 8u})
      for (unsigned bits = 1; bits <= 8 * size; bits += size > 2 ? 3 : 1)
        for (std::size_t n = 0; n <= 257; n += n < 40 ? 1 : 7) {
          packing p;
          p.size = static_cast<std::uint8_t>(size);
          p.type_bits = static_cast<std::uint8_t>(8 * size);
          p.bits = static_cast<std::uint8_t>(bits);
          p.first_bit = static_cast<std::uint8_t>((8 * size - bits) / 2);
          p.is_signed = n % 3 == 0;
          round_trip(*k, p, n, false);
          round_trip(*k, p, n, true);
        }
}

BOOST_AUTO_TEST_CASE(bools_from_either_end_of_the_byte_agree_with_the_bitwise_reference) {
  for (const kernel_table* k : all_kernels())
    for (const bool msb_first : {false, true})
      for (std::size_t n = 0; n <= 257; ++n) {
        packing p;
        p.type_bits = p.bits = 1;
        p.is_bool = true;
        p.msb_first = msb_first;
        round_trip(*k, p, n, n % 2);
      }
}

BOOST_AUTO_TEST_CASE(reduced_precision_takes_both_forms_of_the_bits_above_and_writes_hdf5s) {
  // an integer of `precision` bits at `offset`, as HDF5 keeps it: pad bits zero
  for (const kernel_table* k : all_kernels())
    each_packing([&](packing p) {
      if (p.first_bit + p.bits == 8u * p.size) return;
      p.type_bits = static_cast<std::uint8_t>(p.first_bit + p.bits);
      p.zero_above = true;
      p.swap_memory = p.size > 1 && p.bits % 2;
      round_trip(*k, p, 13, p.bits % 2);
      packing extended = p;
      extended.zero_above = false;
      round_trip(*k, extended, 13, p.bits % 2);
    });
}

BOOST_AUTO_TEST_CASE(the_other_byte_order_in_memory_packs_the_same_bits) {
  for (const kernel_table* k : all_kernels())
    each_packing([&](packing p) {
      if (p.size == 1 || p.first_bit % 5) return;
      p.swap_memory = true;
      round_trip(*k, p, 19, p.bits % 2);
    });
}

BOOST_AUTO_TEST_CASE(the_first_value_that_would_lose_bits_is_found_wherever_it_is) {
  for (const kernel_table* k : all_kernels())
    each_packing([&](packing p) {
      if (p.bits == 8u * p.size || (p.size == 8 && p.first_bit % 7)) return;
      const std::size_t n = 67;
      std::vector<std::byte> in(n * p.size), out((n * p.bits + 7) / 8);
      // one dropped bit that disagrees: below the field, or above it
      const std::size_t where = random_bits() % n;
      std::uint64_t value = 0;
      if (p.first_bit > 0 && random_bits() % 2)
        value = std::uint64_t{1} << random_bits() % p.first_bit;
      else if (p.first_bit + p.bits < 8u * p.size)
        value = std::uint64_t{1} << (p.first_bit + p.bits + random_bits() % (8u * p.size - p.first_bit - p.bits));
      else
        value = std::uint64_t{1} << random_bits() % p.first_bit;
      put(p, value, in.data() + where * p.size);
      for (std::size_t i = where + 1; i < n; ++i) put(p, ~std::uint64_t{0}, in.data() + i * p.size);
      BOOST_REQUIRE_MESSAGE(first_refused(*k, p, in.data(), n) == where, describe(p, n));
      BOOST_REQUIRE_MESSAGE(encode_components(*k, p, in.data(), out.data(), n) == where, describe(p, n));
      p.truncate = true;
      BOOST_REQUIRE(encode_components(*k, p, in.data(), out.data(), n) == n);
      BOOST_REQUIRE(out == packed(p, in.data(), n));
    });
}

BOOST_AUTO_TEST_CASE(swaps_reverse_each_component_in_place_and_out_of_place) {
  for (const kernel_table* k : all_kernels())
    for (const unsigned size : {1u, 2u, 4u, 8u})
      for (std::size_t n = 0; n <= 257; ++n) {
        const auto in = n % 2 ? decoded_memory.back(n * size) : decoded_memory.front(n * size);
        const auto out = n % 2 ? encoded_memory.back(n * size) : encoded_memory.front(n * size);
        std::vector<std::byte> wanted(n * size);
        for (std::size_t i = 0; i < n * size; ++i) {
          in[i] = static_cast<std::byte>(random_bits());
          wanted[i / size * size + size - 1 - i % size] = in[i];
        }
        k->swap[log2_size(size)](in.data(), out.data(), n);
        BOOST_REQUIRE(std::equal(out.begin(), out.end(), wanted.begin()));
        k->swap[log2_size(size)](in.data(), in.data(), n);
        BOOST_REQUIRE(std::equal(in.begin(), in.end(), wanted.begin()));
      }
}
