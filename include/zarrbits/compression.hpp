// SPDX-License-Identifier: BSL-1.0
//
// How a conversion compresses chunks that it encodes again.
//
//   zarrbits::convert_options o{.source = {.name = "in.h5"}, .target = {.name = "out.zarr"}};
//   o.encoding.compress = {.kind = zarrbits::compressor::blosc, .level = 5};  // blosc:zstd:5, numbers with their bytes shuffled
//
#ifndef ZARRBITS_COMPRESSION_HPP
#define ZARRBITS_COMPRESSION_HPP

#include <zarrbits/detail/requirements.hpp>

namespace zarrbits {

// A codec that compresses chunks.
enum class compressor {
  none,   // chunks are not compressed
  gzip,   // levels 1 to 9, default 6
  zstd,   // levels 1 to 22, default 3
  blosc,  // levels 1 to 9, default 5
};
// The compressor inside blosc.
enum class blosc_compressor {
  blosclz,  // only in copied chunks: many readers are built without it
  lz4,      // fast
  lz4hc,    // slower, smaller than lz4
  snappy,   // as blosclz
  zlib,     // as gzip
  zstd,     // the smallest
};
// How blosc orders the bytes of numbers before it compresses them.
enum class blosc_shuffle {
  none,   // as they are
  bytes,  // first bytes of all numbers, second bytes, ...
  bits,   // first bits of all numbers, second bits, ...
};
// How to compress chunks that are encoded again.
struct compression {
  compressor kind = compressor::none;                // the codec
  int level = 0;                                     // 0: the codec's default
  blosc_compressor inside = blosc_compressor::zstd;  // blosc only
  blosc_shuffle shuffle = blosc_shuffle::bytes;      // blosc only
};

}  // namespace zarrbits

#endif
