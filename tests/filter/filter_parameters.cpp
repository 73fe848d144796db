// SPDX-License-Identifier: BSL-1.0
//
// The parameters of packbits: given by a user, in a file, and in a hostile file.
#include "tests/filter/chunk_examples.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace chunk_support;

BOOST_AUTO_TEST_CASE(parameters_survive_the_file) {
  for (int i = 0; i < 500; ++i) {
    example x = any_example();
    x.chunk.policy = static_cast<range_policy>(below(4));
    x.chunk.format.truncate = x.chunk.policy == range_policy::truncate;
    x.chunk.checksum_before = below(2) != 0;
    x.chunk.one_size = x.chunk.may_be_raw() && x.chunk.policy != range_policy::error && below(2) != 0;
    unsigned cd[packbits_stored], again[packbits_stored];
    store(x.chunk, cd);
    packbits_chunk back;
    sentence why;
    BOOST_REQUIRE_MESSAGE(load(packbits_stored, cd, back, why), why.text);
    store(back, again);
    BOOST_TEST(std::equal(cd, cd + packbits_stored, again));
    BOOST_TEST(back.decoded_size == x.chunk.decoded_size);
    packbits_parameters_in user;
    BOOST_TEST(read_parameters(packbits_stored, cd, user, why));
    BOOST_TEST(user.bits == x.chunk.format.bits);
    BOOST_TEST(user.first_bit == x.chunk.format.first_bit);
  }
}

BOOST_AUTO_TEST_CASE(hostile_parameters_never_give_a_result_of_another_size) {
  std::size_t accepted = 0, refused = 0;
  for (int i = 0; i < 60000; ++i) {
    const example x = below(16) ? make(1u << below(4), 1 + static_cast<unsigned>(below(8)), 0, static_cast<padding>(below(3)),
                                       below(2), below(2), 1, 1 + below(64))
                                : any_example();
    unsigned cd[20];
    store(x.chunk, cd);
    std::size_t n = packbits_stored;
    for (std::uint64_t k = 1 + below(3); k-- > 0;) {
      unsigned& v = cd[below(packbits_stored)];
      switch (below(6)) {
        case 0: v = static_cast<unsigned>(random_bits()); break;
        case 1: v ^= 1u << below(32); break;
        case 2: v = static_cast<unsigned>(below(70)); break;
        case 3: v = 0; break;
        case 4: v = ~0u; break;
        default: n = below(14); break;
      }
    }
    bytes_of content = x.encoded;
    if (below(4) == 0) content.resize(below(2 * content.size() + 1));
    buffer b(content, content.size() + (below(2) ? below(4096) : 0));
    const std::size_t room = b.size;
    void* const at = b.at;
    packbits_chunk c;
    sentence why;
    std::size_t result = 0;
    // only the given values may be read
    const bytes_of tight(reinterpret_cast<unsigned char*>(cd), reinterpret_cast<unsigned char*>(cd) + n * sizeof *cd);
    std::vector<unsigned> values(n);
    if (n != 0) std::memcpy(values.data(), tight.data(), tight.size());
    const bool encoding = below(2);
    if (load(n, values.data(), c, why))
      result = encoding ? encode(plain, c, content.size(), &b.size, &b.at, why)
                        : decode(plain, c, content.size(), &b.size, &b.at, why);
    if (result == 0) {
      ++refused;
      BOOST_REQUIRE(b.at == at && b.size == room && b.first(content.size()) == content && why.text[0] != '\0');
    } else {
      ++accepted;
      const std::uint64_t wanted = encoding && why.text[0] == '\0' ? c.encoded_size : c.decoded_size;
      BOOST_REQUIRE(result == (encoding && c.one_size ? c.filled_size() : wanted + c.checksum_bytes()) && b.size >= result);
      if (why.text[0] != '\0') BOOST_REQUIRE(c.may_be_raw() && b.first(content.size()) == content);
    }
  }
  BOOST_TEST_MESSAGE("hostile parameters: " << refused << " refused, " << accepted << " accepted");
  BOOST_TEST(refused > 40000u);
  BOOST_TEST(accepted > 100u);
}

BOOST_AUTO_TEST_CASE(impossible_chunks_are_refused_before_anything_is_allocated) {
  const example x = make(8, 1, 0, padding::none, false, false, 1, 64);
  unsigned cd[packbits_stored];
  for (const std::uint64_t elements : {std::uint64_t{0}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    packbits_chunk c = x.chunk;
    c.elements = elements;
    store(c, cd);
    sentence why;
    BOOST_TEST(!load(packbits_stored, cd, c, why));
  }
}

BOOST_AUTO_TEST_CASE(wrong_user_parameters_are_refused) {
  sentence why;
  packbits_parameters_in user;
  for (const unsigned options : {3u, 15u, 32u, 1u << 20, ~0u}) {
    const unsigned cd[] = {12, options};
    BOOST_TEST(!read_parameters(2, cd, user, why), options);
  }
  const unsigned fourth[] = {12, 0, 0, 1}, five[] = {12, 0, 0, 0, 0}, newer[12] = {12, 0, 0, 0, 0x5A504202};
  BOOST_TEST(!read_parameters(4, fourth, user, why));
  BOOST_TEST(!read_parameters(5, five, user, why));
  BOOST_TEST(!read_parameters(12, newer, user, why));
  BOOST_TEST(std::string(why.text).find("a different version") != std::string::npos);
  packbits_chunk c;
  for (const packbits_parameters_in& p :
       {packbits_parameters_in{0, 0, 0}, {17, 0, 0}, {12, 0, 5}, {~0u, 0, 1}, {1, 0, ~0u}, {12, 16, 0}, {1, 16, 0}})
    BOOST_TEST(!resolve(p, number(2), 10, c, why), p.bits << ' ' << p.options << ' ' << p.first_bit);
  BOOST_TEST(resolve({16, 0, 0}, number(2), 10, c, why));
  for (const unsigned size : {3u, 16u, 0u}) BOOST_TEST(!resolve({1, 0, 0}, number(size), 10, c, why));
}
