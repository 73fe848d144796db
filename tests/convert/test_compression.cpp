// SPDX-License-Identifier: BSL-1.0
//
// What compressed chunks become where nothing is asked for: which codec, and how large.
//
#include "tests/convert/support.hpp"

#include "compressors/blosc.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>

using namespace support;

namespace {

struct set_filter {
  H5Z_filter_t id;
  std::vector<unsigned> values;
};

handle with_filters(hsize_t chunk, const std::vector<set_filter>& filters) {
  handle p = chunked({chunk});
  for (const set_filter& f : filters)
    check(H5Pset_filter(p, f.id, H5Z_FLAG_OPTIONAL, f.values.size(), f.values.data()), "filter");
  return p;
}

constexpr H5Z_filter_t lzo = 305, bzip2 = 307, lzf = 32000, blosc = 32001, lz4 = 32004, bitshuffle = 32008, zstd = 32015;

// The file of a writer whose compressor was skipped. Made before anything is converted: libhdf5 is lent the decoders that it
// lacks once a file needs them, and refuses to create a dataset with a filter that can only decode.
struct uncompressed_lz4 {
  uncompressed_lz4() {
    std::mt19937 random(1);
    for (std::int32_t& x : values) x = static_cast<std::int32_t>(random());
    const std::string chunk = bytes_of(values);
    const handle d = c.dataset("x", H5T_STD_I32LE, {values.size()}, with_filters(values.size(), {{lz4, {}}}));
    const hsize_t first[] = {0};
    check(H5Dwrite_chunk(d, H5P_DEFAULT, 1, first, chunk.size(), chunk.data()), "write a chunk");
    made = this;
  }
  ~uncompressed_lz4() { made = nullptr; }
  conversion c;
  std::vector<std::int32_t> values = std::vector<std::int32_t>(50000);
  static inline uncompressed_lz4* made = nullptr;
};
BOOST_TEST_GLOBAL_FIXTURE(uncompressed_lz4);

// Times with gaps: what zlib finds more in than the lowest level of zstd.
std::vector<std::int64_t> times(std::size_t n) {
  std::mt19937 random(1);
  std::vector<std::int64_t> v(n);
  for (std::size_t i = 1; i < n; ++i) v[i] = v[i - 1] + 3600 * (random() % 50 == 0 ? 2 : 1);
  return v;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_fast_stays_fast_and_the_rest_becomes_zstd) {
  const set_filter shuffle{H5Z_FILTER_SHUFFLE, {4}}, deflate{H5Z_FILTER_DEFLATE, {4}};
  const auto unknown = [](unsigned compression) { return set_filter{bitshuffle, {0, 3, 4, 0, compression}}; };
  const struct {
    std::vector<set_filter> filters;
    const char *inside, *shuffle;
    int level;
  } rows[] = {{{shuffle, deflate}, "zstd", "shuffle", 1},
              {{deflate, deflate}, "zstd", "shuffle", 1},
              {{{bzip2, {9}}}, "zstd", "shuffle", 1},
              {{shuffle, {zstd, {3}}}, "zstd", "shuffle", 1},
              {{unknown(0)}, "zstd", "bitshuffle", 1},
              {{unknown(3)}, "zstd", "bitshuffle", 1},
              {{unknown(2)}, "lz4", "bitshuffle", 9},
              {{{lz4, {}}}, "lz4", "noshuffle", 9},
              {{shuffle, {lz4, {}}}, "lz4", "shuffle", 9},
              {{{lzf, {4, 261, 400}}}, "lz4", "noshuffle", 9},
              {{shuffle, {lzo, {}}}, "lz4", "shuffle", 9},
              {{{blosc, {2, 2, 4, 400, 5, 2, 1}}, {H5Z_FILTER_FLETCHER32, {}}}, "lz4", "bitshuffle", 9},
              {{{blosc, {2, 2, 4, 400, 5, 1, 5}}, {H5Z_FILTER_FLETCHER32, {}}}, "zstd", "shuffle", 1}};
  conversion c;
  std::map<std::string, json> expected;  // in one file: libhdf5 is lent the decoders once one is read, and writes none with them
  for (const auto& row : rows) {
    const std::string name = "x" + std::to_string(expected.size());
    c.dataset(name, H5T_STD_I32LE, {1000}, with_filters(100, row.filters));
    expected["/" + name] = {
        {"typesize", 4}, {"cname", row.inside}, {"clevel", row.level}, {"shuffle", row.shuffle}, {"blocksize", 0}};
  }
  c.close();
  zarrbits::convert_options options;
  options.source.name = c.source();
  options.target.name = c.store();
  const json plan = json::parse(zarrbits::plan(options).json());
  BOOST_TEST(plan["datasets"].size() == expected.size());
  for (const json& d : plan["datasets"]) {
    BOOST_TEST_CONTEXT(d.dump()) {
      const json wanted = expected.at(d["path"].get<std::string>());
      BOOST_TEST(d["codecs"][1] == (json{{"name", "blosc"}, {"configuration", wanted}}));
      const std::string how = d["how"], words = " as blosc:" + wanted["cname"].get<std::string>() + ":" +
                                                wanted["clevel"].dump() + ":" + wanted["shuffle"].get<std::string>();
      BOOST_TEST(how.find(words) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_shuffle_of_single_bytes_is_none_and_the_deflate_stream_is_kept) {
  std::vector<std::uint8_t> v(5000);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint8_t>(i / 700);
  for (const bool checked : {false, true}) {
    conversion c;
    std::vector<set_filter> filters = {{H5Z_FILTER_SHUFFLE, {}}, {H5Z_FILTER_DEFLATE, {4}}};
    if (checked) filters.push_back({H5Z_FILTER_FLETCHER32, {}});
    { c.dataset("x", H5T_STD_U8LE, {5000}, v, with_filters(2500, filters)); }
    BOOST_TEST(!c.run().has_losses());
    BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::rewrapped));
    BOOST_TEST((gunzip(c.chunk("x/c/1"), 2500) == bytes_of(v).substr(2500)));
  }
}

// Each chunk for itself: in the first zstd wins, in the second zlib.
BOOST_AUTO_TEST_CASE(a_shuffled_deflate_stream_is_kept_where_zstd_is_larger) {
  std::vector<std::int64_t> v = times(20000);
  std::vector<std::int64_t> both(20000, 7);
  both.insert(both.end(), v.begin(), v.end());
  for (const bool checked : {false, true}) {
    conversion c;
    std::vector<set_filter> filters = {{H5Z_FILTER_SHUFFLE, {}}, {H5Z_FILTER_DEFLATE, {9}}};
    if (checked) filters.push_back({H5Z_FILTER_FLETCHER32, {}});
    std::string stream;
    {
      const handle d = c.dataset("x", H5T_STD_I64LE, {40000}, both, with_filters(20000, filters));
      check(H5Fflush(c.file(), H5F_SCOPE_LOCAL), "flush");
      const hsize_t at[] = {20000};
      hsize_t size = 0;
      std::uint32_t mask = 0;
      check(H5Dget_chunk_storage_size(d, at, &size), "size");
      stream.resize(size);
      check(H5Dread_chunk(d, H5P_DEFAULT, at, &mask, stream.data()), "read a chunk");
      if (checked) stream.resize(size - 4);
    }
    const std::size_t low = zarrbits::compressors::blosc_buffer(std::as_bytes(std::span(v)), 8, 1, 1, "zstd").size();
    BOOST_TEST_REQUIRE(low > stream.size() + 24);  // or this tests nothing
    BOOST_TEST(!c.run().has_losses());
    const zarrbits::chunk_counts counts = c.entry("/x").chunks;
    BOOST_TEST(counts.recoded == 1u);
    BOOST_TEST(counts.rewrapped == 1u);
    const std::string first = c.chunk("x/c/0"), second = c.chunk("x/c/1");
    BOOST_TEST(second.size() == stream.size() + 24);
    BOOST_TEST(second.substr(24) == stream);
    BOOST_TEST((elements(c.meta("x")["codecs"], first, 8 * v.size()) == bytes_of(both).substr(0, 8 * v.size())));
    BOOST_TEST((elements(c.meta("x")["codecs"], second, 8 * v.size()) == bytes_of(v)));
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_that_gets_larger_is_compressed_again_at_a_higher_level) {
  const auto v = times(20000);
  conversion c;
  hsize_t stored = 0;
  {
    const handle d =
        c.dataset("x", H5T_STD_I64LE, {20000}, v,
                  with_filters(20000, {{H5Z_FILTER_SHUFFLE, {}}, {H5Z_FILTER_DEFLATE, {9}}, {H5Z_FILTER_DEFLATE, {9}}}));
    check(H5Fflush(c.file(), H5F_SCOPE_LOCAL), "flush");
    stored = H5Dget_storage_size(d);
  }
  const std::size_t low = zarrbits::compressors::blosc_buffer(std::as_bytes(std::span(v)), 8, 1, 1, "zstd").size();
  BOOST_TEST_REQUIRE(low > stored);  // or this tests nothing
  BOOST_TEST(!c.run().has_losses());
  const std::string chunk = c.chunk("x/c/0");
  BOOST_TEST(chunk.size() < low);
  BOOST_TEST((elements(c.meta("x")["codecs"], chunk, 8 * v.size()) == bytes_of(v)));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_compressed_is_stored_with_a_header_alone) {
  const std::vector<std::int32_t>& v = uncompressed_lz4::made->values;
  const std::string plain = bytes_of(v);
  conversion deflate;
  {
    const handle d = deflate.dataset("x", H5T_STD_I32LE, {v.size()},
                                     with_filters(v.size(), {{H5Z_FILTER_SHUFFLE, {}}, {H5Z_FILTER_DEFLATE, {4}}}));
    const hsize_t first[] = {0};  // none of the filters was applied
    check(H5Dwrite_chunk(d, H5P_DEFAULT, 3, first, plain.size(), plain.data()), "write a chunk");
  }
  for (conversion* c : {&deflate, &uncompressed_lz4::made->c}) {
    BOOST_TEST(!c->run().has_losses());
    BOOST_TEST(c->chunk("x/c/0").size() <= plain.size() + 16);
    BOOST_TEST((elements(c->meta("x")["codecs"], c->chunk("x/c/0"), plain.size()) == plain));
  }
}
