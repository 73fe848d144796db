// SPDX-License-Identifier: BSL-1.0
//
// Elements at any position of a chunk.
//
//   namespace io = boost::iostreams;
//   io::filtering_stream<io::input_seekable> slice;
//   slice.push(zarrbits::iostreams::seekable_decoder(camera));
//   slice.push(io::file_source("frame.bits", std::ios::binary));
//   slice.seekg(1000 * 2);     // element 1000: positions are decoded bytes
//   std::vector<std::uint16_t> pixels(100);
//   zarrbits::iostreams::read_elements(slice, pixels);
//
#ifndef ZARRBITS_IOSTREAMS_SEEKABLE_DECODER_HPP
#define ZARRBITS_IOSTREAMS_SEEKABLE_DECODER_HPP

#include <zarrbits/codec.hpp>
#include <zarrbits/iostreams/codec_error.hpp>
#include <zarrbits/iostreams/detail/encoded_source.hpp>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/pipeline.hpp>
#include <boost/iostreams/positioning.hpp>

#include <cstdint>
#include <ios>
#include <memory>
#include <optional>

namespace zarrbits::iostreams {

namespace detail {
class range_reader;  // streams/range_reader.hpp
}

// A filter that decodes a chunk at any position, for boost::iostreams::filtering_stream<input_seekable> over a device that seeks.
// The chunk is the whole device; use boost::iostreams::restrict(device, offset, size) for a chunk inside a larger file.
//
// Positions are decoded bytes: element i is at i * codec.element_size(). A seek may go to any byte, and to the end; beyond it is
// an error (invalid_range). Only the bytes that hold the wanted elements are read. `buffer_size` limits how much is decoded at
// once, and with it the cost of a single short read.
//
// `elements`: the number of elements of the chunk. Without it, the number follows from the size of the device and the count byte
// as in `decoder`. In both cases the first read or seek refuses a device whose size is not that of such a chunk. Copies share
// their state.
class seekable_decoder {
 public:
  using char_type = char;  // Required by Boost.Iostreams.
  // Required by Boost.Iostreams.
  struct category : boost::iostreams::input_seekable,
                    boost::iostreams::filter_tag,
                    boost::iostreams::multichar_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  static constexpr std::streamsize default_buffer_size = 1024;  // in bytes

  // Throws codec_error for a buffer size that is not positive.
  explicit seekable_decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                            std::streamsize buffer_size = default_buffer_size);

  // Called by Boost.Iostreams: reads elements from the current position, or -1 at the end.
  template <class Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    detail::encoded_source_of<Source> device(source);
    return read_from(device, out, n);
  }
  // Called by Boost.Iostreams: moves to a new position, in decoded bytes.
  template <class Source>
  std::streampos seek(Source& source, boost::iostreams::stream_offset offset, std::ios_base::seekdir direction,
                      std::ios_base::openmode = std::ios_base::in) {
    detail::encoded_source_of<Source> device(source);
    return boost::iostreams::offset_to_position(seek_in(device, offset, direction));
  }
  // Called by Boost.Iostreams: forgets the device, and throws the error, if any.
  template <class Source>
  void close(Source&) {
    close_reader();
  }
  std::streamsize optimal_buffer_size() const;  // size in bytes of the stream buffer in front of the filter

  const zarrbits::codec& codec() const;  // the one that it was made with

  std::uint64_t total_in() const;                 // bytes read from the device since the filter was made
  std::uint64_t total_out() const;                // bytes delivered, since the filter was made
  std::optional<std::uint64_t> elements() const;  // number of elements of the chunk; empty while it is unknown

 private:
  std::streamsize read_from(detail::encoded_source& device, char* out, std::streamsize n);
  boost::iostreams::stream_offset seek_in(detail::encoded_source& device, boost::iostreams::stream_offset offset,
                                          std::ios_base::seekdir direction);
  void close_reader();

  std::shared_ptr<detail::range_reader> reader_;
};
BOOST_IOSTREAMS_PIPABLE(seekable_decoder, 0)

}  // namespace zarrbits::iostreams

#endif
