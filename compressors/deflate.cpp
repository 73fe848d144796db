// SPDX-License-Identifier: BSL-1.0
#include "compressors/deflate.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <libdeflate.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <zlib.h>

namespace zarrbits::compressors {

namespace {

struct deleter {
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
};

// Each thread keeps both: an allocation takes longer than to inflate a small chunk.
libdeflate_decompressor* decompressor() {
  thread_local const std::unique_ptr<libdeflate_decompressor, deleter> instance(libdeflate_alloc_decompressor());
  if (!instance) throw std::bad_alloc();
  return instance.get();
}

libdeflate_compressor* compressor_of(int level) {
  thread_local std::unique_ptr<libdeflate_compressor, deleter> instance;
  thread_local int level_of_kept = -1;
  if (!instance || level_of_kept != level) {
    instance.reset();  // keep only one: a compressor of a high level has megabytes
    instance.reset(libdeflate_alloc_compressor(level));
    level_of_kept = level;
  }
  if (!instance) throw std::bad_alloc();
  return instance.get();
}

// Inflates a stream, up to `max_size` bytes. `used`: length of the stream itself; the bytes after it are ignored.
buffer inflate_up_to(std::span<const std::byte> zlib, std::size_t max_size, std::size_t& used) {
  buffer out(max_size);
  std::size_t written = 0;
  switch (libdeflate_zlib_decompress_ex(decompressor(), zlib.data(), zlib.size(), out.data(), max_size, &used, &written)) {
    case LIBDEFLATE_SUCCESS: break;
    case LIBDEFLATE_INSUFFICIENT_SPACE: throw corrupt_chunk("deflate: it decodes to more than the chunk");
    default: throw corrupt_chunk("deflate: it ends too early, or is not a stream with the right checksum");
  }
  out.resize(written);
  return out;
}

buffer inflate_exactly(std::span<const std::byte> zlib, std::size_t size, std::size_t& used) {
  buffer out = inflate_up_to(zlib, size, used);
  if (out.size() != size) throw corrupt_chunk("deflate: its length differs from the chunk's");
  return out;
}

// `inflate`: libdeflate_zlib_decompress_ex or libdeflate_gzip_decompress_ex. libdeflate does not continue a stream in a larger
// buffer, so the buffer grows by a factor that makes the repeated work small.
template <class Inflate>
buffer inflate_streams(std::span<const std::byte> in, std::size_t likely_size, std::size_t max_size, bool several,
                       Inflate inflate) {
  constexpr std::size_t growth = 4, min_size = 64 << 10;
  const std::size_t usual = likely_size ? likely_size : growth * in.size() + min_size;
  buffer out(std::min(usual, max_size));
  std::size_t used = 0;
  do {
    std::size_t consumed = 0, written = 0;
    switch (inflate(decompressor(), in.data(), in.size(), out.data() + used, out.size() - used, &consumed, &written)) {
      case LIBDEFLATE_SUCCESS:
        in = in.subspan(consumed);
        used += written;
        break;
      case LIBDEFLATE_INSUFFICIENT_SPACE:
        if (out.size() == max_size) throw limit_exceeded("deflate: it decodes to more than the chunk");
        out.resize(std::min(std::max(growth * out.size(), min_size), max_size));
        continue;
      default: throw corrupt_chunk("deflate: it ends too early, or is not a stream with the right checksum");
    }
    if (!several) break;
  } while (!in.empty());
  out.resize(used);
  return out;
}

// `make`: libdeflate_zlib_compress or libdeflate_gzip_compress; `bound`: its upper limit.
template <class Bound, class Make>
buffer compressed(std::span<const std::byte> bytes, int level, Bound bound, Make make) {
  libdeflate_compressor* c = compressor_of(level);
  buffer out(bound(c, bytes.size()));
  const std::size_t size = make(c, bytes.data(), bytes.size(), out.data(), out.size());
  if (size == 0) throw std::runtime_error("libdeflate cannot compress a chunk");
  out.resize(size);
  return out;
}

}  // namespace

buffer decompress_zlib(std::span<const std::byte> zlib, std::size_t size) {
  std::size_t used = 0;
  return inflate_exactly(zlib, size, used);
}

buffer decompress_zlib_up_to(std::span<const std::byte> zlib, std::size_t max_size) {
  std::size_t used = 0;
  return inflate_up_to(zlib, max_size, used);
}

buffer decompress_zlib_up_to(std::span<const std::byte> zlib, std::size_t likely_size, std::size_t max_size) {
  return inflate_streams(zlib, likely_size, max_size, false, libdeflate_zlib_decompress_ex);
}

buffer decompress_gzip_up_to(std::span<const std::byte> gzip, std::size_t likely_size, std::size_t max_size) {
  return inflate_streams(gzip, likely_size, max_size, true, libdeflate_gzip_decompress_ex);
}

buffer zlib_stream(std::span<const std::byte> bytes, int level) {
  if (bytes.size() >= 0x7FFFFFFFU) throw corrupt_chunk("a chunk of 2 GiB, which zlib's readers do not support");
  return compressed(bytes, level, libdeflate_zlib_compress_bound, libdeflate_zlib_compress);
}

std::size_t size_by_zlib(std::span<const std::byte> bytes, int level) {
  uLongf size = ::compressBound(bytes.size());
  buffer stream(size);
  if (::compress2(reinterpret_cast<Bytef*>(stream.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(),
                  level) != Z_OK)
    throw std::bad_alloc();
  return size;
}

buffer zlib_to_gzip(std::span<const std::byte> zlib, std::size_t size, buffer& plain) {
  std::size_t used = 0;
  plain = inflate_exactly(zlib, size, used);  // checks the Adler-32 too
  const std::uint32_t crc = libdeflate_crc32(0, plain.data(), plain.size());
  // libdeflate refuses a stream with a dictionary, so the payload begins after two bytes. It is laxer than zlib about repeated
  // code lengths that exceed their table, if Adler-32 is right.
  constexpr unsigned char header[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF};
  buffer out(sizeof header + (used - 6) + 8);
  std::memcpy(out.data(), header, sizeof header);
  std::memcpy(out.data() + sizeof header, zlib.data() + 2, used - 6);
  std::byte* tail = out.data() + out.size() - 8;
  for (unsigned i = 0; i < 4; ++i) {
    tail[i] = static_cast<std::byte>(crc >> (8 * i));
    tail[4 + i] = static_cast<std::byte>(size >> (8 * i));
  }
  return out;
}

buffer gzip_to_zlib(std::span<const std::byte> gzip, std::size_t size) {
  buffer plain(size);
  std::size_t used = 0, written = 0;
  switch (libdeflate_gzip_decompress_ex(decompressor(), gzip.data(), gzip.size(), plain.data(), size, &used, &written)) {
    case LIBDEFLATE_SUCCESS: break;
    case LIBDEFLATE_INSUFFICIENT_SPACE: return {};  // the next member may be the rest
    default: throw corrupt_chunk("gzip: it ends too early, or is not a member with the right checksum");
  }
  if (used != gzip.size()) return {};
  if (written != size) throw corrupt_chunk("gzip: its length differs from the chunk's");
  // libdeflate has checked the header: 10 bytes, and what its flags announce
  const auto byte_at = [&](std::size_t i) { return std::to_integer<unsigned>(gzip[i]); };
  const unsigned flags = byte_at(3);
  std::size_t begin = 10;
  if (flags & 4) begin += 2 + (byte_at(10) | byte_at(11) << 8);
  for (const unsigned text : {8U, 16U}) {
    if (!(flags & text)) continue;
    while (byte_at(begin) != 0) ++begin;
    ++begin;
  }
  if (flags & 2) begin += 2;
  const std::size_t payload = gzip.size() - 8 - begin;
  const std::uint32_t adler = libdeflate_adler32(1, plain.data(), plain.size());
  buffer out(2 + payload + 4);
  out[0] = std::byte{0x78};
  out[1] = std::byte{0x9C};
  std::memcpy(out.data() + 2, gzip.data() + begin, payload);
  for (unsigned i = 0; i < 4; ++i) out[2 + payload + i] = static_cast<std::byte>(adler >> (24 - 8 * i));
  return out;
}

buffer gzip_member(std::span<const std::byte> bytes, int level) {
  return compressed(bytes, level, libdeflate_gzip_compress_bound, libdeflate_gzip_compress);
}

std::size_t max_gzip_size(std::size_t size) { return libdeflate_gzip_compress_bound(nullptr, size); }

}  // namespace zarrbits::compressors
