// SPDX-License-Identifier: BSL-1.0
//
// Codecs by themselves, beside other implementations and beside loops that are too simple to be wrong.
//
#include "tests/convert/support.hpp"

#include "compressors/bitshuffle.hpp"
#include "compressors/deflate.hpp"
#include "compressors/shuffle.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>

using namespace support;
using namespace zarrbits::compressors;

namespace {

buffer noise(std::size_t size, unsigned kinds = 256) {
  static std::mt19937 random(1);
  buffer b(size);
  for (std::byte& x : b) x = static_cast<std::byte>(random() % kinds);
  return b;
}

// zlib's own streams.
buffer zlib_of(const buffer& plain, int level) {
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  buffer out(size);
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
                static_cast<uLong>(plain.size()), level) != Z_OK)
    throw std::runtime_error("zlib");
  out.resize(size);
  return out;
}

std::string text(const buffer& b) { return std::string(reinterpret_cast<const char*>(b.data()), b.size()); }

}  // namespace

BOOST_AUTO_TEST_CASE(streams_of_zlib_are_inflated_and_rewrapped) {
  for (const std::size_t size : {0U, 1U, 100U, 40000U, 1000000U}) {
    for (const int level : {0, 1, 6, 9}) {
      const buffer plain = noise(size, 5);
      buffer stream = zlib_of(plain, level);
      BOOST_TEST((decompress_zlib(stream, size) == plain));
      BOOST_TEST((decompress_zlib_up_to(stream, size + 77) == plain));
      buffer seen;
      BOOST_TEST((gunzip(text(zlib_to_gzip(stream, size, seen)), size) == text(plain)));
      BOOST_TEST((seen == plain));
      const buffer gzip = zlib_to_gzip(stream, size, seen);
      stream.resize(stream.size() + 9, std::byte{1});  // what follows the stream is not its
      BOOST_TEST((decompress_zlib(stream, size) == plain));
      BOOST_TEST((zlib_to_gzip(stream, size, seen) == gzip));
    }
  }
}

BOOST_AUTO_TEST_CASE(zlib_reads_what_is_deflated) {
  for (const std::size_t size : {0U, 1U, 100U, 40000U, 1000000U}) {
    const buffer plain = noise(size, 5);
    for (const int level : {9, 0, 4, 6, 1, 1}) {
      if (level > 0) BOOST_TEST((gunzip(text(gzip_member(plain, level)), size) == text(plain)));
      const buffer stream = zlib_stream(plain, level);
      uLongf made = static_cast<uLong>(size) + 1;
      buffer out(made);
      BOOST_TEST(uncompress(reinterpret_cast<Bytef*>(out.data()), &made, reinterpret_cast<const Bytef*>(stream.data()),
                            static_cast<uLong>(stream.size())) == Z_OK);
      out.resize(made);
      BOOST_TEST((out == plain));
    }
  }
}

BOOST_AUTO_TEST_CASE(deflate_streams_that_are_not_the_chunk_are_refused) {
  const buffer plain = noise(3000, 5), stream = zlib_of(plain, 6);
  buffer seen;
  const auto refuse = [&](const buffer& in, std::size_t size) {
    BOOST_CHECK_THROW(decompress_zlib(in, size), corrupt_chunk);
    BOOST_CHECK_THROW(zlib_to_gzip(in, size, seen), corrupt_chunk);
  };
  for (const std::size_t size : {std::size_t{0}, plain.size() - 1, plain.size() + 1, std::size_t{1} << 20}) refuse(stream, size);
  BOOST_CHECK_THROW(decompress_zlib_up_to(stream, plain.size() - 1), corrupt_chunk);
  BOOST_CHECK_THROW(decompress_zlib_up_to(stream, 0), corrupt_chunk);
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    const buffer part(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(cut));
    refuse(part, plain.size());
    BOOST_CHECK_THROW(decompress_zlib_up_to(part, plain.size() + 1), corrupt_chunk);
  }
  for (std::size_t i = 0; i < stream.size(); ++i) {
    buffer damaged = stream;
    damaged[i] ^= std::byte{0x40};
    uLongf made = static_cast<uLong>(plain.size()) + 1;
    buffer by_zlib(made);
    const bool passes = uncompress(reinterpret_cast<Bytef*>(by_zlib.data()), &made,
                                   reinterpret_cast<const Bytef*>(damaged.data()), static_cast<uLong>(damaged.size())) == Z_OK;
    by_zlib.resize(made);
    if (passes && made == plain.size()) BOOST_TEST((decompress_zlib(damaged, made) == by_zlib));  // what Adler-32 does not see
    else refuse(damaged, plain.size());
  }
  // a stream with a dictionary, which a chunk does not have
  z_stream z{};
  BOOST_TEST_REQUIRE(deflateInit(&z, 6) == Z_OK);
  deflateSetDictionary(&z, reinterpret_cast<const Bytef*>(plain.data()), 1000);
  buffer with_dictionary(10000);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(with_dictionary.data());
  z.avail_out = static_cast<uInt>(with_dictionary.size());
  BOOST_TEST(deflate(&z, Z_FINISH) == Z_STREAM_END);
  with_dictionary.resize(z.total_out);
  deflateEnd(&z);
  refuse(with_dictionary, plain.size());
}

BOOST_AUTO_TEST_CASE(shuffle_turns_elements_of_any_size_as_a_simple_loop_does) {
  const auto agree = [](std::size_t element, std::size_t size) {
    const buffer plain = noise(size);
    buffer planes = plain;
    const std::size_t n = size / element;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < element; ++k) planes[k * n + i] = plain[i * element + k];
    }
    BOOST_TEST((shuffled(plain, element) == planes), element << " bytes, shuffled, in " << size);
    BOOST_TEST((unshuffle(planes, element) == plain), element << " bytes, in " << size);
  };
  for (std::size_t element = 1; element <= 40; ++element) {
    for (std::size_t n = 0; n < 70; ++n) agree(element, n * element + (n * 7 + element) % element);
    for (const std::size_t n : {127U, 1000U, 4096U}) agree(element, n * element + element / 2);
  }
  for (const std::size_t element : {255U, 256U, 1000U}) agree(element, 33 * element + 5);
}

BOOST_AUTO_TEST_CASE(bitshuffle_is_undone_for_elements_of_any_size_as_a_simple_loop_does) {
  for (unsigned element = 1; element <= 24; ++element) {
    for (const std::size_t n : {1U, 7U, 8U, 9U, 63U, 64U, 120U, 128U, 129U, 136U, 1000U, 1031U}) {
      const buffer plain = noise(n * element);
      for (const std::size_t per_block : {std::size_t{8}, std::size_t{136}, std::size_t{4096}}) {
        buffer stored;
        std::size_t first = 0;
        while (n - first >= 8) {
          const std::size_t here = std::min(per_block, (n - first) / 8 * 8);
          buffer bits(here * element, std::byte{0});
          for (std::size_t i = 0; i < here; ++i) {
            for (unsigned bit = 0; bit < 8 * element; ++bit) {
              const unsigned set = std::to_integer<unsigned>(plain[(first + i) * element + bit / 8]) >> (bit % 8) & 1;
              bits[(bit * here + i) / 8] |= static_cast<std::byte>(set << (i % 8));
            }
          }
          stored.insert(stored.end(), bits.begin(), bits.end());
          first += here;
        }
        stored.insert(stored.end(), plain.begin() + static_cast<std::ptrdiff_t>(first * element), plain.end());
        const std::vector<unsigned> values = {0, 3, element, static_cast<unsigned>(per_block), 0};
        BOOST_TEST((decode_bitshuffle(values, stored, plain.size()) == plain), element << " bytes, " << n << " elements");
      }
    }
  }
}
