// SPDX-License-Identifier: BSL-1.0
//
// What boost::iostreams::symmetric_filter drives.
//
#ifndef ZARRBITS_IOSTREAMS_DETAIL_TRANSFORM_ADAPTER_HPP
#define ZARRBITS_IOSTREAMS_DETAIL_TRANSFORM_ADAPTER_HPP

#include <zarrbits/codec.hpp>
#include <zarrbits/transform.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <ios>
#include <optional>
#include <utility>

namespace zarrbits::iostreams::detail {

// Boost copies into memory (array_sink) by reading as many bytes as there is room for, until it sees the end: none once it is
// full. If more bytes follow then, it would ask forever.
[[noreturn]] void no_room_for_more(const zarrbits::codec& c);

// The part that boost::iostreams::symmetric_filter drives: a transform of the core behind Boost's calling convention.
template <class Transform>
class transform_adapter {
 public:
  using char_type = char;

  transform_adapter(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size);

  // Throws codec_error; after that, every call throws the same error until close(). This makes errors in the last buffered bytes
  // visible: Boost ignores the first one and asks again when the stream is closed.
  bool filter(const char*& in, const char* in_end, char*& out, char* out_end, bool flush);
  // Prepares for another chunk. Throws the error of this one, if any, so that reset() of an input stream reports it too.
  void close();

  // The first error of a device, or of this, since the chunk began.
  void keep_error(const std::exception_ptr& error) noexcept;
  std::exception_ptr forget_error() noexcept { return std::exchange(error_, nullptr); }

  // The place of the next byte to read or write, for a device that is memory and is now at `position`. Boost copies such devices
  // when filters are composed, and loses the position of the copy. So the place is the start of the chunk plus the bytes that
  // passed through here since.
  std::ptrdiff_t place(std::ptrdiff_t position, std::ios_base::openmode mode) noexcept {
    if (closed_ || total_in_ + total_out_ == 0) return origin_ = position;
    return origin_ + static_cast<std::ptrdiff_t>(mode == std::ios_base::in ? total_in_ : total_out_);
  }

  std::streamsize buffer_size() const noexcept { return buffer_size_; }
  std::uint64_t total_in() const noexcept { return total_in_; }
  std::uint64_t total_out() const noexcept { return total_out_; }
  std::uint64_t elements() const noexcept { return transform_.elements(); }
  const zarrbits::codec& codec() const noexcept { return transform_.codec(); }

 private:
  void check() const;

  Transform transform_;
  std::streamsize buffer_size_;
  std::uint64_t total_in_ = 0;
  std::uint64_t total_out_ = 0;
  std::ptrdiff_t origin_ = 0;
  std::exception_ptr error_;
  bool closed_ = false;
};

extern template class transform_adapter<zarrbits::encoder>;
extern template class transform_adapter<zarrbits::decoder>;

}  // namespace zarrbits::iostreams::detail

#endif
