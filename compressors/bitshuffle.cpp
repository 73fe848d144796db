// SPDX-License-Identifier: BSL-1.0
#include "compressors/bitshuffle.hpp"

#include "compressors/byte_reader.hpp"
#include "compressors/lz4.hpp"
#include "compressors/shuffle.hpp"
#include "compressors/simd16.hpp"
#include "compressors/zstd.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace zarrbits::compressors {

namespace {

using words2 = std::uint64_t __attribute__((vector_size(16)));

// Transposes an 8 x 8 bit matrix: byte k has bit k of each of the 8 bytes that are returned. Word has 64 bits, with the first
// byte in the lowest, or it is a vector of such words.
template <class Word>
Word transposed(Word x) {
  Word t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

// `rows` are eight rows of `row` bytes, one for each bit: bits of all bytes of the plane, 8 in a byte, the first in the lowest.
void bits_to_bytes(const std::byte* rows, std::byte* plane, std::size_t row) {
  std::size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; i + 16 <= row; i += 16) {
      bytes16 v[8];
      for (unsigned k = 0; k < 8; ++k) v[k] = load16(rows + k * row + i);
      zip<3>(v);  // the 8 bytes of each i side by side
      for (unsigned k = 0; k < 8; ++k)
        store16(plane + 8 * i + 16 * k, reinterpret_cast<bytes16>(transposed(reinterpret_cast<words2>(v[k]))));
    }
  }
  for (; i < row; ++i) {
    std::uint64_t word = 0;
    for (unsigned k = 0; k < 8; ++k) word |= std::to_integer<std::uint64_t>(rows[k * row + i]) << (8 * k);
    word = transposed(word);
    for (unsigned k = 0; k < 8; ++k) plane[8 * i + k] = static_cast<std::byte>(word >> (8 * k));
  }
}

// `in` has a row for each bit of the element, with that bit of all elements. `planes` has room for the same number of bytes.
void untranspose(std::span<const std::byte> in, std::byte* out, std::size_t element, buffer& planes) {
  const std::size_t n = in.size() / element;
  if (element == 1) return bits_to_bytes(in.data(), out, n / 8);
  if (planes.size() < in.size()) planes.resize(in.size());
  for (std::size_t b = 0; b < element; ++b) bits_to_bytes(in.data() + b * n, planes.data() + b * n, n / 8);
  unshuffle(std::span(planes).first(in.size()), out, element);
}

// The inverse of bits_to_bytes(): each 8 x 8 matrix is transposed back, and four more rounds are a whole turn of the index.
void bytes_to_bits(const std::byte* plane, std::byte* rows, std::size_t row) {
  std::size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; i + 16 <= row; i += 16) {
      bytes16 v[8];
      for (unsigned k = 0; k < 8; ++k)
        v[k] = reinterpret_cast<bytes16>(transposed(reinterpret_cast<words2>(load16(plane + 8 * i + 16 * k))));
      zip<4>(v);
      for (unsigned k = 0; k < 8; ++k) store16(rows + k * row + i, v[k]);
    }
  }
  for (; i < row; ++i) {
    std::uint64_t word = 0;
    for (unsigned k = 0; k < 8; ++k) word |= std::to_integer<std::uint64_t>(plane[8 * i + k]) << (8 * k);
    word = transposed(word);
    for (unsigned k = 0; k < 8; ++k) rows[k * row + i] = static_cast<std::byte>(word >> (8 * k));
  }
}

// The inverse of untranspose(); `out` has room for as many bytes.
void transpose(std::span<const std::byte> in, std::byte* out, std::size_t element, buffer& planes) {
  const std::size_t n = in.size() / element;
  if (element == 1) return bytes_to_bits(in.data(), out, n / 8);
  if (planes.size() < in.size()) planes.resize(in.size());
  shuffle(in, planes.data(), element);
  for (std::size_t b = 0; b < element; ++b) bytes_to_bits(planes.data() + b * n, out + b * n, n / 8);
}

// The filter's parameters: two versions, and these.
struct parameters {
  std::size_t element = 0;      // bytes
  std::uint64_t per_block = 0;  // elements
  unsigned compression = none;
  int level = 0;  // of Zstandard
  static constexpr unsigned none = 0, lz4 = 2, zstd = 3;

  explicit parameters(std::span<const unsigned> values)
      : element(values.size() > 2 ? values[2] : 0),
        per_block(values.size() > 3 ? values[3] : 0),
        compression(values.size() > 4 ? values[4] : 0),
        level(values.size() > 5 ? static_cast<int>(values[5]) : 0) {}
  // Sets the length of a block if it is 0, the filter's own. Throws corrupt_chunk.
  void set_block() {
    if (per_block == 0) per_block = std::max<std::uint64_t>(128, 8192 / element / 8 * 8);
    if (per_block % 8 != 0) throw corrupt_chunk("bitshuffle: a block that is not a multiple of 8 elements");
  }
};

}  // namespace

buffer decode_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size) {
  parameters p(values);
  const std::size_t element = p.element;
  if (element == 0 || size % element != 0) throw corrupt_chunk("bitshuffle: an element size that does not fit the chunk");
  if (p.compression != parameters::none) {
    if (take_big_endian(in, 8, "bitshuffle") != size)
      throw corrupt_chunk("bitshuffle: its declared length differs from the chunk's");
    p.per_block = take_big_endian(in, 4, "bitshuffle") / element;
  }
  p.set_block();
  const std::size_t elements = size / element, aligned = elements / 8 * 8;
  buffer out(size), bits, planes;
  for (std::size_t index = 0; index < aligned;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(p.per_block), aligned - index);
    const auto block = std::span(out).subspan(index * element, n * element);
    if (p.compression == parameters::none) {
      untranspose(take_bytes(in, n * element, "bitshuffle"), block.data(), element, planes);
    } else {
      const auto piece = take_bytes(in, take_big_endian(in, 4, "bitshuffle"), "bitshuffle");
      bits.resize(n * element);
      if (p.compression == parameters::lz4) lz4_block(piece, bits);
      else if (p.compression == parameters::zstd) zstd_block(piece, bits);
      else throw corrupt_chunk("bitshuffle: an unknown compression");
      untranspose(bits, block.data(), element, planes);
    }
    index += n;
  }
  const auto tail = take_bytes(in, (elements - aligned) * element, "bitshuffle");
  std::copy(tail.begin(), tail.end(), out.begin() + static_cast<std::ptrdiff_t>(aligned * element));
  return out;
}

buffer encode_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in) {
  parameters p(values);
  if (p.element == 0 || in.size() % p.element != 0)
    throw corrupt_chunk("bitshuffle: an element size that does not fit the chunk");
  p.set_block();
  const std::uint64_t block_bytes = p.per_block * p.element;
  if (block_bytes > UINT32_MAX) throw corrupt_chunk("bitshuffle: a block of 4 GiB or more");
  const std::size_t aligned = in.size() / p.element / 8 * 8 * p.element;  // bytes
  buffer out, bits, planes;
  out.reserve(in.size() + 64);
  if (p.compression != parameters::none) {
    out.resize(12);
    put_big_endian(std::span(out).first(8), in.size());
    put_big_endian(std::span(out).subspan(8), block_bytes);
  }
  for (std::size_t offset = 0; offset < aligned;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(block_bytes), aligned - offset);
    bits.resize(n);
    transpose(in.subspan(offset, n), bits.data(), p.element, planes);
    if (p.compression == parameters::none) {
      out.insert(out.end(), bits.begin(), bits.end());
    } else {
      const std::size_t place = out.size();
      out.resize(place + 4);  // for its length
      if (p.compression == parameters::lz4) append_lz4_block(out, bits);
      else if (p.compression == parameters::zstd) append_zstd_frame(out, bits, p.level);
      else throw corrupt_chunk("bitshuffle: an unknown compression");
      put_big_endian(std::span(out).subspan(place, 4), out.size() - place - 4);
    }
    offset += n;
  }
  out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(aligned), in.end());
  return out;
}

bool is_supported_bitshuffle(std::span<const unsigned> values) {
  const unsigned compression = parameters(values).compression;
  return values.size() >= 5 &&
         (compression == parameters::none || compression == parameters::lz4 || compression == parameters::zstd);
}

std::size_t bitshuffle_size(std::span<const unsigned> values, std::span<const std::byte> in) {
  if (parameters(values).compression == parameters::none) return in.size();
  return static_cast<std::size_t>(take_big_endian(in, 8, "bitshuffle"));
}

}  // namespace zarrbits::compressors
