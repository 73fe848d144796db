// SPDX-License-Identifier: BSL-1.0
//
// A transform of the core as a filter of Boost.
//
#ifndef ZARRBITS_IOSTREAMS_DETAIL_TRANSFORM_FILTER_HPP
#define ZARRBITS_IOSTREAMS_DETAIL_TRANSFORM_FILTER_HPP

#include <zarrbits/iostreams/detail/device_guard.hpp>
#include <zarrbits/iostreams/detail/memory_device.hpp>
#include <zarrbits/iostreams/detail/transform_adapter.hpp>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/filter/symmetric.hpp>
#include <boost/iostreams/operations.hpp>
#include <boost/iostreams/positioning.hpp>
#include <boost/iostreams/traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ios>
#include <optional>
#include <type_traits>

namespace zarrbits::iostreams::detail {

// A filter of Boost that encodes or decodes: what encoder and decoder have in common.
template <class Transform>
class transform_filter : public boost::iostreams::symmetric_filter<transform_adapter<Transform>> {
  using base_type = boost::iostreams::symmetric_filter<transform_adapter<Transform>>;

 public:
  // Required by Boost.Iostreams. Without optimally_buffered_tag, Boost puts a buffer of only 128 bytes in front of a filter.
  struct category : base_type::category, boost::iostreams::optimally_buffered_tag {};

  std::streamsize optimal_buffer_size() const { return adapter().buffer_size(); }  // size in bytes of the stream buffer in front

  // Called by Boost.Iostreams: encodes or decodes, and hands on what is complete. If compose() puts the filter on a device that
  // is memory (array_sink, array_source, mapped files), bytes are written and read there directly, not through the filter's own
  // buffer.
  template <class Sink>
  std::streamsize write(Sink& sink, const char* in, std::streamsize n) {
    return record_errors([&] {
      if constexpr (is_memory<Sink>) return write_to_memory(sink, in, n);
      device_guard<Sink> guard(sink);
      return base_type::write(guard, in, n);
    });
  }
  // Called by Boost.Iostreams: the same for input.
  template <class Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    return record_errors([&] { return read_some(source, out, n); });
  }
  // Called by Boost.Iostreams: ends the chunk, and throws the first error, if there was one.
  template <class Device>
  void close(Device& device, std::ios_base::openmode mode) {
    std::exception_ptr error = this->filter().forget_error();
    try {
      if (mode == std::ios_base::out && !error) close_output(device);
      else base_type::close(device, std::ios_base::in);  // which has nothing to flush
    } catch (...) {
      if (!error) throw;
    }
    if (error) std::rethrow_exception(error);
  }

  const zarrbits::codec& codec() const { return adapter().codec(); }  // the one that it was made with

  // Bytes in, bytes out and whole elements of the current chunk; after close() or reset() those of the last chunk, until the next
  // one begins. Copies of a filter share their state, so a copy outside of the stream can be asked.
  std::uint64_t total_in() const { return adapter().total_in(); }
  std::uint64_t total_out() const { return adapter().total_out(); }  // bytes out, as total_in()
  std::uint64_t elements() const { return adapter().elements(); }    // whole elements, as total_in()

 protected:
  // For the two of them.
  transform_filter(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size)
      : base_type(buffer_size, c, elements, buffer_size) {}

 private:
  // symmetric_filter has no const access to what it shares with its copies; a copy is a pointer
  transform_adapter<Transform>& adapter() const { return base_type(*this).filter(); }

  // Moves a device to the place where it continues; returns that place.
  template <class Device>
  std::ptrdiff_t move(Device& device, std::ios_base::openmode mode) {
    const auto seek = [&](std::ptrdiff_t offset, std::ios_base::seekdir direction) {
      return static_cast<std::ptrdiff_t>(boost::iostreams::position_to_offset(device.seek(offset, direction, mode)));
    };
    const std::ptrdiff_t place = this->filter().place(seek(0, std::ios_base::cur), mode);
    return seek((std::min)(place, seek(0, std::ios_base::end)), std::ios_base::beg);
  }
  template <class Sink>
  std::streamsize write_to_memory(Sink& sink, const char* in, std::streamsize n) {
    const char *from = in, *const in_end = in + n;
    const std::ptrdiff_t first = move(sink, std::ios_base::out);
    if constexpr (memory_device<Sink>) {
      const auto [begin, end] = boost::iostreams::output_sequence(*sink);
      char* to = begin + first;
      while (from != in_end && to != end) this->filter().filter(from, in_end, to, end, false);
      sink.seek(to - begin, std::ios_base::beg, std::ios_base::out);
    }
    copy_to(sink, from, in_end, false);  // Boost reports a lack of room
    return n;
  }
  // What a device throws may get lost in the stream in front of the filter. So the first error is kept until close(), and nothing
  // is written after it.
  template <class F>
  auto record_errors(F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (...) {
      this->filter().keep_error(std::current_exception());
      throw;
    }
  }
  template <class Source>
  std::streamsize read_some(Source& source, char* out, std::streamsize n) {
    if (n <= 0) {  // only a request for a byte shows whether this is the end
      char probe = 0;
      const std::streamsize got = read_some(source, &probe, 1);
      if (got > 0) no_room_for_more(this->filter().codec());
      return got;
    }
    if constexpr (memory_device<Source>) return read_from_memory(source, out, n);
    device_guard<Source> guard(source);
    return base_type::read(guard, out, n);
  }
  template <class Device>
  void close_output(Device& device) {
    if constexpr (std::is_convertible_v<typename boost::iostreams::category_of<Device>::type, boost::iostreams::output>) {
      if constexpr (is_memory<Device>) return finish_in_memory(device);
      auto& inner = without_adapter(device);
      device_guard<std::remove_reference_t<decltype(inner)>> guard(inner);
      base_type::close(guard, std::ios_base::out);
      guard.finish();
    } else {
      base_type::close(device, std::ios_base::out);
    }
  }
  template <class Sink>
  void copy_to(Sink& sink, const char* from, const char* end, bool flush) {
    for (bool has_more = true; flush ? has_more : from != end;) {
      char piece[512], *to = piece;
      has_more = this->filter().filter(from, end, to, piece + sizeof piece, flush);
      if (to != piece) boost::iostreams::write(sink, piece, to - piece);
    }
  }
  template <class Sink>
  void finish_in_memory(Sink& sink) {
    try {
      move(sink, std::ios_base::out);
      copy_to(sink, nullptr, nullptr, true);
    } catch (...) {
      try {
        base_type::close(sink, std::ios_base::in);
      } catch (...) {  // the first error counts
      }
      throw;
    }
    base_type::close(sink, std::ios_base::in);  // which has nothing to flush
  }
  template <class Source>
  std::streamsize read_from_memory(Source& source, char* out, std::streamsize n) {
    const auto [begin, end] = boost::iostreams::input_sequence(*source);
    const char* from = begin + move(source, std::ios_base::in);
    char *to = out, *const out_end = out + n;
    bool has_more = true;
    while (has_more && to != out_end) has_more = this->filter().filter(from, end, to, out_end, from == end);
    source.seek(from - begin, std::ios_base::beg, std::ios_base::in);
    return has_more || to != out ? to - out : -1;
  }
};

}  // namespace zarrbits::iostreams::detail

#endif
