// SPDX-License-Identifier: BSL-1.0
//
// write_elements() and read_elements(): elements of a C++ type into streams and out of them.
//
#include "tests/streams/support.hpp"

#include <boost/iostreams/restrict.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <complex>
#include <span>
#include <sstream>
#include <vector>

using namespace test;
using zarrbits::errc;

namespace {

const std::vector<std::uint16_t> pixels = {0xABC, 0x123, 0xFFF};
const std::string packed_pixels = "\xbc\x3a\x12\xff\x0f";  // by hand: from the least significant end, then four bits of padding

zarrbits::codec twelve_bits() { return zarrbits::packbits("uint16", {.last_bit = 11}); }

template <class R>
std::string encoded(const R& elements) {
  std::string out;
  io::filtering_ostream stream;
  stream.push(zi::encoder(twelve_bits()));
  stream.push(string_sink(out));
  BOOST_TEST(&zi::write_elements(stream, elements) == &stream);
  stream.reset();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(elements_of_a_type_become_the_bytes_of_the_chunk_and_come_back) {
  const std::array<std::uint16_t, 3> array = {0xABC, 0x123, 0xFFF};
  BOOST_TEST((encoded(pixels) == packed_pixels));
  BOOST_TEST((encoded(array) == packed_pixels));
  BOOST_TEST((encoded(std::span<const std::uint16_t>(array)) == packed_pixels));

  io::filtering_istream in;
  in.push(zi::decoder(twelve_bits(), 3));
  in.push(io::array_source(packed_pixels.data(), packed_pixels.size()));
  std::vector<std::uint16_t> first(1);
  std::array<std::uint16_t, 2> others{};
  BOOST_TEST(&zi::read_elements(in, first) == &in);
  zi::read_elements(in, std::span(others));
  BOOST_TEST(first[0] == 0xABC);
  BOOST_TEST(others[0] == 0x123);
  BOOST_TEST(others[1] == 0xFFF);
  BOOST_TEST(in.good());
  BOOST_TEST(in.peek() == std::char_traits<char>::eof());
}

BOOST_AUTO_TEST_CASE(fewer_elements_than_there_is_room_for_fail_the_stream_and_gcount_tells_the_bytes) {
  io::filtering_istream in;
  in.push(zi::decoder(twelve_bits(), 3));
  in.push(io::array_source(packed_pixels.data(), packed_pixels.size()));
  std::vector<std::uint16_t> four(4, 7);
  zi::read_elements(in, four);
  BOOST_TEST(in.fail());
  BOOST_TEST(in.gcount() == 6);
  BOOST_TEST((four == std::vector<std::uint16_t>{0xABC, 0x123, 0xFFF, 7}));
}

BOOST_AUTO_TEST_CASE(any_stream_and_any_type_of_a_fixed_size_will_do) {
  const std::vector<std::complex<double>> numbers = {{1, 2}, {3, -4}};
  std::stringstream memory;
  zi::write_elements(memory, numbers);
  BOOST_TEST(memory.str().size() == 32u);
  std::vector<std::complex<double>> back(2);
  zi::read_elements(memory, back);
  BOOST_TEST((back == numbers));
  zi::write_elements(memory, std::vector<int>());  // nothing
  BOOST_TEST(memory.good());
}

BOOST_AUTO_TEST_CASE(an_element_that_does_not_fit_is_an_error_of_reset_with_its_index) {
  std::string out;
  io::filtering_ostream stream;
  stream.push(zi::encoder(twelve_bits()));
  stream.push(string_sink(out));
  zi::write_elements(stream, std::vector<std::uint16_t>{1, 2, 0x1000});
  try {
    stream.reset();
    BOOST_ERROR("was not refused");
  } catch (const zi::codec_error& e) {
    BOOST_TEST((e.code() == errc::value_does_not_fit));
    BOOST_TEST(e.failure().element == 2u);
  }
}

// encode() and decode() refuse them; here the memory of twice as many elements would pass.
BOOST_AUTO_TEST_CASE(elements_of_another_size_than_those_of_the_codec_are_refused) {
  const std::vector<std::uint32_t> wide = {0xABC, 0x123, 0xFFF};
  const std::vector<std::uint8_t> narrow = {1, 2, 3};
  const auto is_refused = [](const auto& what) {
    try {
      what();
      BOOST_ERROR("was not refused");
    } catch (const zi::codec_error& e) {
      BOOST_TEST((e.code() == errc::element_size_mismatch));
      BOOST_TEST(std::string(e.what()).find("packbits: ") == 0, e.what());
    }
  };
  std::string out;
  io::filtering_ostream stream;
  stream.push(zi::encoder(twelve_bits()));
  stream.push(string_sink(out));
  is_refused([&] { zi::write_elements(stream, wide); });
  is_refused([&] { zi::write_elements(stream, narrow); });
  BOOST_TEST(stream.good());
  zi::write_elements(stream, pixels);  // nothing was written before
  stream.reset();
  BOOST_TEST((out == packed_pixels));

  std::vector<std::uint32_t> two(2);
  std::vector<std::uint16_t> three(3);
  io::filtering_istream in;
  in.push(zi::decoder(twelve_bits(), 3));
  in.push(io::array_source(packed_pixels.data(), packed_pixels.size()));
  is_refused([&] { zi::read_elements(in, two); });
  zi::read_elements(in, three);
  BOOST_TEST((three == pixels));
  io::filtering_stream<io::input_seekable> slice;
  slice.push(zi::seekable_decoder(twelve_bits(), 3));
  slice.push(io::array_source(packed_pixels.data(), packed_pixels.size()));
  is_refused([&] { zi::read_elements(slice, two); });
  slice.seekg(2);
  zi::read_elements(slice, std::span(three).first(2));
  BOOST_TEST((three == std::vector<std::uint16_t>{0x123, 0xFFF, 0xFFF}));

  // encoded bytes are not elements
  out.clear();
  stream.push(zi::decoder(twelve_bits(), 3));
  stream.push(string_sink(out));
  zi::write_elements(stream, packed_pixels);
  stream.reset();
  BOOST_TEST(out.size() == 6u);
}

BOOST_AUTO_TEST_CASE(a_read_of_no_bytes_says_what_may_be_wrong) {
  const auto says = [](const auto& what) {
    try {
      what();
      BOOST_ERROR("was not refused");
    } catch (const zi::codec_error& e) {
      BOOST_TEST((e.code() == errc::buffer_too_small));
      BOOST_TEST(
          std::string(e.what()).find("packbits: a read of 0 bytes, but more follow: the memory that is written to is full, "
                                     "or restrict() ends within the chunk; ") == 0,
          e.what());
    }
  };
  char none = 0;
  says([&] {
    auto composed = io::compose(zi::decoder(twelve_bits(), 3), io::array_source(packed_pixels.data(), packed_pixels.size()));
    io::read(composed, &none, 0);
  });
  says([&] {
    io::filtering_istream in;
    in.push(io::restrict(zi::decoder(twelve_bits(), 3), 0, 4));
    in.push(io::array_source(packed_pixels.data(), packed_pixels.size()));
    in.exceptions(std::ios::badbit);
    std::string all(100, ' ');
    in.read(all.data(), 100);
  });
}
