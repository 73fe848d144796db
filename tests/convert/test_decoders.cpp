// SPDX-License-Identifier: BSL-1.0
//
// The decoders alone: hand-made streams, and streams that lie.
//
#include "tests/convert/support.hpp"

#include "compressors/bitshuffle.hpp"
#include "compressors/blosc.hpp"
#include "compressors/deflate.hpp"
#include "compressors/lz4.hpp"
#include "compressors/lzf.hpp"
#include "compressors/zstd.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <map>
#include <random>

using namespace support;

BOOST_AUTO_TEST_CASE(lz4_and_lzf_give_what_was_compressed_by_hand) {
  using namespace zarrbits::compressors;
  const std::string plain = "abcabcabcabcabcabc!!!!!";
  const auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); };
  const auto text = [](const buffer& b) { return std::string(reinterpret_cast<const char*>(b.data()), b.size()); };
  // total, block size, then one block: 3 literals and a copy of 15 from 3 back, 5 literals
  const std::string block(
      "\x3B"
      "abc\3\0\x50!!!!!",
      12);
  const std::string lz4 = std::string("\0\0\0\0\0\0\0\x17\0\0\0\x17\0\0\0\x0C", 16) + block;
  BOOST_TEST(text(decompress_lz4(bytes(lz4), plain.size())) == plain);
  const std::string stored = std::string("\0\0\0\0\0\0\0\x17\0\0\0\x17\0\0\0\x17", 16) + plain;
  BOOST_TEST(text(decompress_lz4(bytes(stored), plain.size())) == plain);
  // 3 literals; a copy of 7 + 6 + 2 from 3 back; 5 literals
  const std::string lzf("\2abc\xE0\6\2\4!!!!!", 13);
  BOOST_TEST(text(decompress_lzf(bytes(lzf), plain.size())) == plain);
}

BOOST_AUTO_TEST_CASE(a_blosc_buffer_gives_what_went_in) {
  using namespace zarrbits::compressors;
  buffer plain(10000);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i * i >> 4);
  const buffer stored = blosc_stored(plain, 4);
  check_blosc(stored, plain.size());
  BOOST_TEST((decompress_blosc(stored, plain.size()) == plain));
  BOOST_CHECK_THROW(decompress_blosc(stored, plain.size() - 1), corrupt_chunk);
  BOOST_CHECK_THROW(check_blosc(stored, plain.size() + 1), corrupt_chunk);
  BOOST_CHECK_THROW(decompress_blosc(std::span(stored).first(stored.size() - 1), plain.size()), corrupt_chunk);
}

BOOST_AUTO_TEST_CASE(hostile_compressed_chunks_are_refused_and_nothing_else) {
  using namespace zarrbits::compressors;
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    buffer in(random() % 80);
    for (std::byte& b : in) b = static_cast<std::byte>(random() % 4 ? random() : random() % 3);
    if (in.size() > 12 && i % 2) {  // a head that announces the right length
      const unsigned char head[12] = {0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 32};
      std::memcpy(in.data(), head, sizeof head);
    }
    buffer blosc = in;
    if (blosc.size() > 16) {  // a right header before wrong data
      const unsigned char head[16] = {2,
                                      1,
                                      static_cast<unsigned char>(random()),
                                      static_cast<unsigned char>(1 + random() % 8),
                                      64,
                                      0,
                                      0,
                                      0,
                                      static_cast<unsigned char>(1 + random() % 64),
                                      0,
                                      0,
                                      0,
                                      static_cast<unsigned char>(blosc.size()),
                                      0,
                                      0,
                                      0};
      std::memcpy(blosc.data(), head, sizeof head);
    }
    const std::vector<unsigned> values = {0, 2, static_cast<unsigned>(random() % 9), static_cast<unsigned>(random() % 65),
                                          static_cast<unsigned>(random() % 5)};
    const auto attempt = [&](auto decode) {
      try {
        decode();
      } catch (const corrupt_chunk&) {
        ++refused;
      }
    };
    attempt([&] { decompress_lzf(in, 64); });
    attempt([&] { decompress_lz4(in, 64); });
    attempt([&] { decode_bitshuffle(values, in, 64); });
    attempt([&] { decompress_zstd(in, 64); });
    attempt([&] { check_blosc(in, 64); });
    attempt([&] { decompress_blosc(blosc, 64); });
    attempt([&] {
      buffer plain;
      zlib_to_gzip(in, 64, plain);
    });
  }
  BOOST_TEST(refused > 50000U);
}
