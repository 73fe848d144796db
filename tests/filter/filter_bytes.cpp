// SPDX-License-Identifier: BSL-1.0
//
// The callbacks of the bytes filter, as filter_chunk.cpp has those of packbits.
//
#include "tests/filter/chunk_support.hpp"

#include "filter/bytes.hpp"
#include "filter/plugins.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <string>

using namespace chunk_support;
using namespace zarrbits::filter;

namespace {

std::mt19937_64 random_bits(20240611);

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_reverses_components_and_nothing_else) {
  for (const unsigned size : {1u, 2u, 3u, 4u, 8u, 10u, 16u})
    for (const bool big_memory : {false, true})
      for (const bool big : {false, true}) {
        bytes_chunk c, back;
        sentence why;
        BOOST_REQUIRE(resolve(big, number(size, false, big_memory, 2), 25, c, why));
        unsigned cd[bytes_stored];
        store(c, cd);
        BOOST_REQUIRE(load(bytes_stored, cd, back, why));
        bytes_of content(std::size_t{size} * 2 * 25);
        for (auto& b : content) b = static_cast<unsigned char>(random_bits());
        bytes_of wanted = content;
        if (size > 1 && big != big_memory)
          for (std::size_t i = 0; i < wanted.size(); i += size)
            std::reverse(wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted.begin() + static_cast<std::ptrdiff_t>(i + size));
        buffer b(content, content.size());
        BOOST_TEST(bytes_class.filter(0, bytes_stored, cd, content.size(), &b.size, &b.at) == content.size());
        BOOST_TEST(b.first(content.size()) == wanted);
        BOOST_TEST(bytes_class.filter(flag_reverse, bytes_stored, cd, content.size(), &b.size, &b.at) == content.size());
        BOOST_TEST(b.first(content.size()) == content);
        back.checksum_before = true;  // fletcher32's, after the values
        store(back, cd);
        bytes_of longer = content;
        longer.insert(longer.end(), {9, 8, 7, 6});
        wanted.insert(wanted.end(), {9, 8, 7, 6});
        buffer l(longer, longer.size());
        BOOST_TEST(bytes_class.filter(0, bytes_stored, cd, longer.size(), &l.size, &l.at) == longer.size());
        BOOST_TEST(l.first(longer.size()) == wanted);
        BOOST_TEST(convert(back, content.size(), l.at, why) == 0u);
        BOOST_TEST(convert(c, content.size() - 1, b.at, why) == 0u);
        BOOST_TEST(convert(c, content.size() + 1, b.at, why) == 0u);
      }
}

BOOST_AUTO_TEST_CASE(bytes_refuses_parameters_that_contradict_each_other) {
  bytes_chunk c;
  sentence why;
  BOOST_REQUIRE(resolve(true, number(4), 25, c, why));
  unsigned cd[bytes_stored];
  for (unsigned i = 0; i < 6; ++i) {
    store(c, cd);
    cd[i] = i == 2 ? 7 : i == 4 ? 99 : ~0u;
    BOOST_TEST(!load(bytes_stored, cd, c, why), i);
    BOOST_REQUIRE(resolve(true, number(4), 25, c, why));
  }
  store(c, cd);
  BOOST_TEST(!load(bytes_stored - 1, cd, c, why));
  const unsigned two[] = {2}, many[] = {0, 0};
  bool big = false;
  BOOST_TEST(!read_parameters(1, two, big, why));
  BOOST_TEST(!read_parameters(2, many, big, why));
  BOOST_TEST(std::string(why.text).find("takes one value") != std::string::npos, why.text);

  // what a newer version may have left in a file: its layout has another number, or more values
  BOOST_REQUIRE(resolve(true, number(4), 25, c, why));
  store(c, cd);
  BOOST_TEST(read_parameters(bytes_stored, cd, big, why));
  BOOST_TEST(big);
  BOOST_TEST(!read_parameters(bytes_stored - 1, cd, big, why));
  BOOST_TEST(std::string(why.text).find("a different version") != std::string::npos, why.text);
  ++cd[1];
  BOOST_TEST(!read_parameters(bytes_stored, cd, big, why));
  BOOST_TEST(std::string(why.text).find("a different version") != std::string::npos, why.text);
  BOOST_TEST(!resolve(true, number(4), UINT64_MAX / 2, c, why));
  BOOST_TEST(std::string(why.text).find("choose a smaller chunk") != std::string::npos, why.text);
}
