// SPDX-License-Identifier: BSL-1.0
//
// What the tests of the streams share: slow reference bytes, shorthand for whole streams, devices that count.
//
#ifndef ZARRBITS_TESTS_STREAMS_SUPPORT_HPP
#define ZARRBITS_TESTS_STREAMS_SUPPORT_HPP

#include <zarrbits/iostreams.hpp>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/compose.hpp>
#include <boost/iostreams/concepts.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace test {

namespace io = boost::iostreams;
namespace zi = zarrbits::iostreams;

// uint16 values of `bits` bits, and the packbits bytes of them, bit by bit as the text of the codec says: none of the library's
// code.
inline std::string values(std::size_t n, unsigned bits = 12, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    const auto v = static_cast<std::uint16_t>(random() & ((1u << bits) - 1));
    out += static_cast<char>(v & 0xFF);
    out += static_cast<char>(v >> 8);
  }
  return out;
}

inline std::string packed(const std::string& values, unsigned bits = 12) {
  const std::size_t n = values.size() / 2;
  std::string out((n * bits + 7) / 8, '\0');
  for (std::size_t i = 0; i < n; ++i)
    for (unsigned b = 0; b < bits; ++b) {
      const unsigned byte = static_cast<unsigned char>(values[2 * i + b / 8]);
      const std::size_t at = i * bits + b;
      if (byte >> (b % 8) & 1) out[at / 8] = static_cast<char>(static_cast<unsigned char>(out[at / 8]) | 1u << (at % 8));
    }
  return out;
}

inline zarrbits::codec camera(zarrbits::padding p = zarrbits::padding::none) {
  return zarrbits::packbits("uint16", {.padding_encoding = p, .last_bit = 11});
}

// boost::iostreams::back_inserter, but with append(): gcc 12 warns of the insert() in Boost's.
class string_sink : public io::sink {
 public:
  explicit string_sink(std::string& out) : out_(&out) {}
  std::streamsize write(const char* s, std::streamsize n) {
    out_->append(s, static_cast<std::size_t>(n));
    return n;
  }

 private:
  std::string* out_;
};

// All of `in` written through `filter` with writes of 1 to `most` bytes.
template <class Filter>
std::string written(const Filter& filter, const std::string& in, std::mt19937& random, std::size_t most = 100) {
  std::string out;
  io::filtering_ostream stream;
  stream.push(filter);
  stream.push(string_sink(out));
  stream.exceptions(std::ios::badbit);  // a stream without a device is bad, so not before
  for (std::size_t at = 0; at < in.size();) {
    const std::size_t n = std::min(in.size() - at, 1 + random() % most);
    stream.write(in.data() + at, static_cast<std::streamsize>(n));
    at += n;
  }
  stream.reset();
  return out;
}

// All of `in` read through `filter` with reads of 1 to `most` bytes, up to the end.
template <class Filter>
std::string read(const Filter& filter, const std::string& in, std::mt19937& random, std::size_t most = 100) {
  std::string out;
  io::filtering_istream stream;
  stream.push(filter);
  stream.push(io::array_source(in.data(), in.size()));
  stream.exceptions(std::ios::badbit);
  std::vector<char> piece(most);
  do {
    stream.read(piece.data(), static_cast<std::streamsize>(1 + random() % most));
    out.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  } while (stream);
  stream.reset();
  return out;
}

template <class Filter>
std::string copied_out(const Filter& filter, const std::string& in) {
  std::string out;
  io::copy(io::array_source(in.data(), in.size()), io::compose(filter, string_sink(out)));
  return out;
}

// Into memory of this size, through Boost's wrapper of a device that is memory.
template <class Filter>
std::string copied_into_memory(const Filter& filter, const std::string& in, std::size_t size) {
  std::string out(size, '?');
  io::copy(io::array_source(in.data(), in.size()), io::compose(filter, io::array_sink(out.data(), out.size())));
  return out;
}

template <class Filter>
std::string copied_in(const Filter& filter, const std::string& in) {
  std::string out;
  io::copy(io::compose(filter, io::array_source(in.data(), in.size())), string_sink(out));
  return out;
}

// A device over a string that counts its calls. Copies share the counts.
struct counts {
  std::size_t reads = 0, bytes_read = 0, writes = 0, bytes_written = 0, seeks = 0, closes = 0;
  std::size_t largest_read = 0, largest_write = 0;
};

class counting_sink {
 public:
  using char_type = char;
  struct category : io::sink_tag, io::closable_tag {};

  explicit counting_sink(std::string& out, counts& c) : out_(&out), counts_(&c) {}
  std::streamsize write(const char* s, std::streamsize n) {
    ++counts_->writes;
    counts_->bytes_written += static_cast<std::size_t>(n);
    counts_->largest_write = std::max(counts_->largest_write, static_cast<std::size_t>(n));
    out_->append(s, static_cast<std::size_t>(n));
    return n;
  }
  void close() { ++counts_->closes; }

 private:
  std::string* out_;
  counts* counts_;
};

class counting_source {
 public:
  using char_type = char;
  struct category : io::input_seekable, io::device_tag, io::closable_tag {};

  counting_source(const std::string& in, counts& c) : in_(&in), counts_(&c) {}
  std::streamsize read(char* s, std::streamsize n) {
    ++counts_->reads;
    counts_->largest_read = std::max(counts_->largest_read, static_cast<std::size_t>(n));
    const std::size_t got = std::min(static_cast<std::size_t>(n), in_->size() - position_);
    if (got == 0) return -1;
    std::memcpy(s, in_->data() + position_, got);
    position_ += got;
    counts_->bytes_read += got;
    return static_cast<std::streamsize>(got);
  }
  std::streampos seek(io::stream_offset off, std::ios_base::seekdir way) {
    ++counts_->seeks;
    const auto size = static_cast<io::stream_offset>(in_->size());
    const io::stream_offset base = way == std::ios_base::beg   ? 0
                                   : way == std::ios_base::cur ? static_cast<io::stream_offset>(position_)
                                                               : size;
    if (base + off < 0 || base + off > size) throw std::ios_base::failure("bad seek in the device");
    position_ = static_cast<std::size_t>(base + off);
    return base + off;
  }
  void close() { ++counts_->closes; }

 private:
  const std::string* in_;
  counts* counts_;
  std::size_t position_ = 0;
};

// Runs f, which must throw our codec_error; returns it for a closer look. Any other exception passes through and fails the test.
template <class F>
std::optional<zi::codec_error> thrown(F f) {
  try {
    f();
  } catch (const zi::codec_error& e) {
    return e;
  }
  return {};
}

}  // namespace test

// The error that `expression` throws has this code, is of our type, and says something.
#define CHECK_CODEC_ERROR(expression, errc_)                                                                                  \
  do {                                                                                                                        \
    const auto error_ = test::thrown([&] { expression; });                                                                    \
    BOOST_CHECK_MESSAGE(error_.has_value(), #expression " throws a codec_error");                                             \
    if (error_) {                                                                                                             \
      BOOST_CHECK_MESSAGE(error_->code() == (errc_), #expression " throws " #errc_ ", not: " << error_->what());              \
      BOOST_CHECK_MESSAGE(std::strlen(error_->what()) > 20, #expression " says what is wrong, not only: " << error_->what()); \
      BOOST_CHECK(error_->failure().code == error_->code());                                                                  \
    }                                                                                                                         \
  } while (false)

#endif
