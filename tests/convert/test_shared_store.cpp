// SPDX-License-Identifier: BSL-1.0
//
// Stores that several runs write, one after the other or at once, and what killed ones leave.
//
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

BOOST_AUTO_TEST_CASE(chunks_of_a_store_that_others_may_write_to_replace_what_is_there) {
  folder f;
  for (const auto existing : {refuse, join}) {
    const std::string out = f / (existing == join ? "joined" : "alone");
    const auto s = open(out, existing);
    s->put("a/c/0", "first");
    const std::string chunk = out + "/a/c/0";
    fs::create_hard_link(chunk, out + "/before");  // the file, whatever becomes of its name
    s->put("a/c/0", "again");
    BOOST_TEST(read_file(chunk) == "again");
    BOOST_TEST(read_file(out + "/before") == "first");  // never written over: somebody may be reading or writing it
    s->put("a/zarr.json", "{}");
    BOOST_TEST(files_below(out) == 3U);  // nothing temporary
  }
}

BOOST_AUTO_TEST_CASE(what_was_joined_stays_without_finish_and_can_be_joined_again) {
  folder f;
  share(f / "out")->put("a/c/0", "x");
  BOOST_TEST(read_file(f / "out/a/c/0") == "x");
  BOOST_CHECK_THROW(open(f / "out"), zarrbits::error);
  {
    const auto first = share(f / "out"), second = share(f / "out");
    BOOST_CHECK_EXCEPTION(open(f / "out", join), zarrbits::error, says("another conversion"));  // alone
    BOOST_CHECK_EXCEPTION(open(f / "out", replace), zarrbits::error, says("another conversion"));
    first->put("a/c/1", "y");
    second->put("a/c/2", "z");
    first->put("zarr.json", "{}");
    first->finish();
  }
  BOOST_TEST(files_below(f / "out") == 4U);
  BOOST_CHECK_EXCEPTION(open(f / "out", join), zarrbits::error, says("unfinished store"));
}

BOOST_AUTO_TEST_CASE(a_killed_run_can_be_replaced) {
  folder f;
  fs::create_directories(f / "out/a");
  fs::create_directories(f / "out/.zarrbits-unfinished");
  std::ofstream(f / "out/.zarrbits-unfinished/journal-0") << "done\n";
  std::ofstream(f / "out/.zarrbits-unfinished/plan") << plan;
  std::ofstream(f / "out/a/zarr.json") << "{}";
  BOOST_CHECK_THROW(open(f / "out"), zarrbits::error);
  {
    const auto s = open(f / "out", replace);
    BOOST_TEST(s->list(".zarrbits-unfinished").empty());
    s->finish();
  }
  BOOST_TEST(!fs::exists(f / "out/a"));
}

BOOST_AUTO_TEST_CASE(temporary_files_of_killed_runs_are_no_keys_and_go_in_the_end) {
  folder f;
  share(f / "out")->put("a/c/0", "x");
  std::ofstream(f / "out/a/c/.zarrbits-0123456789abcdef-7.tmp") << "half";
  const auto s = open(f / "out", join);
  BOOST_TEST(s->list("a/c") == std::vector<std::string>{"a/c/0"});
  s->finish();
  BOOST_TEST(files_below(f / "out") == 1U);
}

BOOST_AUTO_TEST_CASE(a_journal_grows_and_a_torn_line_does_not_spoil_the_next) {
  folder f;
  const std::string journal = ".zarrbits-unfinished/journal-3";
  {
    const auto s = share(f / "out");
    BOOST_TEST(text(s->get(journal)) == "(none)");
    s->append(journal, "one\n");
    s->append(journal, "two\n");
  }
  std::ofstream(f / "out/" + journal, std::ios::app) << "thr";
  const auto s = open(f / "out", join);
  s->append(journal, "three\n");
  s->append(journal, "four\n");
  BOOST_TEST(text(s->get(journal)) == "one\ntwo\nthr\nthree\nfour\n");
  BOOST_TEST((s->list(".zarrbits-unfinished") == std::vector<std::string>{journal, ".zarrbits-unfinished/plan"}));
  BOOST_TEST(s->list("no/such/folder").empty());
}

BOOST_AUTO_TEST_CASE(many_threads_and_two_sinks_write_one_store) {
  folder f;
  const auto first = share(f / "out"), second = share(f / "out");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      store_writer& s = t % 2 == 0 ? *first : *second;
      for (int i = 0; i < 100; ++i) {
        const std::string key = "a/c/" + std::to_string(i) + "/" + std::to_string(t);
        if (i % 2 == 0) {
          s.put(key, key);
        } else {
          const auto object = s.begin(key);
          object->append(std::as_bytes(std::span(key)));
          object->commit();
        }
        s.append(".zarrbits-unfinished/journal-" + std::to_string(t % 2), std::to_string(i) + "\n");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  BOOST_TEST(first->objects() + second->objects() == 800U);
  BOOST_TEST(first->list("a/c").size() == 100U);
  BOOST_TEST(text(first->get(".zarrbits-unfinished/journal-0")).size() == 4 * 290U);
  BOOST_TEST(text(first->get("a/c/71/5")) == "a/c/71/5");
  first->finish();
  BOOST_TEST(files_below(f / "out") == 800U);
}

BOOST_AUTO_TEST_CASE(of_two_that_put_one_new_object_one_hears_so) {
  folder f;
  for (const std::string target : {"out", "out.zip"}) {
    const auto s = open(f / target);
    const auto put = [&](std::string_view text) { return s->put_new("a/b", std::as_bytes(std::span(text.data(), text.size()))); };
    BOOST_TEST(put("one"));
    BOOST_TEST(!put("two"));
    BOOST_TEST(text(s->get("a/b")) == "one");
    std::map<std::string, std::uint64_t, std::less<>> all;
    s->put("a/c/d", "12345");
    s->for_each("a", [&](std::string_view key, std::uint64_t size) { all[std::string(key)] = size; });
    BOOST_TEST((all == std::map<std::string, std::uint64_t, std::less<>>{{"a/b", 3}, {"a/c/d", 5}}));
  }
  const auto first = share(f / "shared"), second = share(f / "shared");
  std::atomic<int> times = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        times += (t % 2 ? first : second)->put_new("n/" + std::to_string(i), std::as_bytes(std::span("x", 1)));
    });
  }
  for (std::thread& t : threads) t.join();
  BOOST_TEST(times == 50);
  BOOST_TEST(files_below(f / "shared") == 51U);  // nothing temporary
}

BOOST_AUTO_TEST_CASE(a_killed_run_is_removed_by_its_own_name_alone) {
  folder f;
  using zarrbits::zarr::remove_unfinished;
  for (const std::string run : {"mine", ""}) {
    fs::create_directories(f / "out/.zarrbits-unfinished");
    std::ofstream(f / "out/.zarrbits-unfinished/plan") << plan;
    std::ofstream(f / "out/.zarrbits-unfinished/lock") << "mine";
    std::ofstream(f / "out/chunk") << "x";
    BOOST_TEST(!remove_unfinished(f / "out", {.run = "other"}));
    {
      const auto s = share(f / "out");
      BOOST_TEST(!remove_unfinished(f / "out", {.run = run}));  // somebody writes
    }
    BOOST_TEST(files_below(f / "out") == 2U);
    BOOST_TEST(remove_unfinished(f / "out", {.run = run}));
    BOOST_TEST(!fs::exists(f / "out"));
  }
  const auto s = open(f / "out.zip");
  BOOST_TEST(!remove_unfinished(f / "out.zip", {}));
}
