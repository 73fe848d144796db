// SPDX-License-Identifier: BSL-1.0
#include "compressors/zstd.hpp"

#include <stdexcept>
#include <string>
#include <zstd.h>

namespace zarrbits::compressors {

void zstd_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t n = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n)) throw corrupt_chunk(std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != out.size()) throw corrupt_chunk("zstd: its length differs from the chunk's");
}

buffer decompress_zstd(std::span<const std::byte> in, std::size_t size) {
  buffer out(size);
  zstd_block(in, out);
  return out;
}

std::size_t zstd_size(std::span<const std::byte> in) {
  return static_cast<std::size_t>(ZSTD_getFrameContentSize(in.data(), in.size()));
}

bool check_zstd(std::span<const std::byte> in, std::size_t size) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
  if (ZSTD_isError(frame)) throw corrupt_chunk(std::string("zstd: ") + ZSTD_getErrorName(frame));
  const unsigned long long content = ZSTD_getFrameContentSize(in.data(), in.size());
  if (content == ZSTD_CONTENTSIZE_UNKNOWN || frame != in.size()) return false;
  if (content != size) throw corrupt_chunk("zstd: its length differs from the chunk's");
  return true;
}

buffer zstd_frame(std::span<const std::byte> bytes, int level) {
  buffer out(ZSTD_compressBound(bytes.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(n)) throw std::runtime_error("zstd cannot compress a chunk");
  out.resize(n);
  return out;
}

}  // namespace zarrbits::compressors
