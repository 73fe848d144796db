// SPDX-License-Identifier: BSL-1.0
//
// Encoding and decoding filters, for output and for input.
//
//   namespace io = boost::iostreams;
//   const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
//
//   io::filtering_ostream out;
//   out.push(zarrbits::iostreams::encoder(camera));
//   out.push(zarrbits::iostreams::checked(io::file_sink("frame.bits", std::ios::binary)));
//   zarrbits::iostreams::write_elements(out, frame);
//   out.reset();               // ends the chunk; throws if a value did not fit, or a byte was not written
//
//   io::filtering_istream in;
//   in.push(zarrbits::iostreams::decoder(camera, frame.size()));
//   in.push(io::file_source("frame.bits", std::ios::binary));
//   zarrbits::iostreams::read_elements(in, frame);
//
#ifndef ZARRBITS_IOSTREAMS_ENCODER_HPP
#define ZARRBITS_IOSTREAMS_ENCODER_HPP

#include <zarrbits/codec.hpp>
#include <zarrbits/iostreams/codec_error.hpp>
#include <zarrbits/iostreams/detail/transform_filter.hpp>
#include <zarrbits/transform.hpp>

#include <boost/iostreams/pipeline.hpp>

#include <cstdint>
#include <ios>
#include <optional>

namespace zarrbits::iostreams {

// The size in bytes of a filter's own buffer, and of the stream buffer in front of it.
inline constexpr std::streamsize default_buffer_size = 8192;

// A filter that encodes: takes elements in C order and native byte order, gives encoded bytes; for output and for input.
//
// `elements`: the number of elements that will come; any other number is an error at the end of the stream. Required if
// codec.needs_element_count(). Throws codec_error if it is missing, and if the buffer size is not positive.
class encoder : public detail::transform_filter<zarrbits::encoder> {
 public:
  // `buffer_size`: size of the filter's own buffer in bytes.
  explicit encoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                   std::streamsize buffer_size = default_buffer_size)
      : transform_filter(c, elements, buffer_size) {}
};
BOOST_IOSTREAMS_PIPABLE(encoder, 0)

// A filter that decodes: takes encoded bytes, gives elements in C order and native byte order; for input and for output.
//
// `elements`: the number of elements of the chunk; a length or a count byte that says otherwise is then an error. Without it, the
// count byte decides. If there is none (packbits with padding_encoding "none"), every whole element comes out, and up to 7 of
// them may be padding. Errors at the end of a chunk are found when the end is read: read up to the end of the stream.
class decoder : public detail::transform_filter<zarrbits::decoder> {
 public:
  // `buffer_size`: size of the filter's own buffer in bytes.
  explicit decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                   std::streamsize buffer_size = default_buffer_size)
      : transform_filter(c, elements, buffer_size) {}
};
BOOST_IOSTREAMS_PIPABLE(decoder, 0)

}  // namespace zarrbits::iostreams

#endif
