// SPDX-License-Identifier: BSL-1.0
#include "bench/data.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

namespace zarrbits::bench {

void fill(const detail::packing& p, std::byte* out, std::size_t bytes) {
  // 1 MiB of random components, repeated: no kernel remembers so much, and no compressor here looks back that far
  const std::size_t period = std::min<std::size_t>(bytes, std::size_t{1} << 20);
  std::mt19937_64 random(1);
  for (std::size_t at = 0; at < period; at += p.size) {
    std::uint64_t value = 0;
    detail::decode_value(p, random() & (p.encoded_bits() < 64 ? (std::uint64_t{1} << p.encoded_bits()) - 1 : ~std::uint64_t{0}),
                         value);
    detail::store_component(p, value, out + at);
  }
  for (std::size_t at = period; at < bytes; at += period) std::memcpy(out + at, out, std::min(period, bytes - at));
}

}  // namespace zarrbits::bench
