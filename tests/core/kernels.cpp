// SPDX-License-Identifier: BSL-1.0
//
// Conformance of the kernels: the portable table against a reference that goes bit by bit, every other table that this CPU can
// run (or the one that ZARRBITS_KERNELS names) against both, for every size, number of bits, first bit and sign, between guard
// pages, at any offset, with any number of components.
//
#include "core/kernels/kernels.hpp"
#include "core/packing.hpp"
#include "tests/core/bitwise_reference.hpp"
#include "tests/support/guarded_buffer.hpp"
#include "tests/support/kernel_tables.hpp"
#include "tests/support/margin_buffer.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace zarrbits::detail;

namespace {

std::mt19937_64 random_bits(42);

guarded_buffer decoded_memory(1 << 16), encoded_memory(1 << 16), again_memory(1 << 16);

// n components that fit, encoded and decoded by `k` at both ends of guarded memory.
void round_trip(const kernel_table& k, const packing& p, std::size_t n, bool at_back) {
  const std::size_t size = (n * p.bits + 7) / 8;
  const auto in = at_back ? decoded_memory.back(n * p.size) : decoded_memory.front(n * p.size);
  const auto out = at_back ? encoded_memory.back(size) : encoded_memory.front(size);
  const auto again = at_back ? again_memory.back(n * p.size) : again_memory.front(n * p.size);
  std::vector<std::byte> bits(size);
  for (auto& b : bits) b = static_cast<std::byte>(random_bits());
  for (std::size_t i = n * p.bits; i < size * 8; ++i)
    bits[i / 8] &= static_cast<std::byte>(~(1u << (p.msb_first ? 7 - i % 8 : i % 8)));
  for (std::size_t i = 0; i < n; ++i) put(p, unpacked(p, bits, i), in.data() + i * p.size);
  const std::vector<std::byte> wanted = packed(p, in.data(), n);

  std::memset(out.data(), 0xa5, out.size());
  BOOST_REQUIRE_MESSAGE(encode_components(k, p, in.data(), out.data(), n) == n,
                        std::string(k.name) + ": refused " + describe(p, n));
  BOOST_REQUIRE_MESSAGE(std::equal(out.begin(), out.end(), wanted.begin(), wanted.end()),
                        std::string(k.name) + ": encode " + describe(p, n));
  BOOST_REQUIRE(first_refused(k, p, in.data(), n) == n);

  std::memset(again.data(), 0x5a, again.size());
  BOOST_REQUIRE(decode_components(k, p, out.data(), again.data(), n) == n);
  BOOST_REQUIRE_MESSAGE(std::equal(in.begin(), in.end(), again.begin()), std::string(k.name) + ": decode " + describe(p, n));

  // in place: the packed bytes overwrite what has been read
  std::copy(in.begin(), in.end(), again.begin());
  encode_components(k, p, again.data(), again.data(), n);
  BOOST_REQUIRE_MESSAGE(std::equal(wanted.begin(), wanted.end(), again.begin()),
                        std::string(k.name) + ": encode in place " + describe(p, n));
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
  for (const kernel_table* k : tables_to_test())
    each_packing([&](const packing& p) {
      ++packings;
      for (const std::size_t n :
           {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{17}, 1 + static_cast<std::size_t>(random_bits() % 90)})
        round_trip(*k, p, n, n % 2);
    });
  BOOST_TEST(packings == tables_to_test().size() * 2 * (36 + 136 + 528 + 2080));
}

// Where there are more components, kernels take several words at a time, or look up what few bits become.
BOOST_AUTO_TEST_CASE(some_hundred_components_agree_with_the_bitwise_reference) {
  for (const kernel_table* k : tables_to_test())
    each_packing([&](const packing& p) {
      if (p.first_bit % 14 <= 1) round_trip(*k, p, 256 + static_cast<std::size_t>(random_bits() % 90), p.bits % 2);
    });
}

// Kernels may go through a buffer block by block.
BOOST_AUTO_TEST_CASE(few_bits_of_many_wide_components_agree_with_the_bitwise_reference) {
  constexpr std::size_t n = 4096 + 77;
  for (const kernel_table* k : tables_to_test())
    each_packing([&](packing p) {
      if (p.size < 4 || p.bits >= 8 || p.first_bit % 14 > 1) return;
      round_trip(*k, p, n, p.bits % 2);
      std::vector<std::byte> in(n * p.size), out((n * p.bits + 7) / 8);
      for (const std::size_t where : {std::size_t{4095}, std::size_t{4096}, n - 1}) {
        const unsigned lost = p.first_bit > 0 ? p.first_bit - 1u : 8u * p.size - 1;
        put(p, std::uint64_t{1} << lost, in.data() + where * p.size);
        BOOST_REQUIRE_MESSAGE(encode_components(*k, p, in.data(), out.data(), n) == where,
                              std::string(k->name) + ": " + describe(p, n));
        put(p, 0, in.data() + where * p.size);
      }
    });
}

// Components that fit, from random bits.
void fill_with_what_fits(const packing& p, std::span<std::byte> in, std::size_t n) {
  std::vector<std::byte> bits((n * p.bits + 7) / 8);
  for (auto& b : bits) b = static_cast<std::byte>(random_bits());
  decode_components(portable_kernels, p, bits.data(), in.data(), n);
}

BOOST_AUTO_TEST_CASE(every_number_of_components_stays_within_its_memory) {
  for (const kernel_table* k : tables_to_test())
    for (const unsigned size : {1u, 2u, 4u, 8u})
      for (unsigned bits = 1; bits < 8 * size; ++bits)
        for (std::size_t n = 0; n <= 257; ++n) {
          packing p;
          p.size = static_cast<std::uint8_t>(size);
          p.type_bits = static_cast<std::uint8_t>(8 * size);
          p.bits = static_cast<std::uint8_t>(bits);
          p.first_bit = static_cast<std::uint8_t>(n % 2 ? (8 * size - bits) / 2 : 0);
          p.is_signed = n % 3 == 0;
          p.truncate = n % 5 == 0;
          const bool at_back = (n + bits) % 2;
          const std::size_t encoded = (n * bits + 7) / 8;
          const auto in = at_back ? decoded_memory.back(n * size) : decoded_memory.front(n * size);
          const auto out = at_back ? encoded_memory.back(encoded) : encoded_memory.front(encoded);
          fill_with_what_fits(p, in, n);
          std::vector<std::byte> wanted(encoded), again(n * size);
          encode_components(portable_kernels, p, in.data(), wanted.data(), n);
          BOOST_REQUIRE(encode_components(*k, p, in.data(), out.data(), n) == n);
          BOOST_REQUIRE_MESSAGE(std::equal(out.begin(), out.end(), wanted.begin()),
                                std::string(k->name) + ": encode " + describe(p, n));
          std::copy(in.begin(), in.end(), again.begin());
          std::fill(in.begin(), in.end(), std::byte{0x5a});
          decode_components(*k, p, out.data(), in.data(), n);
          BOOST_REQUIRE_MESSAGE(std::equal(in.begin(), in.end(), again.begin()),
                                std::string(k->name) + ": decode " + describe(p, n));
        }
}

BOOST_AUTO_TEST_CASE(every_packing_is_the_same_at_any_offset_of_both_pointers_and_in_place) {
  margin_buffer in_memory, out_memory, place_memory;
  std::vector<bool> offsets(64 * 64), counts(258);
  for (const kernel_table* k : tables_to_test()) {
    std::size_t turn = 0;
    each_packing([&](packing p) {
      ++turn;
      p.truncate = turn % 7 == 0;
      const std::size_t n = turn * 97 % 258, from = turn % 64, to = turn / 64 % 64;
      offsets[from * 64 + to] = counts[n] = true;
      const std::size_t encoded = (n * p.bits + 7) / 8;
      const auto in = in_memory.at(from, n * p.size), out = out_memory.at(to, encoded);
      const auto place = place_memory.at(to, n * p.size);
      fill_with_what_fits(p, in, n);
      std::copy(in.begin(), in.end(), place.begin());
      std::vector<std::byte> wanted(encoded);
      encode_components(portable_kernels, p, in.data(), wanted.data(), n);
      const std::string what =
          std::string(k->name) + ": " + describe(p, n) + " from " + std::to_string(from) + " to " + std::to_string(to);
      BOOST_REQUIRE_MESSAGE(encode_components(*k, p, in.data(), out.data(), n) == n, what);
      BOOST_REQUIRE_MESSAGE(std::equal(out.begin(), out.end(), wanted.begin()) && out_memory.intact(), what);
      BOOST_REQUIRE_MESSAGE(encode_components(*k, p, place.data(), place.data(), n) == n, what);
      BOOST_REQUIRE_MESSAGE(std::equal(wanted.begin(), wanted.end(), place.begin()) && place_memory.intact(), what);
      const auto again = place_memory.at(from, n * p.size);
      decode_components(*k, p, out.data(), again.data(), n);
      BOOST_REQUIRE_MESSAGE(std::equal(in.begin(), in.end(), again.begin()) && place_memory.intact(), what);
    });
  }
  BOOST_TEST(std::count(offsets.begin(), offsets.end(), true) == 64 * 64);
  BOOST_TEST(std::count(counts.begin(), counts.end(), true) == 258);
}

BOOST_AUTO_TEST_CASE(a_loss_is_found_at_every_position_and_what_comes_before_it_is_encoded) {
  for (const kernel_table* k : tables_to_test())
    for (const unsigned size : {1u, 2u, 4u, 8u})
      for (unsigned bits = 1; bits < 8 * size; bits += size == 8 ? 2 : 1)
        for (const bool is_signed : {false, true}) {
          packing p;
          p.size = static_cast<std::uint8_t>(size);
          p.type_bits = static_cast<std::uint8_t>(8 * size);
          p.bits = static_cast<std::uint8_t>(bits);
          p.first_bit = static_cast<std::uint8_t>(random_bits() % 2 * ((8 * size - bits) / 2));
          p.is_signed = is_signed;
          const std::size_t n = 131;
          std::vector<std::byte> in(n * size), out((n * bits + 7) / 8), wanted(out.size());
          fill_with_what_fits(p, in, n);
          for (std::size_t at = 0; at < n; at += 1 + (at > 66 && at < 126)) {
            // one of the bits that are dropped
            unsigned bit = static_cast<unsigned>(random_bits() % (8 * size - bits));
            if (bit >= p.first_bit) bit += bits;
            std::byte* component = in.data() + at * size;
            put(p, number(p, component) ^ std::uint64_t{1} << bit, component);
            BOOST_REQUIRE_MESSAGE(
                encode_components(*k, p, in.data(), out.data(), n) == at,
                std::string(k->name) + ": " + describe(p, n) + ", bit " + std::to_string(bit) + " of " + std::to_string(at));
            const std::size_t whole = at * bits / 8;
            encode_components(portable_kernels, p, in.data(), wanted.data(), at);
            BOOST_REQUIRE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(whole), wanted.begin()));
            std::vector<std::byte> place = in;
            BOOST_REQUIRE(encode_components(*k, p, place.data(), place.data(), n) == at);
            BOOST_REQUIRE(std::equal(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(whole), wanted.begin()));
            put(p, number(p, component) ^ std::uint64_t{1} << bit, component);
          }
        }
}

BOOST_AUTO_TEST_CASE(bools_from_either_end_of_the_byte_agree_with_the_bitwise_reference) {
  for (const kernel_table* k : tables_to_test())
    for (const bool msb_first : {false, true})
      for (std::size_t n = 0; n <= 257; ++n) {
        packing p;
        p.type_bits = p.bits = 1;
        p.is_bool = true;
        p.msb_first = msb_first;
        round_trip(*k, p, n, n % 2);
      }
}

BOOST_AUTO_TEST_CASE(a_bool_that_is_neither_0_nor_1_is_found_or_counts_as_true_at_every_position) {
  for (const kernel_table* k : tables_to_test())
    for (const bool msb_first : {false, true}) {
      packing p;
      p.type_bits = p.bits = 1;
      p.is_bool = true;
      p.msb_first = msb_first;
      const std::size_t n = 263;
      std::vector<std::byte> in(n), out((n + 7) / 8);
      for (auto& b : in) b = static_cast<std::byte>(random_bits() % 2);
      for (std::size_t at = 0; at < n; ++at)
        for (unsigned bit = 1; bit < 8; ++bit) {
          const std::byte before = in[at];
          in[at] = static_cast<std::byte>(1u << bit | (at + bit) % 2);
          p.nonzero_is_true = false;
          BOOST_REQUIRE(encode_components(*k, p, in.data(), out.data(), n) == at);
          p.nonzero_is_true = true;
          BOOST_REQUIRE(encode_components(*k, p, in.data(), out.data(), n) == n);
          in[at] = std::byte{1};
          BOOST_REQUIRE_MESSAGE(out == packed(p, in.data(), n), std::string(k->name) + ": byte " + std::to_string(at));
          in[at] = before;
        }
    }
}

BOOST_AUTO_TEST_CASE(reduced_precision_takes_both_forms_of_the_bits_above_and_writes_hdf5s) {
  // an integer of `precision` bits at `offset`, as HDF5 keeps it: pad bits zero
  for (const kernel_table* k : tables_to_test())
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
  for (const kernel_table* k : tables_to_test())
    each_packing([&](packing p) {
      if (p.size == 1 || p.first_bit % 5) return;
      p.swap_memory = true;
      round_trip(*k, p, 19, p.bits % 2);
    });
}

BOOST_AUTO_TEST_CASE(the_first_value_that_would_lose_bits_is_found_wherever_it_is) {
  for (const kernel_table* k : tables_to_test())
    each_packing([&](packing p) {
      if (p.bits == 8u * p.size || (p.size == 8 && p.first_bit % 7)) return;
      const std::size_t n = 67;
      std::vector<std::byte> in(n * p.size), out((n * p.bits + 7) / 8);
      // one dropped bit that disagrees: below the field, or above it
      const std::size_t where = random_bits() % n;
      std::uint64_t value = 0;
      if (p.first_bit > 0 && random_bits() % 2) value = std::uint64_t{1} << random_bits() % p.first_bit;
      else if (p.first_bit + p.bits < 8u * p.size)
        value = std::uint64_t{1} << (p.first_bit + p.bits + random_bits() % (8u * p.size - p.first_bit - p.bits));
      else value = std::uint64_t{1} << random_bits() % p.first_bit;
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
  for (const kernel_table* k : tables_to_test())
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

BOOST_AUTO_TEST_CASE(swaps_of_more_than_caches_hold_reverse_each_component) {
  std::vector<std::uint32_t> in((32 << 20) / 4 + 77), out(in.size() + 1);
  for (std::uint32_t& v : in) v = static_cast<std::uint32_t>(random_bits());
  for (const kernel_table* k : tables_to_test())
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {  // in bytes
      std::byte* const to = reinterpret_cast<std::byte*>(out.data()) + offset;
      out.back() = 0;
      k->swap[2](reinterpret_cast<const std::byte*>(in.data()), to, in.size());
      const std::byte* const behind = to + 4 * in.size();
      bool right = std::all_of(behind, reinterpret_cast<const std::byte*>(out.data() + out.size()),
                               [](std::byte b) { return b == std::byte{0}; });
      for (std::size_t i = 0; i < in.size(); ++i) {
        std::uint32_t v = 0;
        std::memcpy(&v, to + 4 * i, 4);
        right = right && v == __builtin_bswap32(in[i]);
      }
      BOOST_TEST(right, k->name << ", offset " << offset);
    }
}

BOOST_AUTO_TEST_CASE(bytes_of_fewer_bits_get_their_sign_or_zeros_above_in_place_and_out_of_place) {
  for (const kernel_table* k : tables_to_test())
    for (packing p{.size = 1, .bits = 1, .full_width = true}; p.bits < 8; ++p.bits)
      for (const int kind : {0, 1, 2}) {  // unsigned, signed, bool
        p.is_signed = kind == 1;
        p.is_bool = kind == 2;
        if (p.is_bool && p.bits != 1) continue;
        for (std::size_t n = 0; n <= 257; ++n) {
          const auto in = n % 2 ? decoded_memory.back(n) : decoded_memory.front(n);
          const auto out = n % 2 ? encoded_memory.back(n) : encoded_memory.front(n);
          std::vector<std::byte> wanted(n);
          for (std::size_t i = 0; i < n; ++i) {
            const unsigned v = i % 3 == 0 ? 0 : static_cast<std::uint8_t>(random_bits()), sign = 1u << (p.bits - 1),
                           kept = v % (2 * sign);
            in[i] = static_cast<std::byte>(v);
            wanted[i] = static_cast<std::byte>(p.is_bool ? v != 0 : p.is_signed && kept >= sign ? kept + 256 - 2 * sign : kept);
          }
          k->extend(p, in.data(), out.data(), n);
          BOOST_REQUIRE(std::equal(out.begin(), out.end(), wanted.begin()));
          k->extend(p, in.data(), in.data(), n);
          BOOST_REQUIRE(std::equal(in.begin(), in.end(), wanted.begin()));
        }
      }
}

namespace {

// The functions of a table, and those that are the same in another one.
int functions_of_both(const kernel_table& a, const kernel_table& b) {
  int n = (a.encode_bool == b.encode_bool) + (a.decode_bool == b.decode_bool) + (a.extend == b.extend);
  for (int i = 0; i < 4; ++i)
    n += (a.swap[i] == b.swap[i]) + (a.encode[i] == b.encode[i]) + (a.decode[i] == b.decode[i]) + (a.check[i] == b.check[i]);
  return n;
}
int functions(const kernel_table& k) { return functions_of_both(k, k); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_table_of_this_build_is_tested_or_says_that_it_is_not) {
  BOOST_TEST(all_kernels().front() == &portable_kernels);
  const auto tested = tables_to_test();
  for (const char* name : kernel_names())
    if (const kernel_table* k = kernels_by_name(name)) {
      BOOST_TEST(std::count(all_kernels().begin(), all_kernels().end(), k) == 1);
      if (std::count(tested.begin(), tested.end(), k) == 0) {
        std::cerr << "SKIPPED: " << name << " kernels: ZARRBITS_KERNELS names others\n";
        continue;
      }
      // others may have some of the portable ones
      std::cout << name << ": " << functions(*k) - (k == &portable_kernels ? 0 : functions_of_both(*k, portable_kernels))
                << " kernels tested on a " << (std::endian::native == std::endian::big ? "big" : "little") << "-endian host"
                << std::endl;
    } else std::cerr << "SKIPPED: " << name << " kernels: this CPU cannot run them, NOTHING here has tested them\n";
  BOOST_TEST(kernels_by_name("") == nullptr);
  BOOST_TEST(kernels_by_name("fastest") == nullptr);
}
