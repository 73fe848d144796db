// SPDX-License-Identifier: BSL-1.0
#include "compressors/zstd.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <zstd.h>

namespace zarrbits::compressors {

namespace {

struct deleter {
  void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
};

// Each thread keeps both: to make one takes longer than a small block.
ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, deleter> instance(ZSTD_createDCtx());
  if (!instance) throw std::bad_alloc();
  return instance.get();
}

ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, deleter> instance(ZSTD_createCCtx());
  if (!instance) throw std::bad_alloc();
  return instance.get();
}

}  // namespace

void zstd_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t n = ZSTD_decompressDCtx(decompressor(), out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n)) throw corrupt_chunk(std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != out.size()) throw corrupt_chunk("zstd: its length differs from the chunk's");
}

buffer decompress_zstd(std::span<const std::byte> in, std::size_t size) {
  buffer out(size);
  zstd_block(in, out);
  return out;
}

buffer decompress_zstd_up_to(std::span<const std::byte> in, std::size_t likely_size, std::size_t max_size) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  constexpr std::size_t min_size = 64 << 10;
  if (likely_size == 0 && zstd_size(in) <= max_size) likely_size = zstd_size(in);
  // zstd decodes without a copy into a buffer that holds the content; one byte more shows that there is more
  buffer out(std::min(likely_size ? likely_size : min_size, max_size) + 1);
  ZSTD_inBuffer source = {in.data(), in.size(), 0};
  ZSTD_outBuffer target = {out.data(), out.size(), 0};
  std::size_t missing = 1;  // 0: a frame is complete
  while (source.pos < source.size || missing != 0) {
    if (target.pos > max_size) throw limit_exceeded("zstd: it decodes to more than the chunk");
    if (target.pos == target.size) {
      out.resize(std::min(std::max(2 * out.size(), min_size), max_size + 1));
      target = {out.data(), out.size(), target.pos};
    }
    const std::size_t consumed = source.pos, written = target.pos;
    missing = ZSTD_decompressStream(context.get(), &target, &source);
    if (ZSTD_isError(missing)) throw corrupt_chunk(ZSTD_getErrorName(missing));
    if (source.pos == consumed && target.pos == written && missing != 0) throw truncated_chunk("zstd: it ends too early");
  }
  if (target.pos > max_size) throw limit_exceeded("zstd: it decodes to more than the chunk");
  out.resize(target.pos);
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

void append_zstd_frame(buffer& out, std::span<const std::byte> bytes, int level) {
  const std::size_t before = out.size(), bound = ZSTD_compressBound(bytes.size());
  out.resize(before + bound);
  const std::size_t n = ZSTD_compressCCtx(compressor(), out.data() + before, bound, bytes.data(), bytes.size(), level);
  if (ZSTD_isError(n)) throw std::runtime_error("zstd cannot compress a chunk");
  out.resize(before + n);
}

buffer zstd_frame(std::span<const std::byte> bytes, int level) {
  buffer out;
  append_zstd_frame(out, bytes, level);
  return out;
}

std::size_t max_zstd_size(std::size_t size) { return ZSTD_compressBound(size); }

}  // namespace zarrbits::compressors
