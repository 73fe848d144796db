// SPDX-License-Identifier: BSL-1.0
//
// Our filters in front of Boost's compressors, and each other.
//
#include "tests/streams/support.hpp"

#include <boost/iostreams/device/mapped_file.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace test;
using zarrbits::errc;
using zarrbits::padding;

BOOST_AUTO_TEST_CASE(packbits_then_zlib_is_the_zlib_of_the_packed_bytes) {
  const std::string v = values(100001), b = packed(v) + '\4';
  for (const padding p : {padding::last_byte}) {
    std::string out;
    io::filtering_ostream stream;
    stream.push(zi::encoder(camera(p)));
    stream.push(io::zlib_compressor());
    stream.push(string_sink(out));
    stream.write(v.data(), static_cast<std::streamsize>(v.size()));
    stream.reset();
    BOOST_CHECK(copied_in(io::zlib_decompressor(), out) == b);

    io::filtering_istream in;
    in.push(zi::decoder(camera(p)));
    in.push(io::zlib_decompressor());
    in.push(io::array_source(out.data(), out.size()));
    BOOST_CHECK((std::string(std::istreambuf_iterator<char>(in), {}) == v));
  }
}

BOOST_AUTO_TEST_CASE(an_error_passes_through_a_chain_to_reset) {
  std::string v = values(1000);
  v.back() = '\x7f';
  // in front of another filter, behind one, and between two
  const auto run = [&](auto push) {
    std::string out;
    io::filtering_ostream stream;
    push(stream);
    stream.push(string_sink(out));
    stream.write(v.data(), static_cast<std::streamsize>(v.size()));
    stream.reset();
  };
  const auto plain = zarrbits::packbits("uint16");
  CHECK_CODEC_ERROR(run([&](auto& s) {
                      s.push(zi::encoder(camera()));
                      s.push(io::zlib_compressor());
                    }),
                    errc::value_does_not_fit);
  CHECK_CODEC_ERROR(run([&](auto& s) {
                      s.push(zi::encoder(plain));
                      s.push(zi::encoder(camera()));
                    }),
                    errc::value_does_not_fit);
  CHECK_CODEC_ERROR(run([&](auto& s) {
                      s.push(zi::decoder(plain));
                      s.push(zi::encoder(camera()));
                      s.push(io::zlib_compressor());
                    }),
                    errc::value_does_not_fit);
}

BOOST_AUTO_TEST_CASE(an_error_before_the_end_turns_the_stream_bad_at_once) {
  std::string v = values(100000);
  v[1] = '\x7f';
  std::string out;
  io::filtering_ostream quiet;
  quiet.push(zi::encoder(camera()));
  quiet.push(string_sink(out));
  quiet.write(v.data(), static_cast<std::streamsize>(v.size()));
  BOOST_CHECK(quiet.bad());
  CHECK_CODEC_ERROR(quiet.reset(), errc::value_does_not_fit);
  quiet.reset();  // a second reset empties the stream

  io::filtering_ostream loud;
  loud.push(zi::encoder(camera()));
  loud.push(string_sink(out));
  loud.exceptions(std::ios::badbit);
  CHECK_CODEC_ERROR(loud.write(v.data(), static_cast<std::streamsize>(v.size())), errc::value_does_not_fit);
}

BOOST_AUTO_TEST_CASE(a_hundred_chunks_through_one_filter) {
  const zi::encoder e(camera(padding::first_byte), 77);
  const zi::decoder d(camera(padding::first_byte));
  std::mt19937 random(100);
  for (unsigned i = 0; i < 100; ++i) {
    const std::string v = values(77, 12, i), b = written(e, v, random);
    BOOST_REQUIRE(b == '\4' + packed(v));
    BOOST_REQUIRE(read(d, b, random) == v);
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_is_made_in_a_mapped_file_and_read_from_it) {
  const std::string v = values(5001), b = packed(v);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("zarrbits-test-mapped-" + std::to_string(::getpid()))).string();
  io::mapped_file_params file(path);
  file.new_file_size = static_cast<io::stream_offset>(b.size());
  io::copy(io::array_source(v.data(), v.size()), io::compose(zi::encoder(camera()), io::mapped_file_sink(file)));
  std::ifstream stored(path, std::ios::binary);
  BOOST_CHECK((std::string(std::istreambuf_iterator<char>(stored), {}) == b));
  std::string back;
  io::copy(io::compose(zi::decoder(camera(), 5001), io::mapped_file_source(path)), string_sink(back));
  BOOST_CHECK(back == v);
  std::filesystem::remove(path);
}
