// SPDX-License-Identifier: BSL-1.0
//
// Devices that lie about what they took or gave, take nothing, or throw once: each is an error in the end, and none is believed.
//
#include "tests/streams/support.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <sstream>

using namespace test;

namespace {

// Its write() answers what a function says.
class answering_sink : public io::sink {
 public:
  using answer = std::function<std::streamsize(const char*, std::streamsize)>;
  answering_sink(const answer& a, int& calls) : answer_(a), calls_(&calls) {}
  std::streamsize write(const char* s, std::streamsize n) {
    ++*calls_;
    return answer_(s, n);
  }

 private:
  answer answer_;
  int* calls_;
};

class answering_source : public io::source {
 public:
  explicit answering_source(std::streamsize answer) : answer_(answer) {}
  std::streamsize read(char* s, std::streamsize n) {
    std::memset(s, 0, static_cast<std::size_t>(n));
    return answer_ == 0 ? n + 1 : answer_;
  }
  std::streampos seek(io::stream_offset to, std::ios_base::seekdir way) { return way == std::ios_base::end ? 3 * 1024 : to; }

 private:
  std::streamsize answer_;
};

// As answering_source, for a decoder that seeks.
class seeking_source : public answering_source {
 public:
  struct category : io::input_seekable, io::device_tag {};
  using answering_source::answering_source;
};

void copy_to(const answering_sink& sink, const std::string& v, std::streamsize buffer = 64) {
  io::copy(io::array_source(v.data(), v.size()), io::compose(zi::encoder(camera(), {}, buffer), sink));
}

std::string sentence(const std::function<void()>& f) {
  try {
    f();
  } catch (const zi::codec_error& e) {
    BOOST_CHECK(e.code() == std::errc::io_error);
    return e.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_count_that_cannot_be_moves_no_pointer) {
  const std::string v = values(10000);
  for (const std::streamsize answer : {-1, -100, 1 << 20}) {
    int calls = 0;
    const answering_sink sink([&](const char*, std::streamsize) { return answer; }, calls);
    const std::string said = sentence([&] { copy_to(sink, v); });
    BOOST_CHECK_MESSAGE(has(said, "write() of the device below the filter returned " + std::to_string(answer)), said);
    BOOST_CHECK_EQUAL(calls, 1);

    calls = 0;
    const std::string kept = sentence([&] {
      io::filtering_ostream out;
      out.push(zi::encoder(camera()));
      out.push(zi::checked(sink));
      out << v;
      out.reset();
    });
    BOOST_CHECK_MESSAGE(has(kept, "returned " + std::to_string(answer)), kept);
    BOOST_CHECK_EQUAL(calls, 1);
  }
  for (const std::streamsize answer : {std::streamsize{-2}, std::streamsize{0}}) {  // 0: a byte more than there is room for
    const std::string said = sentence([&] {
      std::string out;
      io::copy(io::compose(zi::decoder(camera()), answering_source(answer)), string_sink(out));
    });
    BOOST_CHECK_MESSAGE(has(said, "read() of the device below the filter returned"), said);
    const std::string sought = sentence([&] {
      std::string out;
      io::copy(io::compose(zi::seekable_decoder(camera()), seeking_source(answer)), string_sink(out));
    });
    BOOST_CHECK_MESSAGE(has(sought, "read() of the device below the filter returned"), sought);
  }
}

BOOST_AUTO_TEST_CASE(a_sink_that_takes_nothing_is_an_error, *boost::unit_test::timeout(60)) {
  for (const std::size_t n : {1u, 100u, 10000u}) {
    int calls = 0;
    const answering_sink full([](const char*, std::streamsize) { return std::streamsize{0}; }, calls);
    const std::string said = sentence([&] { copy_to(full, values(n)); });
    BOOST_CHECK_MESSAGE(has(said, "does not accept the next"), said);
  }
}

BOOST_AUTO_TEST_CASE(a_sink_that_takes_little_and_sometimes_nothing_gets_every_byte) {
  const std::string v = values(10000), b = packed(v);
  std::mt19937 random(1);
  std::string out;
  int calls = 0;
  const answering_sink slow(
      [&](const char* s, std::streamsize n) {
    const auto took = std::min(n, static_cast<std::streamsize>(random() % 3));
    out.append(s, static_cast<std::size_t>(took));
    return took;
      },
      calls);
  copy_to(slow, v);
  BOOST_CHECK(out == b);
  out.clear();
  io::filtering_ostream stream;
  stream.push(zi::encoder(camera()));
  stream.push(zi::checked(slow));  // Boost's own buffer would send some bytes twice
  stream << v;
  stream.reset();
  BOOST_CHECK(out == b);
}

// A disk that has room again when the stream is closed: what was lost in between is lost.
BOOST_AUTO_TEST_CASE(what_a_sink_threw_once_is_thrown_by_reset) {
  for (const bool checked : {false, true})
    for (const std::size_t n : {10u, 100000u}) {
      std::string out;
      int calls = 0;
      const answering_sink once(
          [&](const char* s, std::streamsize size) {
        if (calls == 1) throw std::ios_base::failure("no room today");
        out.append(s, static_cast<std::size_t>(size));
        return size;
          },
          calls);
      io::filtering_ostream stream;
      stream.push(zi::encoder(camera()));
      if (checked) stream.push(zi::checked(once));
      else stream.push(once);
      stream << values(n);
      BOOST_CHECK_THROW(stream.reset(), std::ios_base::failure);
      stream.reset();
      if (!checked) continue;
      calls = 0;
      io::filtering_ostream alone;  // without a filter of ours
      alone.push(zi::checked(once));
      alone << values(n);
      BOOST_CHECK_EXCEPTION(alone.reset(), std::ios_base::failure, [](const auto& e) { return has(e.what(), "no room today"); });
    }
}

BOOST_AUTO_TEST_CASE(filters_that_have_no_flush_below_lose_nothing) {
  const std::string v = values(5000), b = packed(v);
  const auto big = zarrbits::bytes("uint8");
  std::string out;
  io::filtering_ostream stream;
  stream.push(zi::encoder(camera()));
  stream.push(zi::encoder(big));
  stream.push(string_sink(out));
  stream << v;
  stream.reset();
  BOOST_CHECK(out == b);
  out.clear();
  io::copy(io::array_source(v.data(), v.size()),
           io::compose(zi::encoder(camera()), io::compose(zi::encoder(big), string_sink(out))));
  BOOST_CHECK(out == b);
  std::ostringstream text;
  io::copy(io::array_source(v.data(), v.size()), io::compose(zi::encoder(camera()), text));
  BOOST_CHECK(text.str() == b);
  io::filtering_ostream below;
  std::string deep;
  below.push(zi::encoder(big));
  below.push(string_sink(deep));
  io::filtering_ostream above;
  above.push(zi::encoder(camera()));
  above.push(below);
  above << v;
  above.reset();
  below.reset();
  BOOST_CHECK(deep == b);
}
