// SPDX-License-Identifier: BSL-1.0
//
// Boost's own test kit for filters on every filter: sources and sinks that do not block and move 0 to 195 bytes at a time, both
// directions, and chunks cut in the middle.
//
// <boost/iostreams/filter/test.hpp> defines functions that are not inline: only one file of a program may include it.
#include "tests/streams/support.hpp"

#include <boost/iostreams/filter/test.hpp>
#include <boost/test/unit_test.hpp>

using namespace test;
using zarrbits::padding;

namespace {

struct filter_case {
  zarrbits::codec codec;
  std::string decoded;
  std::optional<std::string> encoded = {};  // where it is known without the library
};

std::string bools(std::size_t n) {
  std::string out = values(n, 1);
  std::string one;
  for (std::size_t i = 0; i < out.size(); i += 2) one += out[i];
  return one;
}

std::vector<filter_case> cases() {
  std::vector<filter_case> all;
  const std::string v = values(203);  // 203 * 12 bits, 4 short of a byte
  all.push_back({camera(), v, packed(v)});
  all.push_back({camera(padding::first_byte), v, '\4' + packed(v)});
  all.push_back({camera(padding::last_byte), v, packed(v) + '\4'});
  all.push_back({zarrbits::packbits("uint16"), v, v});
  all.push_back({zarrbits::bytes("uint16"), v, v});
  for (const char* type : {"uint8", "uint16", "float32", "float64", "complex64", "complex128"})
    all.push_back({zarrbits::bytes(type, {.endian = zarrbits::endian::big}), values(16 * 17, 16)});
  all.push_back({zarrbits::packbits("bool"), bools(299)});
  all.push_back({zarrbits::numcodecs_packbits(), bools(299)});
  all.push_back({zarrbits::packbits("bool", {.padding_encoding = padding::last_byte}), bools(8)});
  all.push_back({zarrbits::bytes(R"({"name": "struct", "configuration": {"fields": [)"
                                 R"({"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "complex64"},)"
                                 R"({"name": "c", "data_type": "uint8"}]}})"),
                 values(11 * 20, 16)});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_filter_passes_the_kit_of_boost) {
  for (const auto& c : cases())
    for (const std::streamsize buffer : {1, 2, 3, 5, 7, 64, 65536}) {
      const std::uint64_t n = c.decoded.size() / c.codec.element_size();
      const zi::encoder e(c.codec, n, buffer);
      const zi::decoder d(c.codec, n, buffer);
      const std::string encoded = c.encoded ? *c.encoded : copied_out(e, c.decoded);
      const std::string what = c.codec.json() + " of " + c.codec.type().name() + " with a buffer of " + std::to_string(buffer);
      BOOST_CHECK_MESSAGE(io::test_output_filter(e, c.decoded, encoded), "encoder out: " << what);
      BOOST_CHECK_MESSAGE(io::test_input_filter(e, c.decoded, encoded), "encoder in: " << what);
      BOOST_CHECK_MESSAGE(io::test_output_filter(d, encoded, c.decoded), "decoder out: " << what);
      BOOST_CHECK_MESSAGE(io::test_input_filter(d, encoded, c.decoded), "decoder in: " << what);
      BOOST_CHECK_MESSAGE(io::test_filter_pair(e, d, c.decoded), "pair: " << what);
    }
}

// The kit's source does not seek, and a copy reads from the start: what can be tested of the seekable decoder is that reading a
// whole chunk from a device gives the same bytes whatever the buffer.
BOOST_AUTO_TEST_CASE(the_seekable_decoder_read_from_the_start_is_the_decoder) {
  for (const auto& c : cases())
    for (const std::streamsize buffer : {1, 2, 3, 5, 7, 64, 65536}) {
      const std::uint64_t n = c.decoded.size() / c.codec.element_size();
      const std::string encoded = c.encoded ? *c.encoded : copied_out(zi::encoder(c.codec, n), c.decoded);
      counts device;
      std::string out;
      io::copy(io::compose(zi::seekable_decoder(c.codec, n, buffer), counting_source(encoded, device)), string_sink(out), buffer);
      BOOST_CHECK_MESSAGE(out == c.decoded, c.codec.json() << " of " << c.codec.type().name() << " with a buffer of " << buffer);
    }
}
