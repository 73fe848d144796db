// SPDX-License-Identifier: BSL-1.0
//
// Boost.Iostreams filters over any codec. Link `zarrbits::streams`; docs/guide/streams.md has the recipes.
//
//   #include <zarrbits/iostreams.hpp>
//
//   namespace io = boost::iostreams;
//   const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
//   io::filtering_ostream out;
//   out.push(zarrbits::iostreams::encoder(camera));
//   out.push(zarrbits::iostreams::checked(io::file_sink("frame.bits", std::ios::binary)));
//   zarrbits::iostreams::write_elements(out, frame);   // a std::vector<std::uint16_t>; or out.write(), cut anywhere
//   out.reset();   // ends the chunk; throws if a value did not fit, or a byte was not written
//
// One stream is one chunk. Call reset() to end it: the destructor of a Boost chain swallows every error.
//
#ifndef ZARRBITS_IOSTREAMS_HPP
#define ZARRBITS_IOSTREAMS_HPP

#include <zarrbits/iostreams/checked.hpp>
#include <zarrbits/iostreams/codec_error.hpp>
#include <zarrbits/iostreams/elements.hpp>
#include <zarrbits/iostreams/encoder.hpp>
#include <zarrbits/iostreams/seekable_decoder.hpp>
#include <zarrbits/zarrbits.hpp>

#endif
