// SPDX-License-Identifier: BSL-1.0
#include "compression/lz4.hpp"

#include "compression/pieces.hpp"

#include <algorithm>
#include <lz4.h>
#include <stdexcept>

namespace zarrbits::conversion {

namespace {

void put_length(buffer& out, std::size_t size) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(size >> (8 * i));
}

}  // namespace

void lz4_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                                    as_int(in.size(), "lz4"), as_int(out.size(), "lz4"));
  if (n < 0) throw damaged_chunk("lz4: a block that cannot be decoded");
  if (static_cast<std::size_t>(n) != out.size()) throw damaged_chunk("lz4: a block is shorter than declared");
}

buffer undo_lz4(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = big(in, 8, "lz4"), block = big(in, 4, "lz4");
  if (total != size || (block == 0 && size > 0)) throw damaged_chunk("lz4: its declared length differs from the chunk's");
  buffer out(size);
  for (std::size_t at = 0; at < size;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(block), size - at);
    const auto piece = take(in, big(in, 4, "lz4"), "lz4");
    const auto to = std::span(out).subspan(at, n);
    if (piece.size() == n) std::copy(piece.begin(), piece.end(), to.begin());  // stored, because compression would not shrink it
    else lz4_block(piece, to);
    at += n;
  }
  return out;
}

std::size_t lz4_size(std::span<const std::byte> in) { return static_cast<std::size_t>(big(in, 8, "lz4")); }

buffer numcodecs_lz4(std::span<const std::byte> bytes) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE) throw damaged_chunk("a chunk of 2 GiB, which LZ4 does not support");
  buffer out(4 + static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes.size()))));
  put_length(out, bytes.size());
  const int n = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(out.data() + 4),
                                     static_cast<int>(bytes.size()), static_cast<int>(out.size() - 4));
  if (n <= 0) throw std::runtime_error("LZ4 cannot compress a chunk");
  out.resize(4 + static_cast<std::size_t>(n));
  return out;
}

std::optional<buffer> numcodecs_lz4_of(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = big(in, 8, "lz4"), block = big(in, 4, "lz4");
  if (total != size) throw damaged_chunk("lz4: its declared length differs from the chunk's");
  if (size == 0 || size > LZ4_MAX_INPUT_SIZE || block < size) return {};
  const auto piece = take(in, big(in, 4, "lz4"), "lz4");
  if (piece.size() == size) return {};  // stored
  buffer out(4 + piece.size());
  put_length(out, size);
  std::copy(piece.begin(), piece.end(), out.begin() + 4);
  return out;
}

}  // namespace zarrbits::conversion
