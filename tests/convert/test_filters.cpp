// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/support.hpp"

#include "convert/codecs/bitshuffle.hpp"
#include "convert/codecs/blosc.hpp"
#include "convert/codecs/deflate.hpp"
#include "convert/codecs/lz4.hpp"
#include "convert/codecs/lzf.hpp"
#include "convert/codecs/zstd.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <map>
#include <random>

using namespace support;

namespace {

std::vector<std::int32_t> numbers(std::size_t n) {
  std::vector<std::int32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::int32_t>(i / 3);
  return v;
}

std::string stored_chunk(hid_t d, const dims& first) {
  hsize_t size = 0;
  check(H5Dget_chunk_storage_size(d, first.data(), &size), "size");
  std::string s(size, '\0');
  std::uint32_t mask = 0;
  check(H5Dread_chunk(d, H5P_DEFAULT, first.data(), &mask, s.data()), "read");
  return s;
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// A dataset whose pipeline is our packbits filter, as the filter itself would have resolved its values; no plugin is needed for
// that.
handle packed(conversion& c, const char* name, hid_t type, hsize_t n, std::vector<unsigned> values) {
  const handle p = chunked({n});
  check(H5Pset_filter(p, ZARRBITS_CONVERT_PACKBITS_ID, H5Z_FLAG_OPTIONAL, values.size(), values.data()), "filter");
  return c.dataset(name, type, {n}, p);
}

void write_chunk(hid_t d, const std::string& bytes, std::uint32_t mask = 0) {
  const hsize_t first[] = {0};
  check(H5Dwrite_chunk(d, H5P_DEFAULT, mask, first, bytes.size(), bytes.data()), "write a chunk");
}

struct golden_12_bit {
  std::string decoded, encoded;
  golden_12_bit() {
    std::ifstream f(ZARRBITS_TEST_DATA "/golden/codecs.json");
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

BOOST_AUTO_TEST_CASE(deflate_keeps_its_payload_and_becomes_gzip) {
  conversion c;
  const handle p = chunked({50});
  check(H5Pset_deflate(p, 7), "deflate");
  const auto v = numbers(100);
  std::string first;
  {
    const handle d = c.dataset("x", H5T_STD_I32LE, {100}, v, p);
    check(H5Fflush(c.file(), H5F_SCOPE_LOCAL), "flush");
    first = stored_chunk(d, {0});
  }
  BOOST_TEST(!c.run().lost());
  const std::string z = c.chunk("x/c/0");
  BOOST_TEST((z.substr(10, z.size() - 18) == first.substr(2, first.size() - 6)));
  BOOST_TEST((gunzip(z, 200) == bytes_of(v).substr(0, 200)));
  BOOST_TEST(
      c.meta("x")["codecs"] ==
      json::parse(
          R"([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 7}}])"));
  BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::rewrapped));
  BOOST_TEST(c.entry("/x").chunks.rewrapped == 2U);
}

BOOST_AUTO_TEST_CASE(each_mix_of_shuffle_deflate_and_checksum_gives_the_values) {
  const auto v = numbers(100);
  const std::vector<std::string> mixes = {"s", "f", "d", "sd", "df", "fd", "sdf", "fsd", "dd"};
  for (const std::string& mix : mixes) {
    BOOST_TEST_CONTEXT(mix) {
      conversion c;
      const handle p = chunked({40});
      for (const char m : mix) {
        if (m == 's') check(H5Pset_shuffle(p), "shuffle");
        if (m == 'd') check(H5Pset_deflate(p, 4), "deflate");
        if (m == 'f') check(H5Pset_fletcher32(p), "fletcher32");
      }
      c.dataset("x", H5T_STD_I32LE, {100}, v, p);
      BOOST_TEST(!c.run().lost());
      const bool gz = mix.find('d') != std::string::npos;
      const std::string chunk = c.chunk("x/c/1");
      const json codecs = c.meta("x")["codecs"];
      BOOST_TEST((elements(codecs, chunk, 160) == bytes_of(v).substr(160, 160)));
      BOOST_TEST(codecs.size() == (gz ? 2U : 1U));
      // no reader has a shuffle but blosc's, and without it the store would be far larger
      const bool decoded = mix.find('s') != std::string::npos || mix == "dd";
      if (gz) BOOST_TEST(codecs[1]["name"] == (decoded ? "blosc" : "gzip"));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_whose_filter_was_left_out_is_encoded) {
  conversion c;
  const handle p = chunked({8});
  check(H5Pset_shuffle(p), "shuffle");
  check(H5Pset_deflate(p, 4), "deflate");
  const std::vector<std::int32_t> v = numbers(8);
  {
    const handle d = c.dataset("x", H5T_STD_I32LE, {8}, p);
    write_chunk(d, bytes_of(v), 3);
  }
  {
    const handle q = chunked({8});
    check(H5Pset_deflate(q, 4), "deflate");
    const handle d = c.dataset("y", H5T_STD_I32LE, {8}, q);
    write_chunk(d, bytes_of(v), 1);
  }
  BOOST_TEST(!c.run().lost());
  BOOST_TEST((elements(c.meta("x")["codecs"], c.chunk("x/c/0"), 32) == bytes_of(v)));
  BOOST_TEST((gunzip(c.chunk("y/c/0"), 32) == bytes_of(v)));
}

BOOST_AUTO_TEST_CASE(native_copies_chunks_under_the_names_of_numcodecs) {
  const auto v = numbers(100);
  const std::map<char, json> codec = {{'s', {{"name", "numcodecs.shuffle"}, {"configuration", {{"elementsize", 4}}}}},
                                      {'d', {{"name", "numcodecs.zlib"}, {"configuration", {{"level", 4}}}}},
                                      {'f', {{"name", "numcodecs.fletcher32"}, {"configuration", json::object()}}}};
  for (const std::string mix : {"s", "f", "d", "sd", "df", "fd", "sdf", "fsd"}) {
    BOOST_TEST_CONTEXT(mix) {
      conversion c;
      const handle p = chunked({40});
      json codecs = json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
      for (const char m : mix) {
        if (m == 's') check(H5Pset_shuffle(p), "shuffle");
        if (m == 'd') check(H5Pset_deflate(p, 4), "deflate");
        if (m == 'f') check(H5Pset_fletcher32(p), "fletcher32");
        codecs.push_back(codec.at(m));
      }
      std::string stored;
      {
        const handle d = c.dataset("x", H5T_STD_I32LE, {100}, v, p);
        stored = stored_chunk(d, {40});
        write_chunk(d, bytes_of(v).substr(0, 160), (1U << mix.size()) - 1);  // all filters left out
      }
      BOOST_TEST(!c.run({.profile = zarrbits::profile::native}).lost());
      BOOST_TEST((c.result().profile == zarrbits::profile::native));
      BOOST_TEST(c.meta("x")["codecs"] == codecs);
      BOOST_TEST((c.chunk("x/c/1") == stored));
      BOOST_TEST(c.entry("/x").chunks.raw == 2U);
      BOOST_TEST(c.entry("/x").chunks.recoded == 1U);
      // the chunk that had no filters: made by ours, undone by libhdf5's
      const handle again = c.dataset_of_another_file("again.h5", H5T_STD_I32LE, {100}, p);
      write_chunk(again, c.chunk("x/c/0"), 0);
      std::vector<std::int32_t> back(100);
      check(H5Dread(again, H5T_STD_I32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), "read");
      BOOST_TEST((bytes_of(back).substr(0, 160) == bytes_of(v).substr(0, 160)));
    }
  }
}

BOOST_AUTO_TEST_CASE(recode_compresses_as_it_is_told) {
  const auto v = numbers(100);
  using zarrbits::blosc_compressor, zarrbits::blosc_shuffle, zarrbits::compression, zarrbits::compressor;
  struct asked {
    compression how;
    json codec;  // what the store is to say
  };
  const auto blosc = [](const char* inside, int level, const char* shuffle) {
    return json{
        {"name", "blosc"},
        {"configuration", {{"typesize", 4}, {"cname", inside}, {"clevel", level}, {"shuffle", shuffle}, {"blocksize", 0}}}};
  };
  const auto zstd = [](int level) { return json{{"name", "zstd"}, {"configuration", {{"level", level}, {"checksum", false}}}}; };
  const auto gzip = [](int level) { return json{{"name", "gzip"}, {"configuration", {{"level", level}}}}; };
  for (const auto& [how, codec] : std::vector<asked>{
           {{compressor::none}, json()},
           {{compressor::gzip}, gzip(6)},
           {{compressor::gzip, 9}, gzip(9)},
           {{compressor::zstd}, zstd(3)},
           {{compressor::zstd, 19}, zstd(19)},
           {{compressor::blosc}, blosc("zstd", 5, "shuffle")},
           {{compressor::blosc, 0, blosc_compressor::lz4}, blosc("lz4", 5, "shuffle")},
           {{compressor::blosc, 3, blosc_compressor::zlib, blosc_shuffle::bits}, blosc("zlib", 3, "bitshuffle")},
           {{compressor::blosc, 9, blosc_compressor::lz4hc, blosc_shuffle::none}, blosc("lz4hc", 9, "noshuffle")}}) {
    for (const bool filtered : {false, true}) {
      BOOST_TEST_CONTEXT(codec << filtered) {
        conversion c;
        const handle p = chunked({40});
        if (filtered) check(H5Pset_deflate(p, 4), "deflate");
        c.dataset("x", H5T_STD_I32LE, {100}, v, p);
        c.dataset("contiguous", H5T_STD_I32LE, {100}, v);
        BOOST_TEST(!c.run({.compress = how}).lost());
        BOOST_TEST((c.result().profile == zarrbits::profile::recode));
        for (const char* name : {"x", "contiguous"}) {
          const json codecs = c.meta(name)["codecs"];
          const std::size_t size = name[0] == 'x' ? 160 : 400;
          BOOST_TEST((elements(codecs, c.chunk(std::string(name) + "/c/0"), size) == bytes_of(v).substr(0, size)));
          BOOST_TEST((codec.is_null() ? codecs.size() == 1 : codecs.size() == 2 && codecs[1] == codec), codecs.dump());
        }
      }
    }
  }
  for (const compression& how : std::vector<compression>{{compressor::none, 1},
                                                         {compressor::gzip, 10},
                                                         {compressor::gzip, -1},
                                                         {compressor::zstd, 23},
                                                         {compressor::blosc, 10},
                                                         {compressor::blosc, 5, blosc_compressor::snappy},
                                                         {compressor::blosc, 5, blosc_compressor::blosclz}}) {
    BOOST_CHECK_THROW(zarrbits::check_options({.compress = how}), zarrbits::convert_error);
  }
  BOOST_CHECK_THROW(zarrbits::check_options({.profile = zarrbits::profile::native, .compress = compression{}}),
                    zarrbits::convert_error);
  BOOST_CHECK_THROW(zarrbits::check_options({.chunk = {0}}), zarrbits::convert_error);
  BOOST_CHECK_THROW(zarrbits::check_options({.chunk = std::vector<std::uint64_t>(33, 1)}), zarrbits::convert_error);
  BOOST_CHECK_THROW(zarrbits::check_options({.shard = {.shape = {1, 0}}}), zarrbits::convert_error);
  BOOST_CHECK_THROW(zarrbits::check_options({.shard = {.bytes = 1, .shape = {1}}}), zarrbits::convert_error);
  BOOST_CHECK_NO_THROW(zarrbits::check_options({.chunk = std::vector<std::uint64_t>(32, 1), .shard = {.bytes = 1}}));
}

BOOST_AUTO_TEST_CASE(edge_chunks_stored_without_filters_are_seen) {
  const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
  check(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "set versions");
  conversion c(H5P_DEFAULT, access);
  const handle p = chunked({40});
  check(H5Pset_deflate(p, 4), "deflate");
  check(H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), "chunk options");
  const auto v = numbers(100);
  c.dataset("x", H5T_STD_I32LE, {100}, v, p);
  BOOST_TEST(!c.run().lost());
  BOOST_TEST((gunzip(c.chunk("x/c/0"), 160) == bytes_of(v).substr(0, 160)));
  BOOST_TEST((gunzip(c.chunk("x/c/2"), 160).substr(0, 80) == bytes_of(v).substr(320, 80)));
  BOOST_TEST(c.entry("/x").chunks.rewrapped == 2U);
  BOOST_TEST(c.entry("/x").chunks.recoded == 1U);
}

BOOST_AUTO_TEST_CASE(damaged_chunks_end_the_run_or_are_named) {
  for (const bool keep_going : {false, true}) {
    conversion c;
    const handle p = chunked({50});
    check(H5Pset_deflate(p, 4), "deflate");
    const auto v = numbers(100);
    {
      const handle d = c.dataset("x", H5T_STD_I32LE, {100}, v, p);
      check(H5Fflush(c.file(), H5F_SCOPE_LOCAL), "flush");
      std::string bytes = stored_chunk(d, {50});
      bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 1);  // the checksum at the end of the zlib stream
      const hsize_t first[] = {50};
      check(H5Dwrite_chunk(d, H5P_DEFAULT, 0, first, bytes.size(), bytes.data()), "write a chunk");
    }
    if (keep_going) {
      BOOST_TEST(c.run({.keep_going = true}).lost());
      BOOST_TEST(c.entry("/x").lossy);
      BOOST_TEST((c.entry("/x").lost_chunks == std::vector<std::vector<std::uint64_t>>{{1}}));
      BOOST_TEST(c.has("x/c/0"));
      BOOST_TEST(!c.has("x/c/1"));
    } else {
      BOOST_CHECK_EXCEPTION(c.run(), zarrbits::convert_error, [](const zarrbits::convert_error& e) {
        const std::string s = e.what();
        return s.find("\"/x\"") != std::string::npos && s.find("[1]") != std::string::npos;
      });
      BOOST_TEST(!std::filesystem::exists(c.store()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_filter_that_nobody_has_costs_one_dataset) {
  conversion c;
  const handle p = chunked({8});
  const unsigned value = 1;
  check(H5Pset_filter(p, 40000, H5Z_FLAG_OPTIONAL, 1, &value), "filter");
  {
    const handle d = c.dataset("x", H5T_STD_I32LE, {8}, p);
    write_chunk(d, std::string(10, 'x'));
    const handle space(H5Screate(H5S_SCALAR), "make a space");
    const handle attribute(H5Acreate2(d, "scale", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT), "make an attribute");
    const int scale = 7;
    check(H5Awrite(attribute, H5T_NATIVE_INT, &scale), "attribute");
  }
  c.dataset("never_written", H5T_STD_I32LE, {8}, p);
  BOOST_TEST(c.run().lost());
  BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::skipped));
  BOOST_TEST(c.entry("/x").reason.find("40000") != std::string::npos);
  BOOST_TEST(!c.has("x/zarr.json"));
  BOOST_TEST(c.has("never_written/zarr.json"));
  // its attributes are not lost with it
  const auto kept = c.meta("")["attributes"]["zarrbits"]["skipped"]["x"];
  BOOST_TEST(kept["attributes"]["scale"] == 7);
  BOOST_TEST(kept["reason"] == c.entry("/x").reason);
  BOOST_TEST((c.entry("/x", "scale").outcome == zarrbits::outcome::skipped));
  BOOST_TEST(c.entry("/x", "scale").reason.find("zarrbits.skipped") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(chunks_of_our_packbits_filter_are_copied_or_decoded) {
  const golden_12_bit g;
  for (const auto codec : {zarrbits::array_codec::automatic, zarrbits::array_codec::packbits, zarrbits::array_codec::bytes}) {
    const bool keep = codec != zarrbits::array_codec::bytes;
    conversion c;
    { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.encoded); }
    { write_chunk(packed(c, "big", H5T_STD_U16BE, 34, {12, 0, 0, 0}), g.encoded); }
    { write_chunk(packed(c, "masked", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.decoded, 1); }
    zarrbits::convert_options o;
    o.codec = codec;
    BOOST_TEST(!c.run(o).lost());
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

BOOST_AUTO_TEST_CASE(a_raw_chunk_that_does_not_fit_in_12_bits_makes_the_array_full_width) {
  const golden_12_bit g;
  conversion c;
  std::string wide = g.decoded;
  wide[5] = static_cast<char>(0xFF);
  { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), wide, 1); }
  zarrbits::convert_options o;
  o.codec = zarrbits::array_codec::packbits;
  BOOST_TEST(!c.run(o).lost());
  BOOST_TEST((c.chunk("x/c/0") == wide));
  BOOST_TEST(c.meta("x")["codecs"][0]["name"] == "bytes");
}

BOOST_AUTO_TEST_CASE(packed_chunks_of_a_wrong_length_are_damage) {
  const golden_12_bit g;
  for (const auto codec : {zarrbits::array_codec::bytes, zarrbits::array_codec::packbits}) {
    conversion c;
    { write_chunk(packed(c, "x", H5T_STD_U16LE, 34, {12, 0, 0, 0}), g.encoded + "x"); }
    zarrbits::convert_options o;
    o.codec = codec;
    BOOST_CHECK_THROW(c.run(o), zarrbits::convert_error);
  }
}

BOOST_AUTO_TEST_CASE(integers_are_packed_on_request_and_what_does_not_fit_is_an_error) {
  const golden_12_bit g;
  std::vector<std::uint16_t> v(34);
  std::memcpy(v.data(), g.decoded.data(), g.decoded.size());
  zarrbits::convert_options o;
  o.codec = zarrbits::array_codec::packbits;
  o.bits = 12;
  {
    conversion c;
    c.dataset("x", H5T_STD_U16LE, {34}, v);
    BOOST_TEST(!c.run(o).lost());
    BOOST_TEST((c.chunk("x/c/0") == g.encoded));
  }
  v[9] = 0x1234;
  conversion c;
  c.dataset("x", H5T_STD_U16LE, {34}, v);
  BOOST_CHECK_EXCEPTION(c.run(o), zarrbits::convert_error, [](const zarrbits::convert_error& e) {
    const std::string s = e.what();
    return s.find("\"/x\"") != std::string::npos && s.find("index [9]") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(deflate_over_packbits_needs_no_plugin) {
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
  BOOST_TEST(!c.run().lost());
  BOOST_TEST((elements(c.meta("x")["codecs"], c.chunk("x/c/0"), g.decoded.size()) == g.decoded));
}

BOOST_AUTO_TEST_CASE(chunks_of_our_bytes_filter_are_copied_under_their_byte_order) {
  conversion c;
  const handle p = chunked({4});
  const unsigned big = 1;
  check(H5Pset_filter(p, ZARRBITS_CONVERT_BYTES_ID, H5Z_FLAG_OPTIONAL, 1, &big), "filter");
  const std::string payload("\0\1\0\2\0\3\0\4", 8);
  { write_chunk(c.dataset("x", H5T_STD_U16LE, {4}, p), payload); }
  BOOST_TEST(!c.run().lost());
  BOOST_TEST((c.chunk("x/c/0") == payload));
  BOOST_TEST(c.meta("x")["codecs"][0]["configuration"]["endian"] == "big");
}

BOOST_AUTO_TEST_CASE(lz4_and_lzf_give_what_was_compressed_by_hand) {
  using namespace zarrbits::conversion;
  const std::string plain = "abcabcabcabcabcabc!!!!!";
  const auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); };
  const auto text = [](const buffer& b) { return std::string(reinterpret_cast<const char*>(b.data()), b.size()); };
  // total, block size, then one block: 3 literals and a copy of 15 from 3 back, 5 literals
  const std::string block(
      "\x3B"
      "abc\3\0\x50!!!!!",
      12);
  const std::string lz4 = std::string("\0\0\0\0\0\0\0\x17\0\0\0\x17\0\0\0\x0C", 16) + block;
  BOOST_TEST(text(undo_lz4(bytes(lz4), plain.size())) == plain);
  const std::string stored = std::string("\0\0\0\0\0\0\0\x17\0\0\0\x17\0\0\0\x17", 16) + plain;
  BOOST_TEST(text(undo_lz4(bytes(stored), plain.size())) == plain);
  // 3 literals; a copy of 7 + 6 + 2 from 3 back; 5 literals
  const std::string lzf("\2abc\xE0\6\2\4!!!!!", 13);
  BOOST_TEST(text(undo_lzf(bytes(lzf), plain.size())) == plain);
}

BOOST_AUTO_TEST_CASE(a_blosc_buffer_gives_what_went_in) {
  using namespace zarrbits::conversion;
  buffer plain(10000);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i * i >> 4);
  const buffer stored = blosc_stored(plain, 4);
  check_blosc(stored, plain.size());
  BOOST_TEST((undo_blosc(stored, plain.size()) == plain));
  BOOST_CHECK_THROW(undo_blosc(stored, plain.size() - 1), damaged_chunk);
  BOOST_CHECK_THROW(check_blosc(stored, plain.size() + 1), damaged_chunk);
  BOOST_CHECK_THROW(undo_blosc(std::span(stored).first(stored.size() - 1), plain.size()), damaged_chunk);
}

BOOST_AUTO_TEST_CASE(hostile_compressed_chunks_are_refused_and_nothing_else) {
  using namespace zarrbits::conversion;
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
    if (blosc.size() > 16) {  // a header that is right, before what is not
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
      } catch (const damaged_chunk&) {
        ++refused;
      }
    };
    attempt([&] { undo_lzf(in, 64); });
    attempt([&] { undo_lz4(in, 64); });
    attempt([&] { undo_bitshuffle(values, in, 64); });
    attempt([&] { undo_zstd(in, 64); });
    attempt([&] { check_blosc(in, 64); });
    attempt([&] { undo_blosc(blosc, 64); });
    attempt([&] {
      buffer plain;
      zlib_to_gzip(in, 64, plain);
    });
  }
  BOOST_TEST(refused > 50000U);
}
