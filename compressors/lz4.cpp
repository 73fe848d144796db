// SPDX-License-Identifier: BSL-1.0
#include "compressors/lz4.hpp"

#include "compressors/byte_reader.hpp"

#include <algorithm>
#include <lz4.h>
#include <stdexcept>

namespace zarrbits::compressors {

namespace {

void put_length(buffer& out, std::size_t size) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(size >> (8 * i));
}

// The length in front of numcodecs' block.
std::size_t declared_length(std::span<const std::byte> in) {
  if (in.size() <= 4) throw corrupt_chunk("lz4: it is shorter than its declared length, and a block");
  std::size_t declared = 0;
  for (unsigned i = 0; i < 4; ++i) declared |= std::to_integer<std::size_t>(in[i]) << (8 * i);
  return declared;
}

// A chunk of filter 32004 of one block.
buffer framed_block(std::span<const std::byte> block, std::size_t size) {
  buffer out(16 + block.size());
  const std::span<std::byte> head(out);
  put_big_endian(head.subspan(0, 8), size);
  put_big_endian(head.subspan(8, 4), size);
  put_big_endian(head.subspan(12, 4), block.size());
  std::copy(block.begin(), block.end(), out.begin() + 16);
  return out;
}

}  // namespace

void lz4_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                                    checked_int(in.size(), "lz4"), checked_int(out.size(), "lz4"));
  if (n < 0) throw corrupt_chunk("lz4: a block that cannot be decoded");
  if (static_cast<std::size_t>(n) != out.size()) throw corrupt_chunk("lz4: a block is shorter than declared");
}

buffer decompress_lz4(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = take_big_endian(in, 8, "lz4"), block = take_big_endian(in, 4, "lz4");
  if (total != size || (block == 0 && size > 0)) throw corrupt_chunk("lz4: its declared length differs from the chunk's");
  buffer out(size);
  for (std::size_t offset = 0; offset < size;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(block), size - offset);
    const auto piece = take_bytes(in, take_big_endian(in, 4, "lz4"), "lz4");
    const auto destination = std::span(out).subspan(offset, n);
    if (piece.size() == n)
      std::copy(piece.begin(), piece.end(), destination.begin());  // stored, because compression would not shrink it
    else lz4_block(piece, destination);
    offset += n;
  }
  return out;
}

std::size_t lz4_size(std::span<const std::byte> in) { return static_cast<std::size_t>(take_big_endian(in, 8, "lz4")); }

buffer decompress_lz4_numcodecs_frame(std::span<const std::byte> in, std::size_t max_size) {
  const std::size_t size = declared_length(in);
  if (size > max_size || size > LZ4_MAX_INPUT_SIZE) throw limit_exceeded("lz4: it decodes to more than the chunk");
  buffer out(size);
  lz4_block(in.subspan(4), out);
  return out;
}

void append_lz4_block(buffer& out, std::span<const std::byte> bytes) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE) throw corrupt_chunk("a chunk of 2 GiB, which LZ4 does not support");
  const std::size_t before = out.size();
  const int bound = LZ4_compressBound(static_cast<int>(bytes.size()));
  out.resize(before + static_cast<std::size_t>(bound));
  const int n = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(out.data() + before),
                                     static_cast<int>(bytes.size()), bound);
  if (n <= 0) throw std::runtime_error("LZ4 cannot compress a chunk");
  out.resize(before + static_cast<std::size_t>(n));
}

buffer lz4_numcodecs_frame(std::span<const std::byte> bytes) {
  buffer out(4);
  put_length(out, bytes.size());
  append_lz4_block(out, bytes);
  return out;
}

std::optional<buffer> lz4_hdf5_to_numcodecs(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = take_big_endian(in, 8, "lz4"), block = take_big_endian(in, 4, "lz4");
  if (total != size) throw corrupt_chunk("lz4: its declared length differs from the chunk's");
  if (size == 0 || size > LZ4_MAX_INPUT_SIZE || block < size) return {};
  const auto piece = take_bytes(in, take_big_endian(in, 4, "lz4"), "lz4");
  if (piece.size() == size) return {};  // stored
  buffer out(4 + piece.size());
  put_length(out, size);
  std::copy(piece.begin(), piece.end(), out.begin() + 4);
  return out;
}

buffer lz4_hdf5_frame(std::span<const std::byte> bytes) {
  const buffer numcodecs = lz4_numcodecs_frame(bytes);
  if (auto framed = lz4_numcodecs_to_hdf5(numcodecs, bytes.size())) return std::move(*framed);
  return framed_block(bytes, bytes.size());  // as long as its content: stored
}

std::optional<buffer> lz4_numcodecs_to_hdf5(std::span<const std::byte> in, std::size_t size) {
  if (declared_length(in) != size) throw corrupt_chunk("lz4: its declared length differs from the chunk's");
  const auto block = in.subspan(4);
  if (size == 0 || size > LZ4_MAX_INPUT_SIZE || block.size() == size || block.size() > LZ4_MAX_INPUT_SIZE) return {};
  return framed_block(block, size);
}

}  // namespace zarrbits::compressors
