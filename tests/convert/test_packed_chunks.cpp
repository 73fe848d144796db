// SPDX-License-Identifier: BSL-1.0
//
// Chunks that our own HDF5 filters wrote, and integers that are packed on request.
//
#include "tests/convert/support.hpp"
#include "tests/support/test_data.hpp"

#include <boost/test/unit_test.hpp>

#include <map>

using namespace support;

namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// Takes back the decoders that an earlier conversion lent to libhdf5, which creates no dataset with a filter that cannot encode.
struct fixture {
  fixture() {
    for (const H5Z_filter_t id : {ZARRBITS_CONVERT_PACKBITS_ID, ZARRBITS_CONVERT_BYTES_ID}) H5Zunregister(id);
    H5Eclear2(H5E_DEFAULT);
  }
};

// A dataset whose pipeline is our packbits filter, as the filter itself would have resolved its values; no plugin is needed for
// that.
handle packed(conversion& c, const char* name, hid_t type, hsize_t n, std::vector<unsigned> values) {
  const handle p = chunked({n});
  check(H5Pset_filter(p, ZARRBITS_CONVERT_PACKBITS_ID, H5Z_FLAG_OPTIONAL, values.size(), values.data()), "filter");
  return c.dataset(name, type, {n}, p);
}

struct golden_12_bit {
  std::string decoded, encoded;
  golden_12_bit() {
    std::ifstream f(golden_file("codecs.json"));
    for (const json& v : json::parse(f)) {
      if (v["codec"] == "packbits" && v["data_type"] == "uint16" && v["elements"] == 34 &&
          v["configuration"] == json{{"last_bit", 11}} && !v.contains("error")) {
        decoded = from_hex(v["decoded"]);
        encoded = from_hex(v["encoded"]);
        return;
      }
    }
    throw std::runtime_error("no such golden vector");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(chunks_of_our_packbits_filter_are_copied_or_decoded, fixture) {
  const golden_12_bit g;
  for (const auto codec : {zarrbits::array_codec::automatic, zarrbits::array_codec::packbits, zarrbits::array_codec::bytes}) {
    const bool keep = codec != zarrbits::array_codec::bytes;
    fixture();
    conversion c;
    { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.encoded); }
    { write_chunk(packed(c, "big", H5T_STD_U16BE, 34, {12, 0, 0, 0}), g.encoded); }
    { write_chunk(packed(c, "masked", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.decoded, 1); }
    zarrbits::convert_options o;
    o.encoding.codec = codec;
    BOOST_TEST(!c.run(o).has_losses());
    if (keep) {
      BOOST_TEST((c.chunk("x/c/0") == g.encoded));
      BOOST_TEST((c.chunk("big/c/0") == g.encoded));
      BOOST_TEST((c.chunk("masked/c/0") == g.encoded));
      BOOST_TEST(c.meta("x")["codecs"] == json::parse(R"([{"name": "packbits", "configuration": {"last_bit": 11}}])"));
      BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::raw));
    } else {
      BOOST_TEST((c.chunk("x/c/0") == g.decoded));
      BOOST_TEST((c.chunk("masked/c/0") == g.decoded));
      std::string swapped = g.decoded;
      for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
      BOOST_TEST((c.chunk("big/c/0") == swapped));
      BOOST_TEST(c.meta("big")["codecs"][0]["configuration"]["endian"] == "big");
      BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::recoded));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_raw_chunk_that_does_not_fit_in_12_bits_makes_the_array_full_width, fixture) {
  const golden_12_bit g;
  conversion c;
  std::string wide = g.decoded;
  wide[5] = static_cast<char>(0xFF);
  { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), wide, 1); }
  zarrbits::convert_options o;
  o.encoding.codec = zarrbits::array_codec::packbits;
  BOOST_TEST(!c.run(o).has_losses());
  BOOST_TEST((c.chunk("x/c/0") == wide));
  BOOST_TEST(c.meta("x")["codecs"][0]["name"] == "bytes");
  const std::string why = c.entry("/x").reason;
  BOOST_TEST(why.find("left chunk [0] unpacked; index [2]") != std::string::npos, why);
}

// Elements beyond the edge are of no array: here they hold a fill value that does not fit, as netCDF's do.
BOOST_FIXTURE_TEST_CASE(a_chunk_that_is_unpacked_for_the_fill_value_beyond_the_edge_is_packed, fixture) {
  conversion c;
  const handle p = chunked({4, 2});
  const unsigned values[] = {12, 0, 0, 0};
  check(H5Pset_filter(p, ZARRBITS_CONVERT_PACKBITS_ID, H5Z_FLAG_OPTIONAL, 4, values), "filter");
  const std::uint16_t fill = 65535;
  check(H5Pset_fill_value(p, H5T_NATIVE_UINT16, &fill), "fill value");
  std::vector<std::uint16_t> chunk(8, fill);
  {
    const handle d = c.dataset("x", H5T_STD_U16LE, {6, 3}, p);
    for (const bool corner : {false, true}) {
      for (const std::size_t i : {0u, 1u, 2u, 3u}) chunk[i] = i % 2 == 1 && corner ? fill : static_cast<std::uint16_t>(100 + i);
      const hsize_t at[] = {4, corner ? 2u : 0u};
      check(H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, 16, chunk.data()), "write a chunk");
    }
  }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST(c.meta("x")["codecs"][0]["name"] == "packbits");
  // 12 bits each of 100, 101, 102, 103 and four zeros; of 100, 0, 102 and five zeros
  BOOST_TEST((c.chunk("x/c/1/0") == from_hex("645006667006000000000000")));
  BOOST_TEST((c.chunk("x/c/1/1") == from_hex("640000660000000000000000")));
  BOOST_TEST(c.entry("/x").reason == "");
}

BOOST_FIXTURE_TEST_CASE(packed_chunks_of_a_wrong_length_are_damage, fixture) {
  const golden_12_bit g;
  for (const auto codec : {zarrbits::array_codec::bytes, zarrbits::array_codec::packbits}) {
    fixture();
    conversion c;
    { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.encoded + "x"); }
    zarrbits::convert_options o;
    o.encoding.codec = codec;
    BOOST_CHECK_THROW(c.run(o), zarrbits::error);
  }
}

BOOST_FIXTURE_TEST_CASE(integers_are_packed_on_request_and_what_does_not_fit_is_an_error, fixture) {
  const golden_12_bit g;
  std::vector<std::uint16_t> v(34);
  std::memcpy(v.data(), g.decoded.data(), g.decoded.size());
  zarrbits::convert_options o;
  o.encoding.codec = zarrbits::array_codec::packbits;
  o.encoding.bits = 12;
  {
    conversion c;
    c.dataset("x", H5T_STD_U16LE, {34}, v);
    BOOST_TEST(!c.run(o).has_losses());
    BOOST_TEST((c.chunk("x/c/0") == g.encoded));
  }
  v[9] = 0x1234;
  {
    conversion c;
    c.dataset("x", H5T_STD_U16LE, {34}, v);
    BOOST_TEST(!c.run(o).has_losses());
    BOOST_TEST(c.chunk("x/c/0").size() == sizeof v[0] * v.size());  // kept as it is, unless its bits are given by name
  }
  o.encoding.bits_of = {{.pattern = "x", .first_bit = 0, .last_bit = 11}};
  conversion c;
  c.dataset("x", H5T_STD_U16LE, {34}, v);
  BOOST_CHECK_EXCEPTION(c.run(o), zarrbits::error, [](const zarrbits::error& e) {
    const std::string s = e.what();
    return s.find("\"/x\"") != std::string::npos && s.find("index [9]") != std::string::npos;
  });
}

BOOST_FIXTURE_TEST_CASE(deflate_over_packbits_needs_no_plugin, fixture) {
  const golden_12_bit g;
  conversion c;
  const handle p = chunked({34});
  const unsigned values[] = {12, 0, 0, 0};
  check(H5Pset_filter(p, ZARRBITS_CONVERT_PACKBITS_ID, H5Z_FLAG_OPTIONAL, 4, values), "filter");
  check(H5Pset_deflate(p, 5), "deflate");
  std::string z(200, '\0');
  uLongf size = z.size();
  BOOST_REQUIRE(compress2(reinterpret_cast<Bytef*>(z.data()), &size, reinterpret_cast<const Bytef*>(g.encoded.data()),
                          g.encoded.size(), 5) == Z_OK);
  z.resize(size);
  { write_chunk(c.dataset("x", H5T_STD_U16LE, {34}, p), z); }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((elements(c.meta("x")["codecs"], c.chunk("x/c/0"), g.decoded.size()) == g.decoded));
}

BOOST_FIXTURE_TEST_CASE(chunks_of_our_bytes_filter_are_copied_under_their_byte_order, fixture) {
  conversion c;
  const handle p = chunked({4});
  const std::vector<unsigned> big = {1, 0x5A424501, 2, 0, 8, 0, 256};
  check(H5Pset_filter(p, ZARRBITS_CONVERT_BYTES_ID, H5Z_FLAG_OPTIONAL, big.size(), big.data()), "filter");
  const std::string payload("\0\1\0\2\0\3\0\4", 8);
  { write_chunk(c.dataset("x", H5T_STD_U16LE, {4}, p), payload); }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("x/c/0") == payload));
  BOOST_TEST(c.meta("x")["codecs"][0]["configuration"]["endian"] == "big");
}

// As where HDF5 did not find the plugin when the dataset was created: whoever writes the chunks, the filter leaves them as they
// are.
BOOST_FIXTURE_TEST_CASE(parameters_that_were_never_resolved_mean_that_chunks_are_as_they_are, fixture) {
  const golden_12_bit g;
  for (const auto& [filter, values] :
       std::vector<std::pair<int, std::vector<unsigned>>>{{ZARRBITS_CONVERT_PACKBITS_ID, {}},
                                                          {ZARRBITS_CONVERT_PACKBITS_ID, {12}},
                                                          {ZARRBITS_CONVERT_PACKBITS_ID, {12, 0, 0, 0}},
                                                          {ZARRBITS_CONVERT_BYTES_ID, {}},
                                                          {ZARRBITS_CONVERT_BYTES_ID, {1}}})
    for (const bool deflated : {false, true})
      for (const unsigned mask : {0u, 1u}) {
        conversion c;
        const handle p = chunked({34});
        fixture();
        check(H5Pset_filter(p, filter, H5Z_FLAG_OPTIONAL, values.size(), values.data()), "filter");
        std::string stored = g.decoded;
        if (deflated) {
          check(H5Pset_deflate(p, 5), "deflate");
          stored.resize(200);
          uLongf size = stored.size();
          BOOST_REQUIRE(compress2(reinterpret_cast<Bytef*>(stored.data()), &size,
                                  reinterpret_cast<const Bytef*>(g.decoded.data()), g.decoded.size(), 5) == Z_OK);
          stored.resize(size);
        }
        { write_chunk(c.dataset("x", H5T_STD_U16LE, {34}, p), stored, mask); }
        zarrbits::convert_options o;
        o.encoding.codec = zarrbits::array_codec::bytes;
        BOOST_TEST(!c.run(o).has_losses());
        BOOST_TEST((elements(c.meta("x")["codecs"], c.chunk("x/c/0"), g.decoded.size()) == g.decoded));
      }
}
