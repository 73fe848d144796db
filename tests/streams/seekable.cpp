// SPDX-License-Identifier: BSL-1.0
#include "tests/streams/support.hpp"

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/restrict.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdio>

using namespace test;
using zarrbits::errc;
using zarrbits::padding;

namespace {

using seekable_stream = io::filtering_stream<io::input_seekable>;

std::string read_some(std::istream& in, std::size_t n) {
  std::string out(n, '\0');
  in.read(out.data(), static_cast<std::streamsize>(n));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

// Gives 1 to 3 bytes a read, claims `more` bytes that it does not have, and throws once when told to.
class stingy_source {
 public:
  using char_type = char;
  struct category : io::input_seekable, io::device_tag {};

  stingy_source(const std::string& in, std::size_t more, int* throw_at) : in_(&in), more_(more), throw_at_(throw_at) {}
  std::streamsize read(char* s, std::streamsize n) {
    if (throw_at_ && --*throw_at_ == 0) throw std::ios_base::failure("the device is gone for a moment");
    const std::size_t got =
        std::min({static_cast<std::size_t>(n), 1 + position_ % 3, in_->size() - std::min(in_->size(), position_)});
    if (got == 0) return -1;
    std::memcpy(s, in_->data() + position_, got);
    position_ += got;
    return static_cast<std::streamsize>(got);
  }
  std::streampos seek(io::stream_offset off, std::ios_base::seekdir way) {
    position_ = static_cast<std::size_t>(off) + (way == std::ios_base::end ? in_->size() + more_ : 0);
    return static_cast<std::streamoff>(position_);
  }

 private:
  const std::string* in_;
  std::size_t more_;
  int* throw_at_;
  std::size_t position_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_thousand_random_seeks_read_only_the_bytes_of_their_elements) {
  constexpr std::size_t n = 1 << 18;  // 512 KiB decoded, 384 KiB encoded
  const std::string v = values(n);
  for (const padding p : {padding::none, padding::first_byte, padding::last_byte}) {
    const std::string count(1, '\0');
    const std::string b = p == padding::first_byte ? count + packed(v) : p == padding::last_byte ? packed(v) + count : packed(v);

    // the filter alone: to the byte
    {
      counts device;
      counting_source source(b, device);
      zi::seekable_decoder d(camera(p), n);
      std::mt19937 random(1000);
      std::uint64_t allowed = 0;
      for (int i = 0; i < 1000; ++i) {
        const std::size_t first = random() % (n - 300), m = 1 + random() % 300;
        d.seek(source, static_cast<io::stream_offset>(first * 2), std::ios::beg);
        std::string got(2 * m, '\0');
        BOOST_REQUIRE_EQUAL(d.read(source, got.data(), static_cast<std::streamsize>(got.size())),
                            static_cast<std::streamsize>(2 * m));
        BOOST_REQUIRE(got == v.substr(2 * first, 2 * m));
        allowed += camera(p).encoded_range(n, {first, m}).size;
        BOOST_REQUIRE_LE(device.bytes_read, allowed);
      }
      BOOST_CHECK_EQUAL(d.total_in(), device.bytes_read);
      BOOST_TEST_MESSAGE("1000 seeks, filter alone: " << device.bytes_read << " bytes read, at most " << allowed << " allowed");
    }
    // in a stream: as much again as its buffers hold
    {
      constexpr std::size_t in_front = 128, below = 64, m = 10;
      counts device;
      seekable_stream in;
      in.push(zi::seekable_decoder(camera(p), n, in_front));
      in.push(counting_source(b, device), below);
      in.exceptions(std::ios::badbit | std::ios::failbit);
      std::mt19937 random(1000);
      for (int i = 0; i < 1000; ++i) {
        const std::size_t first = random() % (n - m);
        in.seekg(static_cast<std::streamoff>(first * 2));
        BOOST_REQUIRE_EQUAL(static_cast<std::streamoff>(in.tellg()), static_cast<std::streamoff>(first * 2));
        BOOST_REQUIRE(read_some(in, 2 * m) == v.substr(2 * first, 2 * m));
      }
      // each seek decodes one buffer of 64 elements (96 bytes, one more for the bits that straddle), rounded up to the device's
      // buffer; to read all that lies before the element would be 200 MB
      constexpr std::size_t a_seek = in_front / 2 * 12 / 8 + 1 + below;
      BOOST_CHECK_LE(device.bytes_read, 1000 * a_seek);
      BOOST_CHECK_GT(device.bytes_read, 1000 * 15u);
      BOOST_TEST_MESSAGE("1000 seeks in a stream: " << device.bytes_read << " bytes read, at most " << 1000 * a_seek
                                                    << " allowed");
    }
  }
}

BOOST_AUTO_TEST_CASE(reads_and_seeks_to_any_byte_of_an_element) {
  const std::string v = values(16 * 20, 16);  // 20 elements of 32 bytes
  const auto c = zarrbits::bytes(R"({"name": "struct", "configuration": {"fields": [)"
                                 R"({"name": "a", "data_type": "complex128"}, {"name": "b", "data_type": "complex128"}]}})",
                                 {.endian = zarrbits::endian::big});
  const std::string b = copied_out(zi::encoder(c), v);
  for (const std::streamsize buffer : {1, 5, 100, 1024}) {
    counts device;
    seekable_stream in;
    in.push(zi::seekable_decoder(c, {}, buffer));
    in.push(counting_source(b, device), 7);
    in.exceptions(std::ios::badbit);
    for (std::size_t at = 0; at <= v.size(); at += 3)
      for (const std::size_t n : {1u, 2u, 31u, 33u, 70u}) {
        in.clear();
        in.seekg(static_cast<std::streamoff>(at));
        BOOST_REQUIRE(read_some(in, n) == v.substr(at, n));
      }
  }
}

BOOST_AUTO_TEST_CASE(seeks_from_the_beginning_the_position_and_the_end) {
  const std::string v = values(1001), b = packed(v);
  seekable_stream in;
  in.push(zi::seekable_decoder(camera(), 1001));
  in.push(io::array_source(b.data(), b.size()));
  in.seekg(-6, std::ios::end);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), 1996);
  BOOST_CHECK(read_some(in, 100) == v.substr(1996));
  BOOST_CHECK(in.eof());
  in.clear();
  in.seekg(0, std::ios::end);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), 2002);
  BOOST_CHECK_EQUAL(in.get(), std::char_traits<char>::eof());
  in.clear();
  in.seekg(100);
  BOOST_CHECK(read_some(in, 10) == v.substr(100, 10));
  in.seekg(7, std::ios::cur);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), 117);
  BOOST_CHECK(read_some(in, 4) == v.substr(117, 4));
  in.seekg(-21, std::ios::cur);
  BOOST_CHECK(read_some(in, 4) == v.substr(100, 4));
  in.seekg(1800, std::ios::cur);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), 1904);
  BOOST_CHECK_EQUAL(in.get(), static_cast<unsigned char>(v[1904]));
  in.unget();
  BOOST_CHECK_EQUAL(in.get(), static_cast<unsigned char>(v[1904]));
}

BOOST_AUTO_TEST_CASE(reading_on_takes_one_seek) {
  const std::string v = values(10000), b = packed(v);
  counts device;
  seekable_stream in;
  in.push(zi::seekable_decoder(camera(), 10000, 64));
  in.push(counting_source(b, device), 4096);
  in.seekg(1000);
  BOOST_CHECK(read_some(in, 15000) == v.substr(1000, 15000));
  BOOST_CHECK_LE(device.seeks, 3u);  // one to learn the size, one to the element
  BOOST_CHECK_LE(device.bytes_read, 15000 / 2 * 12 / 8 + 4096 + 64 + 2);
}

BOOST_AUTO_TEST_CASE(a_seek_outside_the_chunk_is_refused) {
  const std::string v = values(100), b = packed(v);
  io::filtering_streambuf<io::input_seekable> in;
  in.push(zi::seekable_decoder(camera(), 100));
  in.push(io::array_source(b.data(), b.size()));
  CHECK_CODEC_ERROR(in.pubseekoff(201, std::ios::beg, std::ios::in), errc::invalid_range);
  CHECK_CODEC_ERROR(in.pubseekoff(-1, std::ios::beg, std::ios::in), errc::invalid_range);
  CHECK_CODEC_ERROR(in.pubseekoff(1, std::ios::end, std::ios::in), errc::invalid_range);
  CHECK_CODEC_ERROR(in.pubseekoff(-201, std::ios::end, std::ios::in), errc::invalid_range);
  CHECK_CODEC_ERROR(in.pubseekoff(std::numeric_limits<std::streamoff>::min(), std::ios::end, std::ios::in), errc::invalid_range);
  CHECK_CODEC_ERROR(in.pubseekoff(std::numeric_limits<std::streamoff>::max(), std::ios::beg, std::ios::in), errc::invalid_range);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.pubseekoff(200, std::ios::beg, std::ios::in)), 200);
  BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.pubseekoff(0, std::ios::beg, std::ios::in)), 0);
  BOOST_CHECK_EQUAL(in.sgetc(), static_cast<unsigned char>(v[0]));

  seekable_stream stream;
  stream.push(zi::seekable_decoder(camera(), 100));
  stream.push(io::array_source(b.data(), b.size()));
  stream.seekg(201);
  BOOST_CHECK(!stream);
}

BOOST_AUTO_TEST_CASE(the_number_of_elements_follows_from_the_device) {
  for (const std::size_t n : {0u, 1u, 2u, 7u, 1001u}) {
    const std::string v = values(n), bits = packed(v);
    const std::string count(1, n % 2 ? '\4' : '\0');
    const auto check = [&](padding p, const std::string& b) {
      const zi::seekable_decoder d(camera(p));
      BOOST_CHECK(copied_in(d, b) == v);  // closes d: what was derived is forgotten
      seekable_stream in;
      in.push(d);
      in.push(io::array_source(b.data(), b.size()));
      in.seekg(0, std::ios::end);
      BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), static_cast<std::streamoff>(v.size()));
      BOOST_REQUIRE(d.elements().has_value());
      BOOST_CHECK_EQUAL(*d.elements(), n);
    };
    check(padding::none, bits);
    check(padding::first_byte, count + bits);
    check(padding::last_byte, bits + count);
  }
  // 8 bools or fewer look alike: every whole element comes, as in the decoder
  BOOST_CHECK_EQUAL(copied_in(zi::seekable_decoder(zarrbits::packbits("bool")), "\3"), std::string("\1\1\0\0\0\0\0\0", 8));
  BOOST_CHECK_EQUAL(copied_in(zi::seekable_decoder(zarrbits::packbits("bool"), 3), "\3"), std::string("\1\1\0", 3));
}

BOOST_AUTO_TEST_CASE(a_device_of_another_size_is_refused_before_anything_is_read) {
  const std::string v = values(9), b = packed(v);  // 14 bytes
  const auto first_read = [](const zi::seekable_decoder& d, const std::string& bytes) {
    counts device;
    io::filtering_streambuf<io::input_seekable> in;
    in.push(d);
    in.push(counting_source(bytes, device), 16);
    in.sgetc();
  };
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(), 10), b), errc::truncated);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(), 8), b), errc::trailing_data);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera()), b.substr(0, 13)), errc::truncated);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(zarrbits::bytes("uint32")), b), errc::truncated);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(padding::last_byte)), ""), errc::truncated);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(padding::first_byte)), ""), errc::truncated);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(padding::first_byte)), '\3' + b), errc::invalid_padding_count);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(camera(padding::last_byte)), b + '\xff'), errc::invalid_padding_count);
  CHECK_CODEC_ERROR(first_read(zi::seekable_decoder(zarrbits::packbits("bool", {.padding_encoding = padding::first_byte})), "\1"),
                    errc::invalid_padding_count);
}

BOOST_AUTO_TEST_CASE(a_wrong_element_hides_only_itself) {
  std::string b(1000, '\1');
  b[500] = '\2';
  io::filtering_streambuf<io::input_seekable> in;
  in.push(zi::seekable_decoder(zarrbits::bytes("bool"), 1000));
  in.push(io::array_source(b.data(), b.size()));
  std::string got(400, '\0');
  in.pubseekoff(100, std::ios::beg, std::ios::in);
  BOOST_CHECK_EQUAL(in.sgetn(got.data(), 400), 400);  // up to the wrong one, though the buffer reads ahead
  const auto error = thrown([&] { in.sgetc(); });
  BOOST_REQUIRE(error);
  BOOST_CHECK(error->code() == errc::invalid_bool);
  BOOST_CHECK_EQUAL(error->failure().element, 500u);
  in.pubseekoff(501, std::ios::beg, std::ios::in);
  BOOST_CHECK_EQUAL(in.sgetn(got.data(), 400), 400);
}

BOOST_AUTO_TEST_CASE(an_error_that_a_stream_hid_is_thrown_by_reset) {
  std::string b(1000, '\1');
  b[500] = '\2';
  const auto after = [&](const zi::seekable_decoder& d, auto use) {
    seekable_stream in;
    in.push(d);
    in.push(io::array_source(b.data(), b.size()));
    use(in);
    const auto error = thrown([&] { in.reset(); });
    BOOST_CHECK(!thrown([&] { in.reset(); }));
    return error ? error->code() : std::error_code();
  };
  const zi::seekable_decoder right(zarrbits::bytes("bool"), 1000);
  BOOST_CHECK(after(right, [](seekable_stream& in) { read_some(in, 600); }) == errc::invalid_bool);
  BOOST_CHECK(after(right, [](seekable_stream& in) { in.seekg(1001); }) == errc::invalid_range);
  BOOST_CHECK(after(zi::seekable_decoder(zarrbits::bytes("bool"), 999), [](seekable_stream& in) { read_some(in, 1); }) ==
              errc::trailing_data);
  BOOST_CHECK(!after(right, [](seekable_stream& in) { read_some(in, 500); }));
  // who went on after it knew of it
  BOOST_CHECK(!after(right, [](seekable_stream& in) {
    in.seekg(1001);
    in.clear();
    in.seekg(0);
    BOOST_CHECK_EQUAL(read_some(in, 500).size(), 500u);
  }));
}

BOOST_AUTO_TEST_CASE(a_chunk_inside_a_file_is_read_through_restrict) {
  const std::string v = values(5000), b = packed(v);
  const std::string name = "zarrbits_test_seekable.bits";
  std::string file = "some header " + b + " some footer";
  io::copy(io::array_source(file.data(), file.size()), io::file_sink(name, std::ios::binary));
  {
    seekable_stream in;
    in.push(zi::seekable_decoder(camera(), 5000));
    in.push(io::restrict(io::file_source(name, std::ios::binary), 12, static_cast<io::stream_offset>(b.size())));
    in.exceptions(std::ios::badbit);
    in.seekg(4321 * 2);
    BOOST_CHECK(read_some(in, 20) == v.substr(4321 * 2, 20));
    in.seekg(0, std::ios::end);
    BOOST_CHECK_EQUAL(static_cast<std::streamoff>(in.tellg()), 10000);
    in.seekg(3);
    BOOST_CHECK(read_some(in, 9997) == v.substr(3));
  }
  std::remove(name.c_str());
}

BOOST_AUTO_TEST_CASE(a_filter_is_used_again_on_another_device) {
  const std::string v = values(100), w = values(50, 12, 9), b = packed(v), c = packed(w);
  const zi::seekable_decoder d(camera());
  BOOST_CHECK(copied_in(d, b) == v);
  BOOST_CHECK(copied_in(d, c) == w);
  seekable_stream in;
  in.push(d);
  in.push(io::array_source(b.data(), b.size()));
  in.seekg(10);
  BOOST_CHECK(read_some(in, 10) == v.substr(10, 10));
  in.pop();
  in.push(io::array_source(c.data(), c.size()));
  BOOST_CHECK(read_some(in, 1000) == w);
}

BOOST_AUTO_TEST_CASE(a_device_that_gives_little_breaks_off_or_fails_for_a_moment) {
  const std::string v = values(1000), b = packed(v);
  BOOST_CHECK(copied_in(zi::seekable_decoder(camera()), b) == v);
  {
    zi::seekable_decoder d(camera());
    std::string out;
    io::copy(io::compose(d, stingy_source(b, 0, nullptr)), string_sink(out));
    BOOST_CHECK(out == v);
  }
  {
    stingy_source source(b, 300, nullptr);  // 200 elements that are not there
    zi::seekable_decoder d(camera(), 1200);
    std::string got(2400, '\0');
    const auto error = thrown([&] {
      for (std::streamsize n = 0; n >= 0;) n = d.read(source, got.data(), 100);
    });
    BOOST_REQUIRE(error);
    BOOST_CHECK(error->code() == errc::truncated);
    BOOST_CHECK_EQUAL(d.seek(source, 10, std::ios::beg), 10);  // what is there can still be read
    BOOST_CHECK_EQUAL(d.read(source, got.data(), 100), 100);
    BOOST_CHECK(got.substr(0, 100) == v.substr(10, 100));
  }
  for (int at = 1; at < 40; ++at) {
    int countdown = at;
    stingy_source source(b, 0, &countdown);
    zi::seekable_decoder d(camera(), 1000, 16);
    std::string all, got(50, '\0');
    bool failed = false;
    while (all.size() < v.size()) {
      try {
        const std::streamsize n = d.read(source, got.data(), 50);
        BOOST_REQUIRE_GT(n, 0);
        all.append(got.data(), static_cast<std::size_t>(n));
      } catch (const std::ios_base::failure& e) {
        BOOST_CHECK(dynamic_cast<const zi::codec_error*>(&e) == nullptr);  // the device's own error, unchanged
        failed = true;
        BOOST_REQUIRE_EQUAL(d.seek(source, static_cast<io::stream_offset>(all.size()), std::ios::beg),
                            static_cast<std::streamoff>(all.size()));
      }
    }
    BOOST_CHECK(failed);
    BOOST_CHECK(all == v);
  }
}

BOOST_AUTO_TEST_CASE(numcodecs_chunks_tell_their_number_of_elements) {
  // 10 bools, most significant bit first: 0b10110000'01000000, 6 bits of padding
  const std::string b("\6\xb0\x40", 3), v("\1\0\1\1\0\0\0\0\0\1", 10);
  zi::seekable_decoder d(zarrbits::numcodecs_packbits());
  counts device;
  counting_source source(b, device);
  BOOST_CHECK_EQUAL(d.seek(source, -1, std::ios::end), 9);
  std::string got(1, '\0');
  BOOST_CHECK_EQUAL(d.read(source, got.data(), 1), 1);
  BOOST_CHECK_EQUAL(got[0], 1);
  BOOST_CHECK_EQUAL(d.read(source, got.data(), 1), -1);
  BOOST_CHECK_EQUAL(device.bytes_read, 2u);  // the count byte and the last one
  d.close(source);
  BOOST_CHECK(copied_in(d, b) == v);
}
