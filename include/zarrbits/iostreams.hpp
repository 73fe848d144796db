// SPDX-License-Identifier: BSL-1.0
//
// Boost.Iostreams filters over any codec. Link `zarrbits::streams`; docs/streams.md has the recipes.
//
//   namespace io = boost::iostreams;
//   const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
//
//   io::filtering_ostream out;
//   out.push(zarrbits::iostreams::encoder(camera));
//   out.push(io::file_sink("frame.bits", std::ios::binary));
//   out.write(data, size);     // elements in C order, native byte order, cut anywhere
//   out.reset();               // ends the chunk; throws codec_error if a value did not fit
//
//   io::filtering_istream in;
//   in.push(zarrbits::iostreams::decoder(camera, elements));
//   in.push(io::file_source("frame.bits", std::ios::binary));
//
//   io::filtering_stream<io::input_seekable> slice;
//   slice.push(zarrbits::iostreams::seekable_decoder(camera));
//   slice.push(io::file_source("frame.bits", std::ios::binary));
//   slice.seekg(1000 * 2);     // element 1000: positions are decoded bytes
//
// One stream is one chunk. Call reset() to end it: the destructor of a Boost chain swallows every error.
//
#ifndef ZARRBITS_IOSTREAMS_HPP
#define ZARRBITS_IOSTREAMS_HPP

#include <zarrbits/zarrbits.hpp>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/detail/adapter/non_blocking_adapter.hpp>
#include <boost/iostreams/filter/symmetric.hpp>
#include <boost/iostreams/operations.hpp>
#include <boost/iostreams/pipeline.hpp>
#include <boost/iostreams/positioning.hpp>
#include <boost/iostreams/traits.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

namespace zarrbits::iostreams {

// Everything of ours that goes wrong in a stream or when a filter is made. what() is a whole sentence, code() an error_code that
// compares with zarrbits::errc, failure() has the element and the value.
class codec_error : public std::ios_base::failure {
 public:
  codec_error(const zarrbits::failure& f, const std::string& sentence);

  const char* what() const noexcept override;
  const zarrbits::failure& failure() const noexcept { return failure_; }

 private:
  zarrbits::failure failure_;
  std::shared_ptr<const std::string> sentence_;  // shared, because copying an exception must not throw
};

// The size in bytes of a filter's own buffer and of the stream buffer in front of it.
inline constexpr std::streamsize default_buffer_size = 8192;

namespace detail {

// Boost copies into memory (array_sink) by reading as many bytes as there is room for, until it is told the end: none once it is full. Where
// more is to come then, it would ask for ever.
[[noreturn]] void no_room_for_more(const zarrbits::codec& c);

// What boost::iostreams::symmetric_filter drives: a transform of the core behind Boost's calling convention.
template <class Transform>
class transform_adapter {
 public:
  using char_type = char;

  transform_adapter(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size);

  // Throws codec_error; once it has thrown, every call throws the same until close(). That is what makes errors in the last
  // buffered bytes visible: Boost ignores the first of them and asks again when the stream is closed.
  bool filter(const char*& in, const char* in_end, char*& out, char* out_end, bool flush);
  // Ready for another chunk. Throws the error of this one, if there was any, so that reset() of an input stream tells it too.
  void close();

  // Where the next byte is read or written, of a device that is memory and is now at `position`: Boost copies such devices where filters are composed
  // with each other, and forgets how far the copy came. So what counts is where the chunk began, and what went through here since.
  std::ptrdiff_t place(std::ptrdiff_t position, std::ios_base::openmode which) noexcept {
    if (closed_ || total_in_ + total_out_ == 0) return origin_ = position;
    return origin_ + static_cast<std::ptrdiff_t>(which == std::ios_base::in ? total_in_ : total_out_);
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
  bool closed_ = false;
};

extern template class transform_adapter<zarrbits::encoder>;
extern template class transform_adapter<zarrbits::decoder>;

// compose() wraps devices that are memory (Boost's "direct" devices) in one that has a position, and gives the device itself by operator*.
template <class Device>
concept memory_device = requires(Device& device) {
  { device.seek(0, std::ios_base::cur, std::ios_base::out) } -> std::convertible_to<std::streampos>;
  requires boost::iostreams::is_direct<std::remove_cvref_t<decltype(*device)>>::value;
  // where reading and writing have a position each, seek() does not tell one alone
  requires !std::is_convertible_v<typename Device::category, boost::iostreams::bidirectional> &&
               !std::is_convertible_v<typename Device::category, boost::iostreams::dual_seekable>;
};

// Or such a device in what Boost wraps around every device when it closes a filter.
template <class Device>
inline constexpr bool is_memory = memory_device<Device>;
template <class Device>
inline constexpr bool is_memory<boost::iostreams::non_blocking_adapter<Device>> = is_memory<Device>;

// What encoder and decoder have in common.
template <class Transform>
class transform_filter : public boost::iostreams::symmetric_filter<transform_adapter<Transform>> {
  using base_type = boost::iostreams::symmetric_filter<transform_adapter<Transform>>;

 public:
  // Without optimally_buffered_tag, Boost puts a buffer of only 128 bytes in front of a filter.
  struct category : base_type::category, boost::iostreams::optimally_buffered_tag {};

  std::streamsize optimal_buffer_size() const { return adapter().buffer_size(); }

  // As symmetric_filter has them. Where compose() puts the filter on a device that is memory (array_sink, array_source, mapped files), bytes are
  // made there and read from there, without a way through the filter's own buffer.
  template <class Sink>
  std::streamsize write(Sink& sink, const char* in, std::streamsize n) {
    if constexpr (is_memory<Sink>) return write_to_memory(sink, in, n);
    else return base_type::write(sink, in, n);
  }
  template <class Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    if (n <= 0) {  // whether this is the end shows when a byte is asked for
      char more = 0;
      const std::streamsize got = read(source, &more, 1);
      if (got > 0) no_room_for_more(this->filter().codec());
      return got;
    }
    if constexpr (memory_device<Source>) return read_from_memory(source, out, n);
    else return base_type::read(source, out, n);
  }
  template <class Device>
  void close(Device& device, std::ios_base::openmode which) {
    if constexpr (is_memory<Device> && std::is_convertible_v<typename Device::category, boost::iostreams::output>) {
      if (which == std::ios_base::out) return finish_in_memory(device);
    }
    base_type::close(device, which);
  }

  // Bytes that went in and came out, and whole elements, of the chunk at hand; of the last one after close() or reset(), until
  // the next chunk begins. Copies of a filter share their state, so a copy kept outside the stream may be asked.
  std::uint64_t total_in() const { return adapter().total_in(); }
  std::uint64_t total_out() const { return adapter().total_out(); }
  std::uint64_t elements() const { return adapter().elements(); }

 protected:
  transform_filter(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size)
      : base_type(buffer_size, c, elements, buffer_size) {}

 private:
  // symmetric_filter has no const access to what it shares with its copies; a copy is a pointer
  transform_adapter<Transform>& adapter() const { return base_type(*this).filter(); }

  // Brings a device to where it goes on; tells that place.
  template <class Device>
  std::ptrdiff_t move(Device& device, std::ios_base::openmode which) {
    const auto seek = [&](std::ptrdiff_t to, std::ios_base::seekdir way) {
      return static_cast<std::ptrdiff_t>(boost::iostreams::position_to_offset(device.seek(to, way, which)));
    };
    const std::ptrdiff_t place = this->filter().place(seek(0, std::ios_base::cur), which);
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
    copy_to(sink, from, in_end, false);  // where there was no room, Boost says so
    return n;
  }
  template <class Sink>
  void copy_to(Sink& sink, const char* from, const char* end, bool flush) {
    for (bool more = true; flush ? more : from != end;) {
      char piece[512], *to = piece;
      more = this->filter().filter(from, end, to, piece + sizeof piece, flush);
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
    bool more = true;
    while (more && to != out_end) more = this->filter().filter(from, end, to, out_end, from == end);
    source.seek(from - begin, std::ios_base::beg, std::ios_base::in);
    return more || to != out ? to - out : -1;
  }
};

// The device below a seekable_decoder, whatever its type.
class encoded_source {
 public:
  virtual std::streamsize read(char* out, std::streamsize n) = 0;
  virtual boost::iostreams::stream_offset seek(boost::iostreams::stream_offset to, std::ios_base::seekdir way) = 0;

 protected:
  ~encoded_source() = default;
};

template <class Source>
class encoded_source_of final : public encoded_source {
 public:
  explicit encoded_source_of(Source& source) : source_(source) {}

  std::streamsize read(char* out, std::streamsize n) override { return boost::iostreams::read(source_, out, n); }
  boost::iostreams::stream_offset seek(boost::iostreams::stream_offset to, std::ios_base::seekdir way) override {
    return boost::iostreams::position_to_offset(boost::iostreams::seek(source_, to, way, std::ios_base::in));
  }

 private:
  Source& source_;
};

class range_reader;  // streams/range_reader.hpp

}  // namespace detail

// Elements in C order and native byte order in, encoded bytes out; for output and for input.
//
// `elements`: how many will come; any other number is then an error at the end of the stream. Needed where
// codec.needs_element_count(). Throws codec_error where it is missing, and for a buffer size that is not positive.
class encoder : public detail::transform_filter<zarrbits::encoder> {
 public:
  explicit encoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                   std::streamsize buffer_size = default_buffer_size)
      : transform_filter(c, elements, buffer_size) {}
};
BOOST_IOSTREAMS_PIPABLE(encoder, 0)

// Encoded bytes in, elements in C order and native byte order out; for input and for output.
//
// `elements`: how many the chunk has; a length or a count byte that says otherwise is then an error. Without it, the count byte
// decides; where there is none (packbits with padding_encoding "none"), every whole element comes out, and up to 7 of them may be
// padding. What is wrong at the end of a chunk is found when the end is read: read up to the end of the stream.
class decoder : public detail::transform_filter<zarrbits::decoder> {
 public:
  explicit decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                   std::streamsize buffer_size = default_buffer_size)
      : transform_filter(c, elements, buffer_size) {}
};
BOOST_IOSTREAMS_PIPABLE(decoder, 0)

// Random access to the elements of a chunk, for boost::iostreams::filtering_stream<input_seekable> over a device that seeks. The
// chunk is the whole device; a chunk inside a larger file is boost::iostreams::restrict(device, offset, size).
//
// Positions are decoded bytes: element i is at i * codec.element_size(). Any byte may be the target of a seek, the end too;
// further is an error (invalid_range). Only the bytes that hold the wanted elements are read. `buffer_size` bounds how much is
// decoded at once, and with it how much a single short read costs.
//
// `elements`: how many the chunk has. Without it they follow from the size of the device and the count byte as in `decoder`.
// Either way a device whose size is no such chunk's is refused at the first read or seek. Copies share their state.
class seekable_decoder {
 public:
  using char_type = char;
  struct category : boost::iostreams::input_seekable,
                    boost::iostreams::filter_tag,
                    boost::iostreams::multichar_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  static constexpr std::streamsize default_buffer_size = 1024;

  explicit seekable_decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                            std::streamsize buffer_size = default_buffer_size);

  template <class Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    detail::encoded_source_of<Source> below(source);
    return read_from(below, out, n);
  }
  template <class Source>
  std::streampos seek(Source& source, boost::iostreams::stream_offset to, std::ios_base::seekdir way,
                      std::ios_base::openmode = std::ios_base::in) {
    detail::encoded_source_of<Source> below(source);
    return boost::iostreams::offset_to_position(seek_in(below, to, way));
  }
  template <class Source>
  void close(Source&) {
    close_reader();
  }
  std::streamsize optimal_buffer_size() const;

  std::uint64_t total_in() const;                 // bytes read from the device so far, and
  std::uint64_t total_out() const;                // bytes delivered, since the filter was made
  std::optional<std::uint64_t> elements() const;  // of the chunk; empty while they are not known yet

 private:
  std::streamsize read_from(detail::encoded_source& below, char* out, std::streamsize n);
  boost::iostreams::stream_offset seek_in(detail::encoded_source& below, boost::iostreams::stream_offset to,
                                          std::ios_base::seekdir way);
  void close_reader();

  std::shared_ptr<detail::range_reader> reader_;
};
BOOST_IOSTREAMS_PIPABLE(seekable_decoder, 0)

}  // namespace zarrbits::iostreams

#endif
