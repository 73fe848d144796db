// SPDX-License-Identifier: BSL-1.0
//
// What the processes that share the work of references leave for the one that puts it together. Anybody may have written it.
//
#define BOOST_TEST_MODULE convert_reference_log
#include <boost/test/unit_test.hpp>

#include "zarr/write/reference_log.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <utility>
#include <vector>

using namespace zarrbits::io;
using namespace zarrbits::zarr;

namespace {

const std::string a = "file:///data/a.h5", b = "s3://bucket/b.h5";
const file_state of_a{.regular = true, .size = 1000, .seconds = -5, .nanoseconds = 7, .etag = ""};
const file_state of_b{.regular = true, .size = 1ULL << 40, .seconds = 0, .nanoseconds = 0, .etag = "\"e\""};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

reference_log read(const std::string& text) {
  file_descriptor fd(::memfd_create("log", MFD_CLOEXEC));
  BOOST_REQUIRE(write_all(fd.get(), bytes_of(text)) == 0);
  return reference_log(std::move(fd));
}

// Two whole units: each has a range, and bytes of its own.
std::string two_units() {
  reference_log_writer log;
  log.range("x/c/0", a, of_a, 10, 990);
  log.bytes("x/c/1", bytes_of(std::string(100'000, 'u')));
  std::string text;
  text += log.take();  // in the middle of a unit
  log.range("x/c/2", b, of_b, (1ULL << 40) - 5, 5);
  log.end({3, 0});
  log.range("y/c/0", a, of_a, 0, 0);
  log.bytes("y/c/1", bytes_of("abc"));
  log.end({3, 1});
  return text + log.take();
}

// A unit after a whole one, of one call.
template <class Call>
std::size_t units_with(const Call& call) {
  reference_log_writer log;
  log.bytes("good/c/0", bytes_of("1"));
  log.end({0, 0});
  call(log);
  log.end({0, 1});
  return read(log.take()).units().size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_log_reads_as_it_was_written) {
  const reference_log log = read(two_units());
  BOOST_REQUIRE(log.units().size() == 2U);
  const auto& first = log.units().at({3, 0});
  BOOST_REQUIRE(first.size() == 3U);
  BOOST_TEST(first[0].key == "x/c/0");
  BOOST_TEST(log.files().at(*first[0].file).url == a);
  BOOST_TEST((*log.files().at(*first[0].file).state == of_a));
  BOOST_TEST(first[0].offset == 10U);
  BOOST_TEST(first[0].size == 990U);
  BOOST_TEST(!first[1].file);
  BOOST_TEST((log.bytes(first[1]) == std::vector<std::byte>(100'000, std::byte{'u'})));
  BOOST_TEST((*log.files().at(*first[2].file).state == of_b));
  const auto& second = log.units().at({3, 1});
  BOOST_TEST(*second.at(0).file == *first[0].file);
  BOOST_TEST(second.at(1).size == 3U);
  BOOST_TEST((log.bytes(second.at(1)).at(2) == std::byte{'c'}));
}

BOOST_AUTO_TEST_CASE(wherever_it_is_cut_off_whole_units_count) {
  const std::string all = two_units();
  std::size_t whole = all.size();
  for (std::size_t n = all.size(); n-- > 0; n -= n > 200 && n + 200 < all.size() ? 199U : 0U) {
    const std::size_t units = read(all.substr(0, n)).units().size();
    BOOST_TEST(units < 2U);
    if (units == 0) whole = std::min(whole, n);
  }
  BOOST_TEST(whole < all.size());
}

// One bit in a unit, and it does not count, nor what is after it.
BOOST_AUTO_TEST_CASE(a_changed_bit_is_noticed) {
  const std::string all = two_units();
  std::vector<std::size_t> places;  // all of the records, and some of a long content
  for (std::size_t at = 0; at < all.size(); ++at) {
    const bool record = at < 150 || at + 400 > all.size();
    if (record || at % 997 == 0) places.push_back(at);
  }
  for (const std::size_t at : places) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = all;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      BOOST_TEST(read(changed).units().size() < 2U, "byte " << at);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_no_process_writes_does_not_count) {
  BOOST_TEST(units_with([](auto& log) { log.range("c/0", a, of_a, 0, 1000); }) == 2U);
  for (const char* key : {"../x", "/x", "x//y", "", ".", "zarr.json", "x/zarr.json", ".zarrbits-unfinished/plan"}) {
    BOOST_TEST(units_with([&](auto& log) { log.bytes(key, bytes_of("1")); }) == 1U, key);
    BOOST_TEST(units_with([&](auto& log) { log.range(key, a, of_a, 0, 1); }) == 1U, key);
  }
  BOOST_TEST(units_with([](auto& log) { log.bytes(std::string(70'000, 'k'), bytes_of("1")); }) == 1U);
  BOOST_TEST(units_with([](auto& log) { log.range("c/0", a, of_a, 1, 1000); }) == 1U);
  BOOST_TEST(units_with([](auto& log) { log.range("c/0", a, of_a, UINT64_MAX, 2); }) == 1U);
  BOOST_TEST(units_with([](auto& log) { log.range("c/0", a, of_a, 2, UINT64_MAX); }) == 1U);
  for (const char* url : {"ftp://host/a", "/etc/passwd", "", "data:text"})
    BOOST_TEST(units_with([&](auto& log) { log.range("c/0", url, of_a, 0, 1); }) == 1U, url);
  BOOST_TEST(read("zarrbits references 2\n").units().empty());
  BOOST_TEST(read("").units().empty());
}

// The first counts, as there is no other.
BOOST_AUTO_TEST_CASE(a_unit_that_is_there_twice) {
  reference_log_writer log;
  for (const char* content : {"first", "again"}) {
    log.bytes("c/0", bytes_of(content));
    log.end({0, 0});
  }
  const reference_log made = read(log.take());
  BOOST_REQUIRE(made.units().size() == 1U);
  BOOST_TEST((made.bytes(made.units().at({0, 0}).at(0)).front() == std::byte{'f'}));
}
