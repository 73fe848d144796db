// SPDX-License-Identifier: BSL-1.0
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
  BOOST_TEST(!c.run().has_losses());
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
      BOOST_TEST(!c.run().has_losses());
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
  BOOST_TEST(!c.run().has_losses());
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
      BOOST_TEST(!c.run({.encoding = {.profile = zarrbits::profile::native}}).has_losses());
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
        BOOST_TEST(!c.run({.encoding = {.compress = how}}).has_losses());
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
    BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.compress = how}}), zarrbits::error);
  }
  BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.profile = zarrbits::profile::native, .compress = compression{}}}),
                    zarrbits::error);
  BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.chunk = {0}}}), zarrbits::error);
  BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.chunk = std::vector<std::uint64_t>(33, 1)}}), zarrbits::error);
  BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.shard = zarrbits::shard_size{.shape = {1, 0}}}}), zarrbits::error);
  BOOST_CHECK_THROW(zarrbits::check_options({.encoding = {.shard = zarrbits::shard_size{.bytes = 1, .shape = {1}}}}),
                    zarrbits::error);
  BOOST_CHECK_NO_THROW(zarrbits::check_options(
      {.encoding = {.chunk = std::vector<std::uint64_t>(32, 1), .shard = zarrbits::shard_size{.bytes = 1}}}));
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
  BOOST_TEST(!c.run().has_losses());
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
      BOOST_TEST(c.run({.execution = {.keep_going = true}}).has_losses());
      BOOST_TEST(c.entry("/x").lossy);
      BOOST_TEST((c.entry("/x").lost_chunks == std::vector<std::vector<std::uint64_t>>{{1}}));
      BOOST_TEST(c.has("x/c/0"));
      BOOST_TEST(!c.has("x/c/1"));
    } else {
      BOOST_CHECK_EXCEPTION(c.run(), zarrbits::error, [](const zarrbits::error& e) {
        const std::string s = e.what();
        return s.find("\"/x\"") != std::string::npos && s.find("[1]") != std::string::npos;
      });
      BOOST_TEST(!c.has("zarr.json"));
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
  BOOST_TEST(c.run().has_losses());
  BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::skipped));
  BOOST_TEST(c.entry("/x").reason.find("40000") != std::string::npos);
  BOOST_TEST(!c.has("x/zarr.json"));
  BOOST_TEST(c.has("never_written/zarr.json"));
  // its attributes are not lost with it
  const auto kept = c.notes("")["skipped"]["x"];
  BOOST_TEST(kept["attributes"]["scale"] == 7);
  BOOST_TEST(kept["reason"] == c.entry("/x").reason);
  BOOST_TEST((c.entry("/x", "scale").outcome == zarrbits::outcome::skipped));
  BOOST_TEST(c.entry("/x", "scale").reason.find("zarrbits.skipped") != std::string::npos);
}
