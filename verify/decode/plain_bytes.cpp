// SPDX-License-Identifier: BSL-1.0
#include "verify/decode/plain_bytes.hpp"

#include "zarr/read/chunk_decoder.hpp"

#include <algorithm>
#include <array>
#include <blosc.h>
#include <bzlib.h>
#include <lz4.h>
#include <memory>
#include <type_traits>
#include <zlib.h>
#include <zstd.h>

namespace zarrbits::verification {

namespace {

std::uint32_t little_endian(const std::byte* data) {
  std::uint32_t n = 0;
  for (std::size_t k = 0; k < 4; ++k) n |= std::to_integer<std::uint32_t>(data[k]) << (8 * k);
  return n;
}

std::uint32_t crc32c(const std::byte* data, std::size_t size) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t v = i;
      for (int k = 0; k < 8; ++k) v = (v >> 1) ^ ((v & 1) != 0 ? 0x82F63B78u : 0u);
      t[i] = v;
    }
    return t;
  }();
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ table[(crc ^ std::to_integer<std::uint32_t>(data[i])) & 0xff];
  return ~crc;
}

// Makes room for more output: doubles, up to one byte more than allowed, so that an excess is noticed.
void grow(std::vector<std::byte>& out, std::size_t used, std::uint64_t max_size) {
  if (used > max_size) throw zarr::size_limit_exceeded();
  if (used < out.size()) return;
  const std::uint64_t new_size = std::max<std::uint64_t>(std::uint64_t{out.size()} * 2, 64 * 1024);
  out.resize(static_cast<std::size_t>(std::min<std::uint64_t>(new_size, max_size + 1)));
}

// `window`: 15 for zlib, 15 + 16 for gzip, which may have several members.
std::vector<std::byte> inflated(const std::vector<std::byte>& in, std::uint64_t max_size, int window) {
  z_stream z = {};
  if (inflateInit2(&z, window) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&z, &inflateEnd);
  std::vector<std::byte> out;
  std::size_t read = 0;
  std::size_t used = 0;
  bool complete = false;  // a gzip file is one or more members
  while (true) {
    if (complete) {
      if (read == in.size() || window == 15) break;
      inflateReset(&z);
      complete = false;
    }
    grow(out, used, max_size);
    const std::size_t offered = std::min<std::size_t>(in.size() - read, 1u << 30);
    const std::size_t capacity = std::min<std::size_t>(out.size() - used, 1u << 30);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data() + read));
    z.avail_in = static_cast<uInt>(offered);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    z.avail_out = static_cast<uInt>(capacity);
    const int status = inflate(&z, Z_NO_FLUSH);
    const std::size_t consumed = offered - z.avail_in;
    const std::size_t produced = capacity - z.avail_out;
    read += consumed;
    used += produced;
    if (status == Z_STREAM_END) {
      complete = true;
    } else if (status != Z_OK || (consumed == 0 && produced == 0)) {
      throw zarr::store_error("a chunk is not a complete " + std::string(window == 15 ? "zlib" : "gzip") + " stream");
    }
  }
  if (used > max_size) throw zarr::size_limit_exceeded();
  out.resize(used);
  return out;
}

// The bytes of each element, which lie apart. `element`: their number; the compiler has faster code for a constant.
template <class Size>
void gather_bytes(const std::vector<std::byte>& in, std::vector<std::byte>& out, const Size element) {
  const std::size_t elements = in.size() / element;
  const std::byte* const source = in.data();
  std::byte* target = out.data();
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t k = 0; k < element; ++k) *target++ = source[k * elements + i];
  }
}

}  // namespace

std::vector<std::byte> decode_gzip(const std::vector<std::byte>& in, std::uint64_t max_size) {
  return inflated(in, max_size, 15 + 16);
}

std::vector<std::byte> decode_zlib(const std::vector<std::byte>& in, std::uint64_t max_size) {
  return inflated(in, max_size, 15);
}

// Consecutive streams, as Python's bz2 reads them.
std::vector<std::byte> decode_bz2(const std::vector<std::byte>& in, std::uint64_t max_size) {
  std::vector<std::byte> out;
  std::size_t read = 0, used = 0;
  do {
    bz_stream z = {};
    if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) throw std::bad_alloc();
    const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> end(&z, &BZ2_bzDecompressEnd);
    for (int status = BZ_OK; status != BZ_STREAM_END;) {
      grow(out, used, max_size);
      const std::size_t offered = std::min<std::size_t>(in.size() - read, 1u << 30),
                        capacity = std::min<std::size_t>(out.size() - used, 1u << 30);
      z.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data() + read));
      z.avail_in = static_cast<unsigned>(offered);
      z.next_out = reinterpret_cast<char*>(out.data() + used);
      z.avail_out = static_cast<unsigned>(capacity);
      status = BZ2_bzDecompress(&z);
      const std::size_t consumed = offered - z.avail_in, produced = capacity - z.avail_out;
      if ((status != BZ_OK && status != BZ_STREAM_END) || (status == BZ_OK && consumed == 0 && produced == 0))
        throw zarr::store_error("a chunk is not a complete bzip2 stream");
      read += consumed;
      used += produced;
    }
  } while (read < in.size());
  if (used > max_size) throw zarr::size_limit_exceeded();
  out.resize(used);
  return out;
}

// LZ4 in numcodecs' frame: the length, and one block.
std::vector<std::byte> decode_lz4(const std::vector<std::byte>& in, std::uint64_t max_size) {
  if (in.size() <= 4) throw zarr::store_error("a chunk is shorter than the length that LZ4 begins with, and a block");
  const std::uint32_t size = little_endian(in.data());
  if (size > max_size || size > LZ4_MAX_INPUT_SIZE) throw zarr::size_limit_exceeded();
  std::vector<std::byte> out(size);
  if (in.size() - 4 > LZ4_MAX_INPUT_SIZE ||
      LZ4_decompress_safe(reinterpret_cast<const char*>(in.data() + 4), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(in.size() - 4), static_cast<int>(size)) != static_cast<int>(size)) {
    throw zarr::store_error("a chunk's LZ4 block cannot be decompressed");
  }
  return out;
}

std::vector<std::byte> decode_blosc(const std::vector<std::byte>& in, std::uint64_t max_size) {
  std::size_t size = 0;
  if (blosc_cbuffer_validate(in.data(), in.size(), &size) < 0) throw zarr::store_error("a chunk is not a blosc buffer");
  if (size > max_size) throw zarr::size_limit_exceeded();
  std::vector<std::byte> out(size);
  const int written = blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  if (written < 0 || static_cast<std::size_t>(written) != size)
    throw zarr::store_error("a chunk's blosc buffer cannot be decompressed");
  return out;
}

std::vector<std::byte> unshuffle(const std::vector<std::byte>& in, std::size_t element) {
  // HDF5 leaves the rest alone, so a decoder that did the same would call a chunk right that no reader of Zarr reads
  if (element == 0 || (element > 1 && in.size() % element != 0)) {
    throw zarr::store_error("a chunk has " + std::to_string(in.size()) +
                            " bytes before numcodecs.shuffle, which takes whole elements of " + std::to_string(element) +
                            " only; readers refuse it");
  }
  std::vector<std::byte> out(in.size());
  switch (element) {
    case 2: gather_bytes(in, out, std::integral_constant<std::size_t, 2>()); break;
    case 4: gather_bytes(in, out, std::integral_constant<std::size_t, 4>()); break;
    case 8: gather_bytes(in, out, std::integral_constant<std::size_t, 8>()); break;
    default: gather_bytes(in, out, element);
  }
  return out;
}

// numcodecs' checksum: 16-bit words of big-endian bytes, an odd last byte as the upper half.
void drop_fletcher32(std::vector<std::byte>& bytes) {
  if (bytes.size() < 4) throw zarr::store_error("a chunk is shorter than its checksum");
  const std::size_t size = bytes.size() - 4;
  std::uint32_t low = 0, high = 0;
  for (std::size_t i = 0; i < size; i += 2) {
    low += std::to_integer<std::uint32_t>(bytes[i]) << 8 | (i + 1 < size ? std::to_integer<std::uint32_t>(bytes[i + 1]) : 0u);
    low = (low & 0xffff) + (low >> 16);  // a sum that is not 0 never becomes 0 again: 65535 represents 0
    high += low;
    high = (high & 0xffff) + (high >> 16);
  }
  if (little_endian(bytes.data() + size) != (high << 16 | low))
    throw zarr::store_error("the fletcher32 checksum of a chunk is wrong");
  bytes.resize(size);
}

std::vector<std::byte> decode_zstd(const std::vector<std::byte>& in, std::uint64_t max_size) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  std::vector<std::byte> out;
  ZSTD_inBuffer source = {in.data(), in.size(), 0};
  std::size_t used = 0;
  std::size_t remaining = 1;  // 0: a frame is complete
  while (source.pos < source.size || remaining != 0) {
    grow(out, used, max_size);
    ZSTD_outBuffer sink = {out.data(), out.size(), used};
    const std::size_t start = source.pos;
    remaining = ZSTD_decompressStream(context.get(), &sink, &source);
    if (ZSTD_isError(remaining))
      throw zarr::store_error(std::string("a chunk is not a zstd frame: ") + ZSTD_getErrorName(remaining));
    if (source.pos == start && sink.pos == used && remaining != 0) throw zarr::store_error("a chunk's zstd frame ends too early");
    used = sink.pos;
  }
  if (used > max_size) throw zarr::size_limit_exceeded();
  out.resize(used);
  return out;
}

void drop_crc32c(std::vector<std::byte>& bytes) {
  if (bytes.size() < 4) throw zarr::store_error("a chunk is shorter than its checksum");
  const std::size_t size = bytes.size() - 4;
  if (crc32c(bytes.data(), size) != little_endian(bytes.data() + size))
    throw zarr::store_error("the crc32c checksum of a chunk is wrong");
  bytes.resize(size);
}

}  // namespace zarrbits::verification
