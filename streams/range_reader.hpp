// SPDX-License-Identifier: BSL-1.0
//
// The state of a seekable_decoder: a position in decoded bytes, and a window of encoded bytes around the last read.
//
#ifndef ZARRBITS_STREAMS_RANGE_READER_HPP
#define ZARRBITS_STREAMS_RANGE_READER_HPP

#include <zarrbits/iostreams.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::iostreams::detail {

class range_reader {
 public:
  range_reader(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size);

  // As Boost's read(): returns the number of bytes, or -1 at the end.
  std::streamsize read(encoded_source& device, char* out, std::streamsize n);
  boost::iostreams::stream_offset seek(encoded_source& device, boost::iostreams::stream_offset offset,
                                       std::ios_base::seekdir direction);
  // Throws the error of the last read or seek, unless a later one succeeded: the caller then knows about it.
  void close();

  const zarrbits::codec& codec() const noexcept { return codec_; }
  std::streamsize buffer_size() const noexcept { return buffer_size_; }
  std::uint64_t total_in() const noexcept { return total_in_; }
  std::uint64_t total_out() const noexcept { return total_out_; }
  const std::optional<std::uint64_t>& elements() const noexcept { return elements_; }

 private:
  template <class F>
  auto remembered(F&& f) -> decltype(f());
  std::streamsize read_elements(encoded_source& device, char* out, std::streamsize n);
  boost::iostreams::stream_offset seek_element(encoded_source& device, boost::iostreams::stream_offset offset,
                                               std::ios_base::seekdir direction);
  void open(encoded_source& device);
  std::uint64_t derive_elements(encoded_source& device, std::uint64_t encoded);
  std::uint64_t decode(encoded_source& device, std::uint64_t first, std::uint64_t count, std::span<std::byte> out);
  bool fetch(encoded_source& device, const byte_range& range, std::span<const std::byte>& bytes);
  void seek_device(encoded_source& device, std::uint64_t position);
  [[noreturn]] void fail(const zarrbits::failure& f) const;

  const zarrbits::codec codec_;
  const std::optional<std::uint64_t> declared_elements_;
  const std::streamsize buffer_size_;

  bool opened_ = false;
  std::optional<std::uint64_t> elements_;
  std::uint64_t decoded_size_ = 0;
  std::uint64_t position_ = 0;                    // in decoded bytes
  std::optional<std::uint64_t> device_position_;  // empty if unknown

  std::vector<std::byte> window_;    // encoded bytes
  std::uint64_t window_offset_ = 0;  // offset of window_[0] in the chunk
  std::size_t window_size_ = 0;
  std::uint64_t batch_ = 1;         // number of elements whose encoded bytes fit in the window at any position
  std::vector<std::byte> element_;  // one decoded element, for reads that begin or end inside it
  std::optional<std::uint64_t> element_index_;

  std::exception_ptr error_;
  std::uint64_t total_in_ = 0;
  std::uint64_t total_out_ = 0;
};

}  // namespace zarrbits::iostreams::detail

#endif
