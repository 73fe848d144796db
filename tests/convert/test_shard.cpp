// SPDX-License-Identifier: BSL-1.0
#include "io/files.hpp"
#include "tests/convert/support.hpp"
#include "zarr/write/concurrent_shard.hpp"
#include "zarr/write/shard.hpp"
#include "zarr/write/store_writer.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <fcntl.h>
#include <thread>

using namespace support;
using zarrbits::io::file_descriptor;
using zarrbits::io::read_error;
using zarrbits::zarr::concurrent_shard;
using zarrbits::zarr::make_store_writer;
using zarrbits::zarr::shard_writer;

namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

file_descriptor source_of(const folder& f, const std::string& content) {
  std::ofstream(f / "source") << content;
  return file_descriptor(::open((f / "source").c_str(), O_RDONLY));
}

constexpr std::array<std::uint64_t, 1> one_of_2{2};

// What zarr-python 3.4 writes for uint8 data of 4 chunks of 2, "ab", nothing, nothing, "cd", in one shard.
std::string by_zarr_python() {
  const std::string hex =
      "6162636400000000000000000200000000000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff020000000000000002"
      "00000000000000dc6c85ef";
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_shard_is_byte_for_byte_what_zarr_python_writes) {
  folder f;
  const file_descriptor source = source_of(f, "..cd");
  const auto out = make_store_writer(f / "out", {});
  shard_writer shard(*out, "a/c/0", 4);
  BOOST_TEST(shard.empty());
  shard.add(0, bytes("ab"));
  shard.add_range(3, source.get(), 2, one_of_2);
  BOOST_TEST(!shard.empty());
  BOOST_TEST(!fs::exists(f / "out/a/c/0"));
  BOOST_TEST(shard.commit() == 72U);
  BOOST_TEST((read_file(f / "out/a/c/0") == by_zarr_python()));
}

BOOST_AUTO_TEST_CASE(a_shard_without_a_chunk_is_no_object) {
  folder f;
  const auto out = make_store_writer(f / "out", {});
  BOOST_TEST(shard_writer(*out, "c/0", 4).commit() == 0U);
  BOOST_TEST(out->list("").size() == 1U);  // the folder of the unfinished
  BOOST_TEST(out->objects() == 0U);
}

BOOST_AUTO_TEST_CASE(a_chunk_that_the_source_does_not_have_is_missing_and_the_shard_goes_on) {
  folder f;
  const file_descriptor source = source_of(f, "cd");
  const auto out = make_store_writer(f / "out", {});
  shard_writer shard(*out, "c/0", 4);
  shard.add(0, bytes("ab"));
  BOOST_CHECK_THROW((shard.add_range(1, source.get(), 1, one_of_2)), read_error);
  shard.add_range(3, source.get(), 0, one_of_2);
  shard.commit();
  BOOST_TEST((read_file(f / "out/c/0") == by_zarr_python()));
}

BOOST_AUTO_TEST_CASE(chunks_that_follow_each_other_in_the_file_are_one_range) {
  folder f;
  const file_descriptor source = source_of(f, ".abbccc");
  const auto out = make_store_writer(f / "out", {});
  shard_writer shard(*out, "c/0", 4);
  shard.add_range(1, source.get(), 1, std::array<std::uint64_t, 3>{1, 2, 3});
  BOOST_CHECK_THROW((shard.add_range(3, source.get(), 1, std::array<std::uint64_t, 2>{1, 2})), std::logic_error);
  shard.commit();
  const std::string made = read_file(f / "out/c/0");
  BOOST_TEST(made.substr(0, 6) == "abbccc");
  const std::array<std::uint64_t, 8> index{~0ULL, ~0ULL, 0, 1, 1, 2, 3, 3};
  for (std::size_t i = 0; i < index.size(); ++i) {
    std::uint64_t entry = 0;
    for (unsigned b = 8; b-- > 0;) entry = entry << 8 | static_cast<unsigned char>(made.at(6 + 8 * i + b));
    BOOST_TEST(entry == index[i], "entry " << i << " is " << entry);
  }
}

BOOST_AUTO_TEST_CASE(large_ranges_are_aligned_as_in_their_file) {
  folder f;
  const std::string chunk(shard_writer::worth_a_gap, 'x'), small(shard_writer::worth_a_gap - 1, 'y');
  const file_descriptor source = source_of(f, std::string(5000, '.') + chunk + chunk + small);
  const auto out = make_store_writer(f / "out", {});
  shard_writer shard(*out, "c/0", 4);
  shard.add(0, bytes("ab"));
  const std::array<std::uint64_t, 1> size{chunk.size()}, less{small.size()};
  shard.add_range(1, source.get(), 5000, size);
  shard.add_range(2, source.get(), 5000 + chunk.size(), size);
  shard.add_range(3, source.get(), 5000, less);  // another place in the file
  BOOST_TEST(shard.overhead() == 902U + 4 * 16 + 4);
  const std::uint64_t all = 904 + 2 * chunk.size() + small.size();
  BOOST_TEST(shard.commit() == all + 4 * 16 + 4);
  BOOST_TEST(
      (read_file(f / "out/c/0").substr(0, all) == "ab" + std::string(902, '\0') + chunk + chunk + chunk.substr(0, small.size())));
}

BOOST_AUTO_TEST_CASE(chunks_come_in_rising_order) {
  folder f;
  const auto out = make_store_writer(f / "out", {});
  shard_writer shard(*out, "c/0", 2);
  shard.add(1, bytes("x"));
  BOOST_CHECK_THROW(shard.add(1, bytes("x")), std::logic_error);
  BOOST_CHECK_THROW(shard.add(2, bytes("x")), std::logic_error);
}

BOOST_AUTO_TEST_CASE(turns_of_threads_are_written_in_order) {
  folder f;
  const auto out = make_store_writer(f / "out", {});
  concurrent_shard shard(*out, "a/c/0", 4);
  const auto first = shard.next_turn(), second = shard.next_turn();
  std::thread early([&] { BOOST_TEST(shard.run_turn(second, [](shard_writer& to) { to.add(3, bytes("cd")); }) == 0U); });
  BOOST_TEST(shard.run_turn(first, [](shard_writer& to) { to.add(0, bytes("ab")); }) == 0U);
  early.join();
  BOOST_TEST(!fs::exists(f / "out/a/c/0"));
  BOOST_TEST(shard.close() == 68U);  // of the index
  BOOST_TEST((read_file(f / "out/a/c/0") == by_zarr_python()));
}

BOOST_AUTO_TEST_CASE(the_last_turn_may_come_after_the_shard_is_closed) {
  folder f;
  const auto out = make_store_writer(f / "out", {});
  concurrent_shard shard(*out, "a/c/0", 4);
  const auto turn = shard.next_turn();
  BOOST_TEST(shard.close() == 0U);
  BOOST_TEST(shard.run_turn(turn, [](shard_writer& to) { to.add(0, bytes("ab")), to.add(3, bytes("cd")); }) == 68U);
  BOOST_TEST((read_file(f / "out/a/c/0") == by_zarr_python()));
}

BOOST_AUTO_TEST_CASE(a_turn_that_fails_gives_the_shard_up) {
  folder f;
  const auto out = make_store_writer(f / "out", {});
  concurrent_shard shard(*out, "a/c/0", 4);
  const auto first = shard.next_turn(), second = shard.next_turn();
  BOOST_CHECK_THROW(shard.run_turn(first, [](shard_writer&) { throw std::runtime_error("no"); }), std::runtime_error);
  BOOST_TEST(shard.run_turn(second, [](shard_writer&) { BOOST_ERROR("nothing more is written"); }) == 0U);
  BOOST_TEST(shard.close() == 0U);
  BOOST_TEST(!fs::exists(f / "out/a/c/0"));
}
