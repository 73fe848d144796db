// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/store_support.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

using namespace support;
using namespace store_support;

BOOST_AUTO_TEST_CASE(a_target_that_exists_is_refused_and_stays_as_it_was) {
  folder f;
  fs::create_directory(f / "out");
  std::ofstream(f / "out/precious") << "data";
  BOOST_CHECK_THROW(open(f / "out"), zarrbits::error);
  BOOST_CHECK_THROW(open(f / "out", replace), zarrbits::error);  // no Zarr store
  BOOST_CHECK_THROW(open(f / "out", join), zarrbits::error);
  BOOST_TEST(read_file(f / "out/precious") == "data");
  BOOST_TEST(files_below(f / "out") == 1U);
  std::ofstream(f / "file") << "data";
  BOOST_CHECK_THROW(open(f / "file", replace), zarrbits::error);
  BOOST_TEST(read_file(f / "file") == "data");
}

BOOST_AUTO_TEST_CASE(overwriting_removes_the_old_store_whole) {
  folder f;
  {
    const auto s = open(f / "out");
    s->put("a/c/0", "old");
    s->put("a/zarr.json", "{}");
    s->put("zarr.json", group);
    s->finish();
  }
  {
    const auto s = open(f / "out", replace);
    BOOST_TEST(!fs::exists(f / "out/zarr.json"));
    BOOST_TEST(!fs::exists(f / "out/a"));
    s->put("zarr.json", "{}");
    s->finish();
  }
  BOOST_TEST(fs::exists(f / "out/zarr.json"));
  BOOST_TEST(!fs::exists(f / "out/.zarrbits-unfinished"));
}

BOOST_AUTO_TEST_CASE(the_source_is_never_removed) {
  folder f;
  {
    const auto s = open(f / "out");
    s->put("zarr.json", group);
    s->finish();
  }
  std::ofstream(f / "out/in.h5") << "data";
  BOOST_CHECK_THROW(open(f / "out", replace, f / "out/in.h5"), zarrbits::error);
  BOOST_TEST(read_file(f / "out/in.h5") == "data");
}

BOOST_AUTO_TEST_CASE(without_finish_nothing_stays) {
  folder f;
  {
    const auto s = open(f / "out");
    s->append(".zarrbits-unfinished/journal-0", "line\n");
    s->put("a/b/c/0/1", "x");
    s->put("zarr.json", "{}");
  }
  BOOST_TEST(!fs::exists(f / "out"));
}

BOOST_AUTO_TEST_CASE(a_chunk_that_cannot_be_written_leaves_no_file) {
  folder f;
  std::ofstream(f / "source") << "abc";
  const file_descriptor source(::open((f / "source").c_str(), O_RDONLY));
  for (const auto existing : {refuse, join}) {
    const std::string out = f / (existing == join ? "joined" : "alone");
    const auto s = open(out, existing);
    s->put_range("a/c/0", source.get(), 1, 2);
    BOOST_CHECK_THROW(s->put_range("a/c/1", source.get(), 1, 3), read_error);
    BOOST_TEST(s->list("a/c") == std::vector<std::string>{"a/c/0"});
    BOOST_TEST(files_below(out) == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_old_store_half_removed_is_not_gone_on_with) {
  folder f;
  fs::create_directories(f / "out/.zarrbits-unfinished");
  std::ofstream(f / "out/.zarrbits-unfinished/removing") << R"({"zarrbits": "1", "removing": true})";
  std::ofstream(f / "out/old") << "";
  BOOST_CHECK_EXCEPTION(open(f / "out", join), zarrbits::error, says("only partly removed"));
  open(f / "out", replace)->finish();
  BOOST_TEST(files_below(f / "out") == 0U);
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_is_a_sentence) {
  folder f;
  BOOST_CHECK_EXCEPTION(open(f / "no/such/out"), zarrbits::error, says("No such file"));
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_a_sentence_and_leaves_nothing) {
  struct rlimit old {};
  getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  folder f;
  std::ofstream(f / "source") << std::string(100000, 'y');
  const file_descriptor source(::open((f / "source").c_str(), O_RDONLY));
  {
    const auto s = open(f / "out");
    const struct rlimit small { 1000, old.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    BOOST_CHECK_EXCEPTION(s->put("c/0", std::string(5000, 'x')), zarrbits::error, says("too large"));
    BOOST_CHECK_EXCEPTION(s->put_range("c/0", source.get(), 0, 100000), zarrbits::error, says("too large"));
    setrlimit(RLIMIT_FSIZE, &old);
    BOOST_TEST(files_below(f / "out") == 0U);
  }
  BOOST_TEST(!fs::exists(f / "out"));
}

BOOST_AUTO_TEST_CASE(no_temporary_file_stays_and_objects_are_counted) {
  folder f;
  const auto s = open(f / "out");
  s->put("a/c/0", "12345");
  s->put("zarr.json", "{}");
  s->append(".zarrbits-unfinished/journal-0", "line\n");
  s->finish();
  BOOST_TEST(s->objects() == 2U);
  BOOST_TEST(s->bytes() == 7U);
  BOOST_TEST(files_below(f / "out") == 2U);
}

BOOST_AUTO_TEST_CASE(ranges_of_a_file_are_copied_small_and_large) {
  folder f;
  std::string content;
  for (int i = 0; content.size() < 5'000'000; ++i) content += std::to_string(i) + " ";
  std::ofstream(f / "source") << content;
  const file_descriptor source(::open((f / "source").c_str(), O_RDONLY));
  const auto s = open(f / "out");
  s->put_range("small", source.get(), 17, 100);
  s->put_range("large", source.get(), 1'000'003, 3'000'000);
  s->put_range("empty", source.get(), content.size(), 0);
  const auto object = s->begin("mixed");
  object->append(std::as_bytes(std::span("abc", 3)));
  object->append_range(source.get(), 5, 10);
  object->append_range(source.get(), 1, 1'000'000);
  object->append(std::as_bytes(std::span("def", 3)));
  BOOST_TEST(!fs::exists(f / "out/mixed"));
  object->commit();
  BOOST_TEST(read_file(f / "out/small") == content.substr(17, 100));
  BOOST_TEST((read_file(f / "out/large") == content.substr(1'000'003, 3'000'000)));
  BOOST_TEST(read_file(f / "out/empty").empty());
  BOOST_TEST((read_file(f / "out/mixed") == "abc" + content.substr(5, 10) + content.substr(1, 1'000'000) + "def"));
  BOOST_TEST(s->objects() == 4U);
  BOOST_TEST(s->bytes() == 4'000'116U);
}

BOOST_AUTO_TEST_CASE(a_range_beyond_the_end_of_the_file_makes_no_object) {
  folder f;
  std::ofstream(f / "source") << std::string(100'000, 'x');
  const file_descriptor source(::open((f / "source").c_str(), O_RDONLY));
  const auto s = open(f / "out");
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), 90'000, 20'000), read_error);
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), 200'000, 1), read_error);
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), ~std::uint64_t{0} - 5, 10), read_error);
  BOOST_TEST(s->begin("a/c/1") != nullptr);  // not committed
  BOOST_TEST(s->list("a/c").empty());
  BOOST_TEST(files_below(f / "out") == 0U);
}

BOOST_AUTO_TEST_CASE(no_key_leads_out_of_the_store) {
  folder f;
  const std::string bad[] = {"",
                             "/",
                             "/a",
                             "a/",
                             "a//b",
                             ".",
                             "..",
                             "../a",
                             "a/../b",
                             "a/./b",
                             "a/..",
                             std::string("a\0b", 3),
                             std::string(256, 'x'),
                             "a/" + std::string(300, 'x'),
                             [] {
    std::string deep = "a";
    for (int i = 0; i < 2048; ++i) deep += "/a";
    return deep;
                             }()};
  for (const std::string target : {"out", "out.zip"}) {
    const auto s = open(f / target);
    for (const std::string& key : bad) {
      BOOST_CHECK_EXCEPTION(s->put(key, "x"), zarrbits::error, says("not a valid key in a store"));
      BOOST_CHECK_EXCEPTION(s->put_new(key, std::as_bytes(std::span("x", 1))), zarrbits::error,
                            says("not a valid key in a store"));
    }
    s->put("..a/b..", "x");
  }
}

BOOST_AUTO_TEST_CASE(a_store_that_is_synced_is_the_same_store) {
  folder f;
  {
    const auto s = make_store_writer(f / "out", {.sync = true});
    s->put("a/b/c/0/1", "x");
    s->append(".zarrbits-unfinished/journal-0", "line\n");
    s->put("zarr.json", "{}");
    s->finish();
  }
  BOOST_TEST(read_file(f / "out/a/b/c/0/1") == "x");
  BOOST_TEST(files_below(f / "out") == 2U);
}
