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
#include "compression/lzo.hpp"

#include <zlib.h>

#include <algorithm>

namespace zarrbits::compressors {

namespace {

class lzo_stream {
 public:
  lzo_stream(std::span<const std::byte> in, std::size_t most) : in_(in), most_(most) {}

  buffer decode() {
    if (const std::size_t first = peek(); first > 17) {
      next();
      literals(first - 17);
      before_ = first - 17 < 4 ? after::few_literals : after::run;
    }
    while (instruction()) {
    }
    return std::move(out_);
  }
  std::span<const std::byte> rest() const { return in_; }

 private:
  enum class after { copy, few_literals, run };

  // False at the end of the stream.
  bool instruction() {
    const std::size_t b = next();
    if (b >= 128) return near(5 + (b >> 5 & 3), b);
    if (b >= 64) return near(3 + (b >> 5 & 1), b);
    if (b >= 32) {
      const std::size_t length = 2 + (b & 31 ? b & 31 : 31 + more());
      const std::size_t w = word();
      return copy(length, 1 + w / 4, w & 3);
    }
    if (b >= 16) {
      const std::size_t length = 2 + (b & 7 ? b & 7 : 7 + more());
      const std::size_t w = word(), distance = 16384 * (1 + (b >> 3 & 1)) + w / 4;
      if (distance != 16384) return copy(length, distance, w & 3);
      if (length != 3 || (w & 3) != 0) fail("an end marker of the wrong length");
      return false;
    }
    if (before_ == after::copy) {
      literals(3 + (b ? b : 15 + more()));
      before_ = after::run;
      return true;
    }
    const bool run = before_ == after::run;
    return copy(run ? 3 : 2, (run ? 2049 : 1) + (b >> 2) + 4 * next(), b & 3);
  }

  bool near(std::size_t length, std::size_t b) { return copy(length, 1 + (b >> 2 & 7) + 8 * next(), b & 3); }

  bool copy(std::size_t length, std::size_t distance, std::size_t few) {
    if (distance > out_.size()) fail("a copy from before the start of the output");
    room(length);
    const std::size_t from = out_.size() - distance;
    if (distance >= length) {
      out_.resize(out_.size() + length);
      std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(from), length, out_.end() - static_cast<std::ptrdiff_t>(length));
    } else {  // a pattern that repeats
      for (std::size_t i = 0; i < length; ++i) out_.push_back(out_[from + i]);
    }
    literals(few);
    before_ = few ? after::few_literals : after::copy;
    return true;
  }

  void literals(std::size_t n) {
    if (n > in_.size()) fail("it ends too early");
    room(n);
    out_.insert(out_.end(), in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(n));
    in_ = in_.subspan(n);
  }

  std::size_t more() {
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
  void room(std::size_t n) const {
    if (n > most_ - out_.size()) fail("it decodes to more than the chunk");
  }
  [[noreturn]] static void fail(const char* why) { throw damaged_chunk(std::string("lzo: ") + why); }

  std::span<const std::byte> in_;
  std::size_t most_;
  buffer out_;
  after before_ = after::copy;
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

buffer undo_lzo_up_to(std::span<const std::byte> in, std::size_t most) {
  lzo_stream stream(in, most);
  buffer out = stream.decode();
  const auto rest = stream.rest();
  if (rest.empty()) return out;  // tables of PyTables 0.4 and before
  if (rest.size() != 8) throw damaged_chunk("lzo: something follows its end");
  if (little(rest.subspan(4)) != (out.size() & 0xFFFFFFFFU))
    throw damaged_chunk("lzo: it decodes to a different length than it declares");
  if (little(rest) != adler(out)) throw damaged_chunk("lzo: the checksum is wrong");
  return out;
}

buffer undo_lzo(std::span<const std::byte> in, std::size_t size) {
  buffer out = undo_lzo_up_to(in, size);
  if (out.size() != size) throw damaged_chunk("lzo: it decodes to less than the chunk");
  return out;
}

}  // namespace zarrbits::compressors
