// SPDX-License-Identifier: BSL-1.0
//
// Encoding and decoding filters, for output and for input.
//
//   namespace io = boost::iostreams;
//   const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
//
//   io::filtering_ostream out;
//   out.push(zarrbits::iostreams::encoder(camera));
//   out.push(io::file_sink("frame.bits", std::ios::binary));
//   zarrbits::iostreams::write_elements(out, frame);
//   out.reset();               // ends the chunk; throws codec_error if a value did not fit
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

// The size in bytes of a filter's own buffer and of the stream buffer in front of it.
inline constexpr std::streamsize default_buffer_size = 8192;

// Elements in C order and native byte order in, encoded bytes out; for output and for input.
//
// `elements`: how many will come; any other number is then an error at the end of the stream. Needed where
// codec.needs_element_count(). Throws codec_error where it is missing, and for a buffer size that is not positive.
class encoder : public detail::transform_filter<zarrbits::encoder> {
 public:
  // `buffer_size`: bytes of its own buffer.
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
  // `buffer_size`: bytes of its own buffer.
  explicit decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements = {},
                   std::streamsize buffer_size = default_buffer_size)
      : transform_filter(c, elements, buffer_size) {}
};
BOOST_IOSTREAMS_PIPABLE(decoder, 0)

}  // namespace zarrbits::iostreams

#endif
