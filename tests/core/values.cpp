// SPDX-License-Identifier: BSL-1.0
//
// One component at a time, as streams do at their cuts, against many at a time, as kernels do.
//
#include "core/kernels/kernels.hpp"
#include "core/packing.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

using namespace zarrbits::detail;

BOOST_AUTO_TEST_CASE(single_values_encode_and_decode_as_the_kernels_do) {
  std::mt19937_64 random(3);
  std::size_t refused = 0, taken = 0;
  for (int turn = 0; turn < 200000; ++turn) {
    packing p;
    p.size = static_cast<std::uint8_t>(1u << random() % 4);
    const unsigned width = 8u * p.size;
    p.first_bit = static_cast<std::uint8_t>(random() % width);
    p.bits = static_cast<std::uint8_t>(1 + random() % (width - p.first_bit));
    p.type_bits = static_cast<std::uint8_t>(random() % 2 ? width : p.first_bit + p.bits);
    p.is_signed = random() % 2;
    p.zero_above = random() % 2;
    p.swap_memory = p.size > 1 && random() % 2;
    p.truncate = random() % 2;
    // values near the field, so that about half of them fit
    std::uint64_t value = random();
    if (random() % 2) value = (value % 16 - (p.is_signed ? 8 : 0)) << p.first_bit;
    if (p.type_bits < width && random() % 2) value &= (std::uint64_t{1} << p.type_bits) - 1;
    std::byte in[8], out[8] = {}, back[8] = {}, again[8] = {};
    store_component(p, value, in);
    const std::uint64_t stored = load_component(p, in);
    BOOST_REQUIRE(stored == (width == 64 ? value : value & ((std::uint64_t{1} << width) - 1)));

    std::uint64_t bits = 0;
    const bool fits = encode_value(p, stored, bits);
    BOOST_REQUIRE((encode_components(portable_kernels, p, in, out, 1) == 1) == fits);
    BOOST_REQUIRE((first_refused(portable_kernels, p, in, 1) == 1) == fits);
    ++(fits ? taken : refused);
    if (!fits) continue;
    std::uint64_t packed = 0;
    for (unsigned i = 0; i < (p.bits + 7u) / 8; ++i) packed |= std::to_integer<std::uint64_t>(out[i]) << (8 * i);
    BOOST_REQUIRE(packed == bits);

    std::uint64_t decoded = 0;
    BOOST_REQUIRE(decode_value(p, bits, decoded));
    store_component(p, decoded, back);
    BOOST_REQUIRE(decode_components(portable_kernels, p, out, again, 1) == 1);
    BOOST_REQUIRE(std::memcmp(back, again, p.size) == 0);
    if (!p.truncate && p.type_bits == width && !p.zero_above) BOOST_REQUIRE(std::memcmp(back, in, p.size) == 0);
  }
  BOOST_TEST(refused > 10000u);
  BOOST_TEST(taken > 10000u);
}
