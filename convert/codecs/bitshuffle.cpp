// SPDX-License-Identifier: BSL-1.0
#include "convert/codecs/bitshuffle.hpp"

#include "convert/codecs/lz4.hpp"
#include "convert/codecs/pieces.hpp"
#include "convert/codecs/zstd.hpp"

#include <algorithm>
#include <cstdint>

namespace zarrbits::conversion {

namespace {

// `in` holds, for each bit of the element, the bits of all elements, 8 in a byte, the first in the lowest.
void untranspose(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element) {
  const std::size_t n = out.size() / element, row = n / 8;
  std::fill(out.begin(), out.end(), std::byte{0});
  for (std::size_t b = 0; b < element; ++b) {
    for (unsigned k = 0; k < 8; ++k) {
      const std::byte* p = in.data() + (b * 8 + k) * row;
      for (std::size_t i = 0; i < row; ++i) {
        const auto bits = std::to_integer<unsigned>(p[i]);
        for (unsigned j = 0; j < 8; ++j) out[(i * 8 + j) * element + b] |= static_cast<std::byte>((bits >> j & 1) << k);
      }
    }
  }
}

}  // namespace

buffer undo_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size) {
  const std::size_t element = values.size() > 2 ? values[2] : 0;
  const unsigned compression = values.size() > 4 ? values[4] : 0;
  if (element == 0 || size % element != 0) throw damaged_chunk("bitshuffle: an element size that does not fit the chunk");
  std::uint64_t per_block = values.size() > 3 ? values[3] : 0;
  if (compression != 0) {
    if (big(in, 8, "bitshuffle") != size) throw damaged_chunk("bitshuffle: it announces another length than the chunk");
    per_block = big(in, 4, "bitshuffle") / element;
  }
  if (per_block == 0) per_block = std::max<std::uint64_t>(128, 8192 / element / 8 * 8);
  if (per_block % 8 != 0) throw damaged_chunk("bitshuffle: a block that is no multiple of 8 elements");
  const std::size_t elements = size / element, whole = elements / 8 * 8;
  buffer out(size), bits;
  for (std::size_t at = 0; at < whole;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(per_block), whole - at);
    const auto to = std::span(out).subspan(at * element, n * element);
    if (compression == 0) {
      untranspose(take(in, n * element, "bitshuffle"), to, element);
    } else {
      const auto piece = take(in, big(in, 4, "bitshuffle"), "bitshuffle");
      bits.resize(n * element);
      if (compression == 2) lz4_block(piece, bits);
      else if (compression == 3) zstd_block(piece, bits);
      else throw damaged_chunk("bitshuffle: a compression that is not known");
      untranspose(bits, to, element);
    }
    at += n;
  }
  const auto rest = take(in, (elements - whole) * element, "bitshuffle");
  std::copy(rest.begin(), rest.end(), out.begin() + static_cast<std::ptrdiff_t>(whole * element));
  return out;
}

bool knows_bitshuffle(std::span<const unsigned> values) {
  return values.size() >= 5 && (values[4] == 0 || values[4] == 2 || values[4] == 3);
}

std::size_t bitshuffle_size(std::span<const unsigned> values, std::span<const std::byte> in) {
  if (values.size() <= 4 || values[4] == 0) return in.size();
  return static_cast<std::size_t>(big(in, 8, "bitshuffle"));
}

}  // namespace zarrbits::conversion
