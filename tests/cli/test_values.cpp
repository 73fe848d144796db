// SPDX-License-Identifier: BSL-1.0
//
// What the options of convert say becomes the structs of zarrbits/convert.hpp; what says nothing is refused with a sentence.
//
#include "command/command_line.hpp"
#include "command/option_parsers.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace zarrbits;
using namespace zarrbits::command;

BOOST_AUTO_TEST_CASE(compressions) {
  struct asked {
    const char* text;
    compression meant;
  };
  using enum blosc_compressor;
  for (const auto& [text, meant] :
       std::vector<asked>{{"none", {}},
                          {"gzip", {compressor::gzip}},
                          {"gzip:9", {compressor::gzip, 9}},
                          {"zstd:19", {compressor::zstd, 19}},
                          {"blosc", {compressor::blosc}},
                          {"blosc:lz4", {compressor::blosc, 0, lz4}},
                          {"blosc:lz4hc:1", {compressor::blosc, 1, lz4hc}},
                          {"blosc:zlib:3:bitshuffle", {compressor::blosc, 3, zlib, blosc_shuffle::bits}},
                          {"blosc:zstd:9:noshuffle", {compressor::blosc, 9, zstd, blosc_shuffle::none}},
                          {"blosc:zstd:9:shuffle", {compressor::blosc, 9, zstd, blosc_shuffle::bytes}}}) {
    BOOST_TEST_CONTEXT(text) {
      const auto c = parse_compression(text);
      BOOST_REQUIRE(c.has_value());
      BOOST_TEST((c->kind == meant.kind && c->level == meant.level && c->inside == meant.inside && c->shuffle == meant.shuffle));
    }
  }
  BOOST_TEST(!parse_compression("").has_value());
  for (const char* text : {"zip", "gzip:0", "gzip:10", "gzip:6:1", "gzip:", "zstd:x", "zstd:23", "blosc:snappy", "blosc:blosclz",
                           "blosc:zstd:5:shuffle:1", "blosc:zstd:5:both", "blosc:zstd:10", "none:1"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_compression(text), usage_error); }
  }
}

BOOST_AUTO_TEST_CASE(sizes_and_shapes) {
  BOOST_TEST(parse_bytes("--memory", "1048576") == 1048576U);
  BOOST_TEST(parse_bytes("--memory", "64kiB") == 65536U);
  BOOST_TEST(parse_bytes("--memory", "512M") == 536870912U);
  BOOST_TEST(parse_bytes("--memory", "2G") == 2147483648U);
  BOOST_TEST(parse_shard("--shard", "64M")->bytes == 67108864U);
  BOOST_TEST(!parse_shard("--shard", "").has_value());
  BOOST_TEST((parse_shard("--shard", "none")->bytes == 0U && parse_shard("--shard", "none")->shape.empty()));
  BOOST_TEST((parse_shard("--shard", "1000,2000")->shape == std::vector<std::uint64_t>{1000, 2000}));
  BOOST_TEST((parse_shape("--chunk", "100,") == std::vector<std::uint64_t>{100}));
  BOOST_TEST(parse_shape("--chunk", "").empty());
  for (const char* text : {"x", "1,x", "0", "1,0", "-1", "99999999999999999999", "9999999999999G", ",1", "1X"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_shard("--shard", text), usage_error); }
  }
  BOOST_TEST((parse_shape("--chunk", "100") == std::vector<std::uint64_t>{100}));
  for (const char* text : {"0", "0,", "1,0", "64M", "x", "-1"}) {
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK_THROW(parse_shape("--chunk", text), usage_error); }
  }
}

BOOST_AUTO_TEST_CASE(words) {
  BOOST_TEST((parse_profile("native") == profile::native));
  BOOST_TEST(!parse_profile("").has_value());
  BOOST_CHECK_THROW(parse_profile("best"), usage_error);
  BOOST_TEST((parse_array_codec("") == array_codec::automatic));
  BOOST_TEST((parse_array_codec("packbits") == array_codec::packbits));
  BOOST_CHECK_THROW(parse_array_codec("gzip"), usage_error);
  BOOST_TEST((parse_checksum("crc32c") == checksum::crc32c));
  BOOST_CHECK_THROW(parse_checksum("md5"), usage_error);
}

BOOST_AUTO_TEST_CASE(sentences_of_the_library_get_the_flags_of_the_command) {
  BOOST_TEST(with_flags("\"x\" exists; replace it with `overwrite`") == "\"x\" exists; replace it with --overwrite");
  BOOST_TEST(with_flags("`external` FOLDER, `allow_expansion` or `partition`") ==
             "--external FOLDER, --allow-expansion or --partition");
  for (const char* other : {"", "`", "``", "`overwrite", "`Overwrite`", "overwrite`", "a `name` of a stranger", "`\xFF`"})
    BOOST_TEST(with_flags(other) == other);
}
