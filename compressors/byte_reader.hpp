// SPDX-License-Identifier: BSL-1.0
//
// Takes numbers and pieces from the beginning of a stream, for several codecs, and puts numbers into one. `codec` names the codec
// in exceptions.
//
#ifndef ZARRBITS_COMPRESSORS_BYTE_READER_HPP
#define ZARRBITS_COMPRESSORS_BYTE_READER_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace zarrbits::compressors {

// A big-endian number of `n` bytes.
inline std::uint64_t take_big_endian(std::span<const std::byte>& in, std::size_t n, const char* codec) {
  if (in.size() < n) throw corrupt_chunk(std::string(codec) + ": it ends too early");
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < n; ++i) v = v << 8 | std::to_integer<std::uint64_t>(in[i]);
  in = in.subspan(n);
  return v;
}

// The inverse: a number of out.size() bytes.
inline void put_big_endian(std::span<std::byte> out, std::uint64_t n) {
  for (std::size_t i = out.size(); i-- > 0; n >>= 8) out[i] = static_cast<std::byte>(n);
}

inline std::span<const std::byte> take_bytes(std::span<const std::byte>& in, std::uint64_t n, const char* codec) {
  if (in.size() < n) throw corrupt_chunk(std::string(codec) + ": it ends too early");
  const auto piece = in.first(static_cast<std::size_t>(n));
  in = in.subspan(static_cast<std::size_t>(n));
  return piece;
}

// For libraries that take lengths as int.
inline int checked_int(std::size_t n, const char* codec) {
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw corrupt_chunk(std::string(codec) + ": longer than possible");
  return static_cast<int>(n);
}

}  // namespace zarrbits::compressors

#endif
