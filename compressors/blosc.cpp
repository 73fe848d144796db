// SPDX-License-Identifier: BSL-1.0
#include "compressors/blosc.hpp"

#include "compressors/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <blosc.h>
#include <climits>
#include <stdexcept>

namespace zarrbits::compressors {

const std::size_t max_blosc_bytes = BLOSC_MAX_BUFFERSIZE;

std::size_t blosc_size(std::span<const std::byte> in) {
  std::size_t announced = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &announced) != 0)
    throw corrupt_chunk("blosc: not a Blosc 1 buffer");
  return announced;
}

buffer decompress_blosc(std::span<const std::byte> in, std::size_t size) {
  if (blosc_size(in) != size) throw corrupt_chunk("blosc: its declared length differs from the chunk's");
  buffer out(size);
  if (blosc_decompress_ctx(in.data(), out.data(), out.size(), 1) != checked_int(size, "blosc"))
    throw corrupt_chunk("blosc: it cannot be decoded");
  return out;
}

void check_blosc(std::span<const std::byte> in, std::size_t size) {
  std::size_t announced = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH || std::to_integer<unsigned>(in[0]) != BLOSC_VERSION_FORMAT ||
      blosc_cbuffer_validate(in.data(), in.size(), &announced) != 0) {
    throw corrupt_chunk("blosc: not a Blosc 1 buffer");
  }
  if (announced != size) throw corrupt_chunk("blosc: its declared length differs from the chunk's");
  const auto flags = std::to_integer<unsigned>(in[2]);
  if ((flags & BLOSC_MEMCPYED) == 0 && flags >> 5 == BLOSC_SNAPPY_FORMAT)
    throw corrupt_chunk("blosc: compressed with snappy, which Zarr readers do not have");
}

namespace {

// A block for Zstandard, of 128 KiB and with its own tables, for each byte of the type: noisy bytes are stored without cost, and
// each of the others is compressed by its own statistics. Blosc's default blocks are smaller, and mix them.
std::size_t zstd_block_of(std::size_t typesize) {
  constexpr std::size_t one = 128U << 10;
  return std::clamp(typesize, std::size_t{4}, std::size_t{16}) * one;
}

}  // namespace

std::size_t blosc_typesize(std::size_t size) { return size < 1 || size > BLOSC_MAX_TYPESIZE ? 1 : size; }

buffer blosc_buffer(std::span<const std::byte> bytes, std::size_t typesize, int level, int shuffle, const std::string& name) {
  if (bytes.size() > BLOSC_MAX_BUFFERSIZE) throw corrupt_chunk("a chunk of 2 GiB, which blosc does not support");
  buffer out(bytes.size() + BLOSC_MAX_OVERHEAD);
  typesize = blosc_typesize(typesize);
  // Blosc splits LZ4's input into one piece for each byte of the type, even without a shuffle
  if (shuffle == BLOSC_NOSHUFFLE) typesize = 1;
  // the same bytes on every machine: with a block size of 0, Blosc derives it from level, type size and length
  const int size = blosc_compress_ctx(level, shuffle, typesize, bytes.size(), bytes.data(), out.data(), out.size(), name.c_str(),
                                      name == BLOSC_ZSTD_COMPNAME ? zstd_block_of(typesize) : 0, 1);
  if (size <= 0) return blosc_stored(bytes, typesize);  // this libblosc was built without that compressor
  out.resize(static_cast<std::size_t>(size));
  return out;
}

bool fits_one_block(std::size_t size, std::size_t typesize) {
  // readers of Blosc 1.21 refuse larger blocks; the older ones refuse none that these do not
  constexpr std::size_t max_size = (std::size_t{INT_MAX} - BLOSC_MAX_TYPESIZE * 4) / 3;
  return typesize >= 2 && typesize <= BLOSC_MAX_TYPESIZE && size >= typesize && size <= max_size;
}

namespace {

// What is in front of the only block: the header, where the block begins, and its length.
using block_header = std::array<std::byte, BLOSC_MIN_HEADER_LENGTH + 4 + 4>;

block_header shuffled_zlib_header(std::size_t zlib, std::size_t size, std::size_t typesize) {
  constexpr std::byte not_split{0x10};
  block_header head{};
  const auto put = [&](std::size_t offset, std::size_t number) {
    for (std::size_t i = 0; i < 4; ++i) head[offset + i] = static_cast<std::byte>(number >> (8 * i));
  };
  head[0] = std::byte{BLOSC_VERSION_FORMAT};
  head[1] = std::byte{BLOSC_ZLIB_VERSION_FORMAT};
  head[2] = std::byte{BLOSC_DOSHUFFLE} | not_split | std::byte{BLOSC_ZLIB_FORMAT << 5};
  head[3] = static_cast<std::byte>(typesize);
  put(4, size);
  put(8, size);  // of a block
  put(12, head.size() + zlib);
  put(16, BLOSC_MIN_HEADER_LENGTH + 4);
  put(20, zlib);
  return head;
}

}  // namespace

buffer shuffled_zlib_to_blosc(std::span<const std::byte> zlib, std::size_t size, std::size_t typesize) {
  const block_header head = shuffled_zlib_header(zlib.size(), size, typesize);
  buffer out(head.size() + zlib.size());
  std::copy(zlib.begin(), zlib.end(), std::copy(head.begin(), head.end(), out.begin()));
  return out;
}

std::span<const std::byte> blosc_to_shuffled_zlib(std::span<const std::byte> in, std::size_t size, std::size_t typesize) {
  if (in.size() <= std::tuple_size_v<block_header> || !fits_one_block(size, typesize)) return {};
  const auto zlib = in.subspan(std::tuple_size_v<block_header>);
  const block_header head = shuffled_zlib_header(zlib.size(), size, typesize);
  return std::equal(head.begin(), head.end(), in.begin()) ? zlib : std::span<const std::byte>();
}

buffer blosc_stored(std::span<const std::byte> bytes, std::size_t typesize) {
  buffer out(bytes.size() + BLOSC_MAX_OVERHEAD);
  const int n = bytes.size() > BLOSC_MAX_BUFFERSIZE
                    ? -1
                    : blosc_compress_ctx(0, BLOSC_NOSHUFFLE, typesize > BLOSC_MAX_TYPESIZE ? 1 : typesize, bytes.size(),
                                         bytes.data(), out.data(), out.size(), BLOSC_BLOSCLZ_COMPNAME, 0, 1);
  if (n <= 0) throw std::runtime_error("blosc cannot hold a chunk");
  out.resize(static_cast<std::size_t>(n));
  return out;
}

std::size_t max_blosc_size(std::size_t size) { return size + BLOSC_MAX_OVERHEAD; }

}  // namespace zarrbits::compressors
