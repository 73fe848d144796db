// SPDX-License-Identifier: BSL-1.0
//
// Streams that liblzo2 2.10 made (lzo1x_1_compress and lzo1x_999_compress, through python-lzo's lzo.compress(plain, 1 or 9,
// False)).
//
#include "tests/convert/support.hpp"

#include "compressors/lzo.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>

using namespace support;
using namespace zarrbits::compressors;
using namespace zarrbits::hdf5;

namespace {

std::string noise(std::size_t n, std::uint32_t x = 1) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) s += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  return s;
}

std::string rows(int n) {
  std::string s;
  for (int i = 0; i < n; ++i)
    s += "row " + std::to_string(i) + " of " + std::to_string(n) + ", " + std::to_string(i * i % 97) + "\n";
  return s;
}

buffer as_bytes(const std::string& s) {
  const auto bytes = std::as_bytes(std::span(s.data(), s.size()));
  return {bytes.begin(), bytes.end()};
}

buffer from_hex(const std::string& hex) {
  buffer b;
  for (std::size_t i = 0; i < hex.size(); i += 2) b.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return b;
}

struct stream {
  std::string plain, hex;
};

std::vector<stream> streams() {
  std::string few;
  for (unsigned i = 0; i < 40; ++i) few += noise(3, i) + std::string("abcdefgh").substr(0, 4 + i % 5);
  const std::string pattern = "abcabcabcabcabcabc!!!!!";
  return {
      {"abc", "14616263110000"},
      {pattern, "146162632d0900216000110000"},
      {noise(40) + std::string(600, '\0') + noise(40),
       "00183c5e81b40c5ec68e04a3406c97d63cfbdc53ae88371a125121b5956143c0ee2d55fb638c77fee0b6000020000037040032fc090002371a125121b"
       "5956143c0ee2d55fb638c77fee0b6"
       "110000"},
      {noise(40) + std::string(600, '\0') + noise(40),
       "3a3c5e81b40c5ec68e04a3406c97d63cfbdc53ae88371a125121b5956143c0ee2d55fb638c77fee0b6002000003800002007fc09110000"},
      {noise(40) + std::string(20000, '\0') + noise(40),
       "00183c5e81b40c5ec68e04a3406c97d63cfbdc53ae88371a125121b5956143c0ee2d55fb638c77fee0b60000200000000000000000000000000000000"
       "00000000000000000000000000000"
       "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000004b0400100b20390002371a125"
       "121b5956143c0ee2d55fb638c77fe"
       "e0b6110000"},
      {noise(40) + std::string(40000, '\0') + noise(40),
       "00183c5e81b40c5ec68e04a3406c97d63cfbdc53ae88371a125121b5956143c0ee2d55fb638c77fee0b60000200000000000000000000000000000000"
       "00000000000000000000000000000"
       "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
       "00000000000000000000000000000"
       "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000b90400180ba07100023"
       "71a125121b5956143c0ee2d55fb63"
       "8c77fee0b6110000"},
      {rows(40),
       "20726f772030206f662034302c20300a790131f90131990132f90134990133f9013999013427b100369d0135fe0132359d0136fd0133bd0337273401b"
       "d0738fd0136b90b39fd0138b50f31"
       "27710233bc0127750232a10631287d0237a0022786023732a002278c02dc01278d0233cc0c27910236c40427950239b5183127990233d810279d0237b"
       "12632279d0231ad083227a10235a9"
       "063227a10239a9213227a10234a9193227a10239c82f27a50234cc0827a50239c80627a50235dc1027a50238bc0127a10236a9193327a10232bd25332"
       "7a10238a9063327a10235c83e27a1"
       "0232ad1b3327a10238b5383327a10236a5173328dc07d80e27a10231c40428a002b9213328a602360a110000"},
      {few,
       "0f3c47d1616263643c5e8161626364653c75309c0001663c8cdfa00101673ca48ec40101683cbb3e6b013dd2ed780001653de99c9c0001663d014ca00"
       "101673d18fbc40101683d2faa6b01"
       "3d4659780001653d5d099c0001663d75b8a00101673d8c67c40101683da3176b013ebac6780001653ed2759c0001663ee924a00101673e00d4c401016"
       "83e17836b013e2e32780001653e46"
       "e29c0001663e5d91a00101673e7440c40101683e8bef6b013fa39f780001653fba4e9c0001663fd1fda00101673fe8adc40101683fff5c6b013f170b7"
       "80001653f2eba9c0001663f456aa0"
       "0101673f5c19c40101683f74c86b01408b787800016540a2279c0000046640b9d66162636465666740d0856162636465666768110000"},
      {few,
       "1b3c47d1616263643c5e81780001653c75309c0001663c8cdfa00101673ca48ec40101683cbb3e6b013dd2ed87023de99ca7033d014ccb043d18fbf30"
       "53d2faa92054659b2055d09d20575"
       "b8f2058c6727b200a3176b013ebac687023ed275a7033ee924cb043e00d4f3053e178392052e32b20546e2d2055d91f205744027b2008bef6b013fa39"
       "f87023fba4ea7033fd1fdcb043fe8"
       "adf3053fff5c9205170bb2052ebad205456af2055c1927b20074c86b01408b78870240a227a70340b9d6cb0440d085f005110000"},
      {"", "110000"},
  };
}

// As PyTables stores it: the Adler-32 of the plain bytes and their length, little-endian.
buffer with_trailer(buffer stored, std::uint32_t adler, std::uint32_t size) {
  for (const std::uint32_t v : {adler, size}) {
    for (unsigned i = 0; i < 4; ++i) stored.push_back(static_cast<std::byte>(v >> (8 * i)));
  }
  return stored;
}

}  // namespace

BOOST_AUTO_TEST_CASE(streams_of_liblzo2_give_what_went_in) {
  for (const auto& [plain, hex] : streams()) {
    const buffer in = from_hex(hex);
    BOOST_TEST_CONTEXT(hex) {
      BOOST_TEST((decompress_lzo(in, plain.size()) == as_bytes(plain)));
      BOOST_CHECK_THROW(decompress_lzo(in, plain.size() + 1), corrupt_chunk);
      if (!plain.empty()) BOOST_CHECK_THROW(decompress_lzo(in, plain.size() - 1), corrupt_chunk);
      for (std::size_t n = 0; n < in.size(); ++n)
        BOOST_CHECK_THROW(decompress_lzo(std::span(in).first(n), plain.size()), corrupt_chunk);
    }
  }
}

BOOST_AUTO_TEST_CASE(checksum_and_length_of_pytables_are_verified) {
  const buffer plain = as_bytes("abc"), in = from_hex("14616263110000");
  constexpr std::uint32_t adler = 0x024D0127;  // of "abc"
  BOOST_TEST((decompress_lzo(with_trailer(in, adler, 3), 3) == plain));
  BOOST_TEST((decompress_lzo_up_to(with_trailer(in, adler, 3), 1000) == plain));
  BOOST_CHECK_THROW(decompress_lzo(with_trailer(in, adler + 1, 3), 3), corrupt_chunk);
  BOOST_CHECK_THROW(decompress_lzo(with_trailer(in, adler, 4), 3), corrupt_chunk);
  BOOST_CHECK_THROW(decompress_lzo(from_hex("1461626311000000"), 3), corrupt_chunk);
}

BOOST_AUTO_TEST_CASE(hostile_streams_are_refused_and_nothing_else) {
  std::mt19937 random(1);
  std::size_t refused = 0, decoded = 0;
  const auto attempt = [&](const buffer& in) {
    try {
      decompress_lzo_up_to(in, 5000);
      ++decoded;
    } catch (const corrupt_chunk&) {
      ++refused;
    }
  };
  for (int i = 0; i < 20000; ++i) {
    buffer in(random() % 80);
    for (std::byte& b : in) b = static_cast<std::byte>(random() % 4 ? random() : random() % 20);
    attempt(in);
  }
  for (const auto& [plain, hex] : streams()) {
    for (int i = 0; i < 2000; ++i) {
      buffer in = from_hex(hex);
      for (auto n = 1 + random() % 3; n > 0; --n) in[random() % in.size()] = static_cast<std::byte>(random());
      attempt(in);
    }
  }
  BOOST_TEST(refused > 20000U);
  BOOST_TEST(decoded > 100U);  // a changed literal is no error without a checksum
}

// A file as PyTables writes it; libhdf5 has no such filter.
BOOST_AUTO_TEST_CASE(a_dataset_of_filter_305_is_converted) {
  const std::string plain = rows(40);
  const std::vector<stream> all = streams();
  const auto found = std::find_if(all.begin(), all.end(), [&](const stream& s) { return s.plain == plain; });
  BOOST_REQUIRE((found != all.end()));
  const buffer stored = from_hex(found->hex);
  support::conversion c;
  {
    const handle dcpl = chunked({plain.size()});
    const unsigned values[3] = {1, 20, 0};
    check(H5Pset_filter(dcpl, 305, H5Z_FLAG_OPTIONAL, 3, values), "set the filter");
    const handle d = c.dataset("d", H5T_NATIVE_UINT8, {plain.size()}, dcpl);
    const hsize_t first[1] = {0};
    check(H5Dwrite_chunk(d, H5P_DEFAULT, 0, first, stored.size(), stored.data()), "write a chunk");
  }
  c.run();
  BOOST_TEST((c.entry("/d").outcome == zarrbits::outcome::recoded));
  BOOST_TEST(elements(c.meta("d").at("codecs"), c.chunk("d/c/0"), plain.size()) == plain);
}
