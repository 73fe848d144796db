// SPDX-License-Identifier: BSL-1.0
//
// Noise for the codecs: random bits in every place where a codec keeps them, and nothing else, so that checked encoding takes it.
//
#ifndef ZARRBITS_BENCH_DATA_HPP
#define ZARRBITS_BENCH_DATA_HPP

#include "core/packing.hpp"

#include <cstddef>

namespace zarrbits::bench {

// Fills `bytes` (a multiple of 4096) with components that `p` encodes without loss. The same ones for the same p.
void fill(const detail::packing& p, std::byte* out, std::size_t bytes);

}  // namespace zarrbits::bench

#endif
