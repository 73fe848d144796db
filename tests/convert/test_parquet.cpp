// SPDX-License-Identifier: BSL-1.0
//
// Parquet, as references are stored in: a file of another writer (tests/golden/references.parquet, made by pyarrow 26.0.1), and
// what is written here. That other readers take the latter, tests/interop/test_references.py shows.
//
#define BOOST_TEST_MODULE convert_parquet
#include <boost/test/unit_test.hpp>

#include "io/parquet_file.hpp"
#include "io/thrift_compact.hpp"
#include "tests/support/test_data.hpp"
#include "zarr/write/parquet_writer.hpp"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace zarrbits::io;
using namespace zarrbits::zarr;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string golden() {
  std::ifstream in(golden_file("references.parquet"), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

// Row i: every seventh has a content of three bytes (one has nothing), the others a range.
BOOST_AUTO_TEST_CASE(a_file_of_another_writer_reads_as_it_was_written) {
  parquet_file file(bytes_of(golden()), 100);
  BOOST_REQUIRE(file.rows() == 40);
  const auto paths = file.texts("path"), contents = file.texts("raw");
  const auto offsets = file.numbers("offset"), sizes = file.numbers("size");
  for (int i = 0; i < 40; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool range = i % 7 != 3;
    BOOST_TEST(paths[at].has_value() == range);
    if (range) BOOST_TEST(*paths[at] == (i < 15 ? "s3://bucket/a.nc" : "file:///data/b.nc"));
    BOOST_TEST(offsets[at] == (range ? (std::int64_t{1} << 33) + i * i : 0));
    BOOST_TEST(sizes[at] == (range ? 100 + i : 0));
    BOOST_TEST(contents[at].has_value() == (!range && i != 17));
    if (contents[at]) BOOST_TEST(*contents[at] == std::string({static_cast<char>(i), '\0', '\xFF'}));
  }
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_back) {
  const std::size_t n = 3000;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 300; ++i) names.push_back("file:///" + std::to_string(i));
  std::vector<std::optional<std::string_view>> few(n), any(n);
  std::vector<std::int64_t> numbers(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 5 != 0) few[i] = names[i * i % 300];
    if (i % 3 != 0) any[i] = std::string_view(names[i % 300]).substr(i % 8);
    numbers[i] = static_cast<std::int64_t>(i) * -1'000'000'007;
  }
  parquet_writer writer(n);
  writer.add("few", few, parquet_writer::text_kind::dictionary_utf8);
  writer.add("numbers", numbers);
  writer.add("any", any, parquet_writer::text_kind::bytes);
  parquet_file file(bytes_of(writer.finish()), n);
  BOOST_TEST(file.rows() == n);
  BOOST_TEST((file.texts("few") == few));
  BOOST_TEST((file.texts("any") == any));
  BOOST_TEST((file.numbers("numbers") == numbers));
  BOOST_CHECK_THROW(file.numbers("few"), parquet_error);
  BOOST_CHECK_THROW(file.texts("none"), parquet_error);
}

// The bytes of so many groups of numbers are not a number of 64 bits.
BOOST_AUTO_TEST_CASE(a_run_whose_length_overflows_is_refused) {
  for (const unsigned power : {59U, 60U, 62U}) {
    std::string page(4, '\0');  // the dictionary: an empty text
    const auto add = [](std::string& file, int kind, int encoding, int values, const std::string& content) {
      thrift_writer header;
      header.number(1, kind);
      header.number(2, static_cast<int>(content.size()));
      header.number(3, static_cast<int>(content.size()));
      header.begin(kind == parquet::dictionary_page ? 7 : 5);
      header.number(1, values);
      header.number(2, encoding);
      header.end();
      header.end();
      file += header.bytes() + content;
    };
    std::string file(parquet::magic);
    add(file, parquet::dictionary_page, parquet::plain, 1, page);
    const std::size_t first = file.size();
    std::string runs(1, static_cast<char>(32));  // bits of a number
    append_varint(runs, std::uint64_t{1} << power << 1 | 1);
    add(file, parquet::data_page, parquet::rle_dictionary, 3, runs);
    thrift_writer w;
    w.begin_list(2, thrift_writer::type::structure, 2);
    w.begin_element();
    w.number(5, 1);
    w.end();
    w.begin_element();
    w.number(1, parquet::byte_array);
    w.number(3, parquet::required);
    w.text(4, "path");
    w.end();
    w.large_number(3, 3);
    w.begin_list(4, thrift_writer::type::structure, 1);
    w.begin_element();
    w.begin_list(1, thrift_writer::type::structure, 1);
    w.begin_element();
    w.begin(3);
    w.number(4, parquet::uncompressed);
    w.large_number(5, 3);
    w.large_number(9, static_cast<std::int64_t>(first));
    w.large_number(11, 4);
    w.end();
    w.end();
    w.end();
    w.end();
    const std::size_t size = w.bytes().size();
    file += w.bytes();
    for (unsigned i = 0; i < 4; ++i) file += static_cast<char>(size >> (8 * i) & 0xFF);
    file += parquet::magic;
    parquet_file read(bytes_of(file), 10);
    BOOST_CHECK_EXCEPTION(read.texts("path"), parquet_error,
                          [](const parquet_error& e) { return std::string(e.what()) == "a page ends too early"; });
  }
}

BOOST_AUTO_TEST_CASE(what_is_damaged_is_refused) {
  const std::string good = golden();
  for (std::size_t size = 0; size < good.size(); ++size)
    BOOST_CHECK_THROW(parquet_file(bytes_of(good.substr(0, size)), 100), parquet_error);
  BOOST_CHECK_THROW(parquet_file(bytes_of(good), 39), parquet_error);  // more rows than there may be
  // any byte may be another one: all that is asked for comes, or an error does
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char other : {'\0', '\x7F', '\xFF', static_cast<char>(good[at] ^ 1)}) {
      std::string bad = good;
      bad[at] = other;
      try {
        parquet_file file(bytes_of(bad), 100);
        for (const char* name : {"path", "raw"}) BOOST_TEST(file.texts(name).size() == file.rows());
        for (const char* name : {"offset", "size"}) BOOST_TEST(file.numbers(name).size() == file.rows());
      } catch (const parquet_error&) {
      }
    }
  }
}
