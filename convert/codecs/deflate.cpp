// SPDX-License-Identifier: BSL-1.0
#include "convert/codecs/deflate.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <zlib.h>

namespace zarrbits::conversion {

namespace {

// Kept by each thread: to allocate its window takes longer than to inflate a small chunk.
struct inflater {
  z_stream z{};
  inflater() {
    if (inflateInit(&z) != Z_OK) throw std::bad_alloc();
  }
  ~inflater() { inflateEnd(&z); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
};

// Of exactly `size` bytes, or of that or fewer.
buffer inflate_all(std::span<const std::byte> zlib, std::size_t size, std::size_t& used, bool fewer = false) {
  buffer out(size);
  thread_local inflater kept;
  z_stream& z = kept.z;
  inflateReset(&z);
  z.avail_in = z.avail_out = 0;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(zlib.data()));
  std::size_t in_left = zlib.size(), out_left = size;
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  Bytef one_more = 0;  // a stream that makes more than `size` bytes is seen by its writing here
  bool spare = false;
  int status = Z_OK;
  constexpr std::size_t piece = 1U << 30;
  while (status == Z_OK || status == Z_BUF_ERROR) {
    if (z.avail_in == 0 && in_left > 0) {
      z.avail_in = static_cast<uInt>(std::min(piece, in_left));
      in_left -= z.avail_in;
    }
    if (z.avail_out == 0) {
      if (out_left > 0) {
        z.avail_out = static_cast<uInt>(std::min(piece, out_left));
        out_left -= z.avail_out;
      } else if (!spare) {
        spare = true;
        z.next_out = &one_more;
        z.avail_out = 1;
      }
    }
    status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR && ((z.avail_in == 0 && in_left == 0) || (z.avail_out == 0 && spare))) break;
    if (status == Z_OK && spare && z.avail_out == 0) break;
  }
  bool exact = status == Z_STREAM_END && ((spare && z.avail_out == 1) || (!spare && z.avail_out == 0 && out_left == 0));
  if (fewer && status == Z_STREAM_END && !spare) {
    out.resize(size - out_left - z.avail_out);
    exact = true;
  }
  used = zlib.size() - in_left - z.avail_in;
  const std::string why = z.msg                    ? z.msg
                          : status == Z_STREAM_END ? "another length than the chunk"
                                                   : "it ends too early or makes too much";
  if (!exact) throw damaged_chunk("deflate: " + why);
  return out;
}

}  // namespace

buffer undo_deflate(std::span<const std::byte> zlib, std::size_t size) {
  std::size_t used = 0;
  return inflate_all(zlib, size, used);
}

buffer undo_deflate_up_to(std::span<const std::byte> zlib, std::size_t most) {
  std::size_t used = 0;
  return inflate_all(zlib, most, used, true);
}

buffer zlib_stream(std::span<const std::byte> bytes, int level) {
  if (bytes.size() >= 0x7FFFFFFFU) throw damaged_chunk("a chunk of 2 GiB, which zlib's readers do not take");
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  buffer out(size);
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), level) != Z_OK) {
    throw std::bad_alloc();
  }
  out.resize(size);
  return out;
}

buffer zlib_to_gzip(std::span<const std::byte> zlib, std::size_t size, buffer& plain) {
  if (zlib.size() < 6 || (std::to_integer<unsigned>(zlib[1]) & 0x20)) throw damaged_chunk("deflate: no zlib stream");
  std::size_t used = 0;
  plain = inflate_all(zlib, size, used);  // checks the Adler-32 too
  uLong crc = crc32(0, nullptr, 0);
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t n = std::min<std::size_t>(plain.size() - at, 1U << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(plain.data() + at), static_cast<uInt>(n));
    at += n;
  }
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

buffer gzip_member(std::span<const std::byte> bytes, int level) {
  z_stream z{};
  if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  buffer out(deflateBound(&z, static_cast<uLong>(bytes.size())));
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  std::size_t in_left = bytes.size(), out_left = out.size();
  constexpr std::size_t piece = 1U << 30;
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      z.avail_in = static_cast<uInt>(std::min(piece, in_left));
      in_left -= z.avail_in;
    }
    if (z.avail_out == 0) {
      z.avail_out = static_cast<uInt>(std::min(piece, out_left));
      out_left -= z.avail_out;
    }
    status = deflate(&z, in_left == 0 ? Z_FINISH : Z_NO_FLUSH);
  }
  out.resize(out.size() - out_left - z.avail_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib cannot compress a chunk");
  return out;
}

}  // namespace zarrbits::conversion
