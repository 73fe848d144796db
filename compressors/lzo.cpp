// SPDX-License-Identifier: BSL-1.0
//
// An LZO1X stream is a list of instructions. Each one except a run of literals copies earlier output; its two lowest bits give
// the number of literals (0 to 3) that follow. The meaning of an instruction below 16 depends on the one before. D, S: bits of
// the distance and of the number of literals; H: the next byte; W: the next two, little-endian; "+ more": the length continues,
// see below.
//
//   1LLDDDSS H   copy 5 + L from 1 + D + 8 H
//   01LDDDSS H   copy 3 + L from 1 + D + 8 H
//   001LLLLL W   copy 2 + L from 1 + W / 4, S = W % 4      (L = 0: 33 + more)
//   0001HLLL W   copy 2 + L from 16384 (1 + H) + W / 4     (L = 0: 9 + more); 16384 itself, with L = 1: the end
//   0000LLLL     after a copy without literals, and first of all: 3 + L literals (L = 0: 18 + more)
//   0000DDSS H   after 1 to 3 literals: copy 2 from 1 + D + 4 H
//   0000DDSS H   after a run of literals: copy 3 from 2049 + D + 4 H
//
// "more": a number of zeros, 255 each, and a byte that is not zero. The first byte of a stream may also be 18 to 255: that many
// literals, less 17. (The format as the Linux kernel's Documentation/staging/lzo.rst describes it.)
//
#include "compressors/lzo.hpp"

#include <zlib.h>

#include <algorithm>

namespace zarrbits::compressors {

namespace {

class lzo_stream {
 public:
  lzo_stream(std::span<const std::byte> in, std::size_t max_size) : in_(in), max_size_(max_size) {}

  buffer decode() {
    if (const std::size_t first = peek(); first > 17) {
      next();
      literals(first - 17);
      state_ = first - 17 < 4 ? state::few_literals : state::run;
    }
    while (instruction()) {
    }
    return std::move(out_);
  }
  std::span<const std::byte> remaining() const { return in_; }

 private:
  enum class state { copy, few_literals, run };

  // False at the end of the stream.
  bool instruction() {
    const std::size_t b = next();
    if (b >= 128) return near_copy(5 + (b >> 5 & 3), b);
    if (b >= 64) return near_copy(3 + (b >> 5 & 1), b);
    if (b >= 32) {
      const std::size_t length = 2 + (b & 31 ? b & 31 : 31 + extended_length());
      const std::size_t w = word();
      return copy(length, 1 + w / 4, w & 3);
    }
    if (b >= 16) {
      const std::size_t length = 2 + (b & 7 ? b & 7 : 7 + extended_length());
      const std::size_t w = word(), distance = 16384 * (1 + (b >> 3 & 1)) + w / 4;
      if (distance != 16384) return copy(length, distance, w & 3);
      if (length != 3 || (w & 3) != 0) fail("an end marker of the wrong length");
      return false;
    }
    if (state_ == state::copy) {
      literals(3 + (b ? b : 15 + extended_length()));
      state_ = state::run;
      return true;
    }
    const bool run = state_ == state::run;
    return copy(run ? 3 : 2, (run ? 2049 : 1) + (b >> 2) + 4 * next(), b & 3);
  }

  bool near_copy(std::size_t length, std::size_t b) { return copy(length, 1 + (b >> 2 & 7) + 8 * next(), b & 3); }

  bool copy(std::size_t length, std::size_t distance, std::size_t literal_count) {
    if (distance > out_.size()) fail("a copy from before the start of the output");
    require_capacity(length);
    const std::size_t source = out_.size() - distance;
    if (distance >= length) {
      out_.resize(out_.size() + length);
      std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(source), length, out_.end() - static_cast<std::ptrdiff_t>(length));
    } else {  // a pattern that repeats
      for (std::size_t i = 0; i < length; ++i) out_.push_back(out_[source + i]);
    }
    literals(literal_count);
    state_ = literal_count ? state::few_literals : state::copy;
    return true;
  }

  void literals(std::size_t n) {
    if (n > in_.size()) fail("it ends too early");
    require_capacity(n);
    out_.insert(out_.end(), in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(n));
    in_ = in_.subspan(n);
  }

  std::size_t extended_length() {
    std::size_t n = 0, b = 0;
    while ((b = next()) == 0) n += 255;
    return n + b;
  }
  std::size_t peek() const {
    if (in_.empty()) fail("it ends too early");
    return std::to_integer<std::size_t>(in_[0]);
  }
  std::size_t next() {
    const std::size_t b = peek();
    in_ = in_.subspan(1);
    return b;
  }
  std::size_t word() {
    const std::size_t low = next();
    return low + 256 * next();
  }
  void require_capacity(std::size_t n) const {
    if (n > max_size_ - out_.size()) fail("it decodes to more than the chunk");
  }
  [[noreturn]] static void fail(const char* reason) { throw corrupt_chunk(std::string("lzo: ") + reason); }

  std::span<const std::byte> in_;
  std::size_t max_size_;
  buffer out_;
  state state_ = state::copy;
};

std::uint32_t little(std::span<const std::byte> in) {
  std::uint32_t v = 0;
  for (std::size_t i = 4; i-- > 0;) v = v << 8 | std::to_integer<std::uint32_t>(in[i]);
  return v;
}

std::uint32_t adler(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      adler32_z(adler32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

buffer decompress_lzo_up_to(std::span<const std::byte> in, std::size_t max_size) {
  lzo_stream stream(in, max_size);
  buffer out = stream.decode();
  const auto trailer = stream.remaining();
  if (trailer.empty()) return out;  // tables of PyTables 0.4 and before
  if (trailer.size() != 8) throw corrupt_chunk("lzo: something follows its end");
  if (little(trailer.subspan(4)) != (out.size() & 0xFFFFFFFFU))
    throw corrupt_chunk("lzo: it decodes to a different length than it declares");
  if (little(trailer) != adler(out)) throw corrupt_chunk("lzo: the checksum is wrong");
  return out;
}

buffer decompress_lzo(std::span<const std::byte> in, std::size_t size) {
  buffer out = decompress_lzo_up_to(in, size);
  if (out.size() != size) throw corrupt_chunk("lzo: it decodes to less than the chunk");
  return out;
}

}  // namespace zarrbits::compressors
