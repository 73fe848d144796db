// SPDX-License-Identifier: BSL-1.0
//
// The filters in chains, compose() and copy(): how they are called there, and that every byte arrives.
//
#include "tests/streams/support.hpp"

#include <boost/ref.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <sstream>

using namespace test;
using zarrbits::errc;
using zarrbits::padding;

namespace {

// Counts how often, and with how many bytes, a chain calls a filter.
template <class Filter>
class called : public Filter {
 public:
  called(const Filter& f, counts& c) : Filter(f), counts_(&c) {}
  template <class Source>
  std::streamsize read(Source& source, char* s, std::streamsize n) {
    ++counts_->reads;
    counts_->largest_read = std::max(counts_->largest_read, static_cast<std::size_t>(n));
    return Filter::read(source, s, n);
  }
  template <class Sink>
  std::streamsize write(Sink& sink, const char* s, std::streamsize n) {
    ++counts_->writes;
    counts_->largest_write = std::max(counts_->largest_write, static_cast<std::size_t>(n));
    return Filter::write(sink, s, n);
  }

 private:
  counts* counts_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(point_12_a_plain_push_is_fast_because_the_buffer_in_front_is_not_128_bytes) {
  constexpr std::size_t n = 1 << 19;
  const std::string v = values(n), b = packed(v);
  BOOST_CHECK_EQUAL(io::optimal_buffer_size(zi::encoder(camera())), 8192);
  BOOST_CHECK_EQUAL(io::optimal_buffer_size(zi::decoder(camera(), n, 4096)), 4096);
  {
    counts filter, device;
    std::string bytes;
    io::filtering_ostream out;
    out.push(called<zi::encoder>(zi::encoder(camera()), filter));
    out.push(counting_sink(bytes, device));
    for (std::size_t at = 0; at < v.size(); at += 64) out.write(v.data() + at, 64);
    out.reset();
    BOOST_CHECK(bytes == b);
    BOOST_CHECK_EQUAL(filter.writes, v.size() / 8192);  // not v.size() / 128
    BOOST_CHECK_EQUAL(filter.largest_write, 8192u);
    BOOST_CHECK_LE(device.writes, b.size() / 4096 + 2);  // Boost's buffer in front of a device is 4096 bytes
  }
  {
    counts filter, device;
    io::filtering_istream in;
    in.push(called<zi::decoder>(zi::decoder(camera(), n), filter));
    in.push(counting_source(b, device));
    std::string back;
    std::array<char, 64> piece;
    while (in.read(piece.data(), piece.size()) || in.gcount()) back.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    BOOST_CHECK(back == v);
    // the putback area counts for the buffer: 8192 + 4 - 4 bytes a call; one more call finds the end
    BOOST_CHECK_LE(filter.reads, v.size() / 8192 + 2);
    BOOST_CHECK_EQUAL(filter.largest_read, 8192u);
    BOOST_CHECK_LE(device.reads, b.size() / 4096 + 2);
  }
}

BOOST_AUTO_TEST_CASE(point_13_works_in_compose_pipelines_streambufs_and_by_reference) {
  const std::string v = values(5000), b = packed(v), back_to_back = [&] {
    std::string swapped = b;
    for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
    return swapped;
  }();
  const auto big = zarrbits::bytes("uint16", {.endian = zarrbits::endian::big});

  BOOST_CHECK(copied_out(zi::encoder(camera()), v) == b);
  BOOST_CHECK(copied_in(zi::encoder(camera()), v) == b);
  BOOST_CHECK(copied_out(zi::decoder(camera(), 5000), b) == v);
  BOOST_CHECK(copied_in(zi::decoder(camera(), 5000), b) == v);
  BOOST_CHECK(copied_out(io::compose(zi::encoder(camera()), zi::encoder(big)), v) == back_to_back);
  BOOST_CHECK(copied_in(io::compose(zi::decoder(camera()), zi::decoder(big)), back_to_back) == v);

  std::string out;
  {
    io::filtering_ostream stream(zi::encoder(camera()) | zi::encoder(big) | string_sink(out));
    stream << v;
    stream.reset();
  }
  BOOST_CHECK(out == back_to_back);
  io::filtering_istream in(zi::decoder(camera()) | zi::decoder(big) | io::array_source(out.data(), out.size()));
  BOOST_CHECK((std::string(std::istreambuf_iterator<char>(in), {}) == v));

  out.clear();
  io::filtering_streambuf<io::output> buffer;
  buffer.push(zi::encoder(camera()));
  buffer.push(string_sink(out));
  BOOST_CHECK_EQUAL(io::write(buffer, v.data(), static_cast<std::streamsize>(v.size())), static_cast<std::streamsize>(v.size()));
  buffer.reset();
  BOOST_CHECK(out == b);
  io::filtering_streambuf<io::input> source;
  source.push(zi::decoder(camera(), 5000));
  source.push(io::array_source(b.data(), b.size() - 1));
  std::string back(v.size(), '\0');
  CHECK_CODEC_ERROR(source.sgetn(back.data(), static_cast<std::streamsize>(back.size())),
                    errc::truncated);  // a streambuf lets it pass
  CHECK_CODEC_ERROR(source.reset(), errc::truncated);

  out.clear();
  zi::encoder e(camera());
  zi::decoder d(camera());
  io::filtering_ostream by_reference;
  by_reference.push(boost::ref(e));
  by_reference.push(string_sink(out));
  by_reference << v;
  by_reference.reset();
  BOOST_CHECK(out == b);
  BOOST_CHECK_EQUAL(e.total_in(), v.size());
  BOOST_CHECK(copied_in(boost::ref(d), b) == v);
  BOOST_CHECK_EQUAL(d.total_out(), v.size());
}

BOOST_AUTO_TEST_CASE(compose_makes_bytes_in_the_devices_own_memory) {
  const std::string v = values(5001), b = packed(v);
  std::mt19937 random(4);
  // in pieces of any size; the last byte comes with the end, where the device is closed
  for (const std::streamsize buffer : {1, 7, 8192}) {
    std::string out(b.size() + 3, '?');
    auto device = io::compose(zi::encoder(camera(), {}, buffer), io::array_sink(out.data(), out.size()));
    for (std::size_t at = 0; at < v.size();) {
      const std::size_t n = std::min<std::size_t>(v.size() - at, random() % 50);
      BOOST_REQUIRE_EQUAL(io::write(device, v.data() + at, static_cast<std::streamsize>(n)), static_cast<std::streamsize>(n));
      at += n;
    }
    BOOST_CHECK(out.compare(0, b.size() - 1, b, 0, b.size() - 1) == 0);  // no buffer holds it back
    io::close(device, std::ios::in);
    io::close(device, std::ios::out);
    BOOST_CHECK(out == b + "???");

    auto source = io::compose(zi::decoder(camera(), 5001, buffer), io::array_source(b.data(), b.size()));
    std::string back;
    std::array<char, 50> piece;
    for (std::streamsize n = 0; n >= 0;
         n = io::read(source, piece.data(), static_cast<std::streamsize>(1 + random() % piece.size()))) {
      back.append(piece.data(), static_cast<std::size_t>(n));
    }
    BOOST_CHECK(back == v);
    BOOST_CHECK_EQUAL(io::read(source, piece.data(), 1), -1);
    io::close(source);
  }
  // too small, by a byte or by all: Boost says so, and what fitted is there
  for (const std::size_t room : {b.size() - 1, b.size() / 2, std::size_t{0}}) {
    std::string out(room + 8, '?');
    BOOST_CHECK_THROW(
        io::copy(io::array_source(v.data(), v.size()), io::compose(zi::encoder(camera()), io::array_sink(out.data(), room))),
        std::ios::failure);
    BOOST_CHECK(out.compare(0, room, b, 0, room) == 0);
    BOOST_CHECK(out.compare(room, 8, "????????") == 0);
  }
  std::string bad = v;
  bad[5001] = '\x7f';
  std::string out(b.size(), '?');
  CHECK_CODEC_ERROR(io::copy(io::array_source(bad.data(), bad.size()),
                             io::compose(zi::encoder(camera()), io::array_sink(out.data(), out.size()))),
                    errc::value_does_not_fit);
  CHECK_CODEC_ERROR(copied_in(zi::decoder(camera(), 5001), b.substr(1)), errc::truncated);
  CHECK_CODEC_ERROR(copied_in(zi::decoder(camera(), 5001), b + "?"), errc::trailing_data);
}

// io::copy() into memory reads as much as there is room for until it is told the end: 0 bytes, for ever, once the memory is full.
BOOST_AUTO_TEST_CASE(pushed_above_memory_nothing_is_lost) {
  const std::string v = values(5001), b = packed(v);
  const auto push = [&](auto&& filter, const std::string& in, std::string& out) {
    io::filtering_ostream stream;
    stream.push(filter);
    stream.push(io::array_sink(out.data(), out.size()));
    stream.write(in.data(), static_cast<std::streamsize>(in.size()));
    stream.reset();
  };
  std::string out(b.size(), '?'), back(v.size(), '?'), room(b.size() + 8, '?');
  push(zi::encoder(camera()), v, out);
  BOOST_CHECK(out == b);
  push(zi::encoder(camera()), v, room);
  BOOST_CHECK(room == b + "????????");
  push(zi::decoder(camera(), 5001), b, back);
  BOOST_CHECK(back == v);
}

BOOST_AUTO_TEST_CASE(copies_into_memory_of_the_exact_size_end, *boost::unit_test::timeout(60)) {
  for (const std::size_t n : {0u, 1u, 2u, 4097u, 20001u}) {
    const std::string v = values(n), b = packed(v);
    const auto into = [](const auto& source, std::size_t room, std::streamsize buffer) {
      std::string out(room, '?');
      const std::streamsize copied = io::copy(source, io::array_sink(out.data(), out.size()), buffer);
      BOOST_CHECK_EQUAL(copied, static_cast<std::streamsize>(room));
      return out;
    };
    for (const std::streamsize buffer : {1, 3, 4096, 1 << 20}) {
      if (buffer == 1 && n > 5000) continue;
      for (const std::streamsize filter_buffer : {1, 4096}) {
        const zi::decoder d(camera(), n, filter_buffer);
        const zi::encoder e(camera(), {}, filter_buffer);
        BOOST_CHECK(into(io::compose(d, io::array_source(b.data(), b.size())), v.size(), buffer) == v);
        BOOST_CHECK(into(io::compose(e, io::array_source(v.data(), v.size())), b.size(), buffer) == b);
        std::istringstream packed_stream(b), plain_stream(v);
        BOOST_CHECK(into(io::compose(d, packed_stream), v.size(), buffer) == v);  // no memory below: the filter's own buffer
        BOOST_CHECK(into(io::compose(e, plain_stream), b.size(), buffer) == b);
        BOOST_CHECK(into(io::compose(zi::seekable_decoder(camera(), n, filter_buffer), io::array_source(b.data(), b.size())),
                         v.size(), buffer) == v);
        if (n == 0) continue;
        CHECK_CODEC_ERROR(into(io::compose(d, io::array_source(b.data(), b.size())), v.size() - 1, buffer),
                          errc::buffer_too_small);
        CHECK_CODEC_ERROR(into(io::compose(e, io::array_source(v.data(), v.size())), b.size() - 1, buffer),
                          errc::buffer_too_small);
        CHECK_CODEC_ERROR(
            into(io::compose(zi::seekable_decoder(camera(), n, filter_buffer), io::array_source(b.data(), b.size())),
                 v.size() - 1, buffer),
            errc::buffer_too_small);
        const std::string longer = b + "?";  // what follows the last element is looked at, too
        CHECK_CODEC_ERROR(into(io::compose(d, io::array_source(longer.data(), longer.size())), v.size(), buffer),
                          errc::trailing_data);
      }
    }
  }
}

// Boost copies a device that is memory for each call, where two filters are composed first.
BOOST_AUTO_TEST_CASE(filters_composed_with_each_other_go_on_where_they_were) {
  const auto big = zarrbits::bytes("uint16", {.endian = zarrbits::endian::big});
  for (const std::size_t n : {5001u, 50001u}) {
    const std::string v = values(n), b = packed(v);
    std::string swapped = v;
    for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
    BOOST_CHECK(copied_into_memory(io::compose(zi::decoder(big), zi::encoder(camera())), swapped, b.size()) == b);
    BOOST_CHECK(copied_in(io::compose(zi::encoder(big), zi::decoder(camera(), n)), b) == swapped);
  }
}
