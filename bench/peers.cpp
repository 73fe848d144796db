// SPDX-License-Identifier: BSL-1.0
//
// What C++ programs use today for the same work: Boost.Dynamic Bitset for packed bools, Boost.Endian for byte order. peers.py has
// those of Python. Names of rows are those of kernels.cpp.
//
#include "bench/data.hpp"
#include "bench/harness.hpp"

#include <boost/dynamic_bitset.hpp>
#include <boost/endian/conversion.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace {

using namespace zarrbits;
using bench::decoded_buffer, bench::encoded_buffer, bench::other_buffer;

using bitset = boost::dynamic_bitset<std::uint64_t>;

ZARRBITS_BENCH_OPAQUE void bits_from_bools(const std::byte* in, std::byte* out, std::size_t n, bitset& bits) {
  for (std::size_t i = 0; i < n; ++i) bits[i] = in[i] != std::byte{0};
  boost::to_block_range(bits, reinterpret_cast<std::uint64_t*>(out));
}

ZARRBITS_BENCH_OPAQUE void bools_from_bits(const std::byte* in, std::byte* out, std::size_t n, bitset& bits) {
  const auto* blocks = reinterpret_cast<const std::uint64_t*>(in);
  boost::from_block_range(blocks, blocks + n / 64, bits);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(bits.test(i));
}

template <class T>
ZARRBITS_BENCH_OPAQUE void reverse(const std::byte* in, std::byte* out, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T v;
    std::memcpy(&v, in + at, sizeof v);
    v = boost::endian::endian_reverse(v);
    std::memcpy(out + at, &v, sizeof v);
  }
}

template <class T>
void add_reverse(std::size_t bytes) {
  const auto prepare = [bytes](bool in_place) {
    bench::fill({.size = 1}, decoded_buffer(), bytes);
    std::memcpy(encoded_buffer(), decoded_buffer(), bytes);
    const std::byte* from = in_place ? encoded_buffer() : decoded_buffer();
    return bench::subject{.run = [=] { return reverse<T>(from, encoded_buffer(), bytes), true; }};
  };
  const std::string size = std::to_string(sizeof(T));
  bench::add({.name = "swap/" + size, .peer = "Boost.Endian loop", .bytes = bytes}, [=](bench::row&) { return prepare(false); });
  bench::add({.name = "swap_inplace/" + size, .peer = "Boost.Endian loop", .bytes = bytes},
             [=](bench::row&) { return prepare(true); });
}

void register_cases() {
  for (const std::size_t bytes : bench::sizes()) {
    const detail::packing bools{.type_bits = 1, .bits = 1, .is_bool = true};
    bench::add({.name = "encode/bool", .peer = "boost::dynamic_bitset", .bytes = bytes}, [=](bench::row&) {
      bench::fill(bools, decoded_buffer(), bytes);
      auto bits = std::make_shared<bitset>(bytes);
      return bench::subject{.run = [=] { return bits_from_bools(decoded_buffer(), encoded_buffer(), bytes, *bits), true; }};
    });
    bench::add({.name = "decode/bool", .peer = "boost::dynamic_bitset", .bytes = bytes}, [=](bench::row&) {
      bench::fill(bools, decoded_buffer(), bytes);
      auto bits = std::make_shared<bitset>(bytes);
      bits_from_bools(decoded_buffer(), encoded_buffer(), bytes, *bits);
      return bench::subject{.run = [=] { return bools_from_bits(encoded_buffer(), other_buffer(), bytes, *bits), true; },
                            .verify = [=] { return std::memcmp(other_buffer(), decoded_buffer(), bytes) == 0; }};
    });
    add_reverse<std::uint16_t>(bytes);
    add_reverse<std::uint32_t>(bytes);
    add_reverse<std::uint64_t>(bytes);
  }
}

}  // namespace

int main(int argc, char** argv) { return zarrbits::bench::main(argc, argv, register_cases); }
