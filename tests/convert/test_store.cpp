// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/support.hpp"

#include "convert/io/files.hpp"
#include "convert/store/sink.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

using namespace support;
using zarrbits::convert_error;
using zarrbits::conversion::file_descriptor;
using zarrbits::conversion::make_sink;
using zarrbits::conversion::sink;
using zarrbits::conversion::sink_options;
using zarrbits::conversion::unreadable_range;

namespace fs = std::filesystem;

namespace {

constexpr sink_options::existing refuse = sink_options::existing::refuse, replace = sink_options::existing::replace,
                                 join = sink_options::existing::join;

std::unique_ptr<sink> open(const std::string& target, sink_options::existing existing = refuse, const std::string& source = {}) {
  return make_sink(target, {.target = existing, .source = source});
}

// Without the lock of who writes.
std::size_t files_below(const std::string& path) {
  std::size_t files = 0;
  for (const auto& e : fs::recursive_directory_iterator(path)) files += e.is_regular_file() && e.path().filename() != "lock";
  return files;
}

const std::string group = R"({"zarr_format": 3, "node_type": "group"})",
                  plan = R"({"zarrbits": "1", "source": "in.h5", "options": {}})";

// One of several that share a plan.
std::unique_ptr<sink> share(const std::string& target) {
  auto s = make_sink(target, {.target = join, .shared = true});
  s->put_new(".zarrbits-unfinished/plan", std::as_bytes(std::span(plan.data(), plan.size())));
  return s;
}

std::string text(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "(none)";
}

auto says(const std::string& part) {
  return [part](const convert_error& e) { return std::string(e.what()).find(part) != std::string::npos; };
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_target_that_exists_is_refused_and_stays_as_it_was) {
  folder f;
  fs::create_directory(f / "out");
  std::ofstream(f / "out/precious") << "data";
  BOOST_CHECK_THROW(open(f / "out"), convert_error);
  BOOST_CHECK_THROW(open(f / "out", replace), convert_error);  // no Zarr store
  BOOST_CHECK_THROW(open(f / "out", join), convert_error);
  BOOST_TEST(read_file(f / "out/precious") == "data");
  BOOST_TEST(files_below(f / "out") == 1U);
  std::ofstream(f / "file") << "data";
  BOOST_CHECK_THROW(open(f / "file", replace), convert_error);
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
  BOOST_CHECK_THROW(open(f / "out", replace, f / "out/in.h5"), convert_error);
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

BOOST_AUTO_TEST_CASE(a_chunk_that_cannot_be_written_leaves_no_file) {
  folder f;
  std::ofstream(f / "source") << "abc";
  const file_descriptor source(::open((f / "source").c_str(), O_RDONLY));
  for (const auto existing : {refuse, join}) {
    const std::string out = f / (existing == join ? "joined" : "alone");
    const auto s = open(out, existing);
    s->put_range("a/c/0", source.get(), 1, 2);
    BOOST_CHECK_THROW(s->put_range("a/c/1", source.get(), 1, 3), unreadable_range);
    BOOST_TEST(s->list("a/c") == std::vector<std::string>{"a/c/0"});
    BOOST_TEST(files_below(out) == 1U);
  }
}

BOOST_AUTO_TEST_CASE(what_was_joined_stays_without_finish_and_can_be_joined_again) {
  folder f;
  share(f / "out")->put("a/c/0", "x");
  BOOST_TEST(read_file(f / "out/a/c/0") == "x");
  BOOST_CHECK_THROW(open(f / "out"), convert_error);
  {
    const auto first = share(f / "out"), second = share(f / "out");
    BOOST_CHECK_EXCEPTION(open(f / "out", join), convert_error, says("another conversion"));  // alone
    BOOST_CHECK_EXCEPTION(open(f / "out", replace), convert_error, says("another conversion"));
    first->put("a/c/1", "y");
    second->put("a/c/2", "z");
    first->put("zarr.json", "{}");
    first->finish();
  }
  BOOST_TEST(files_below(f / "out") == 4U);
  BOOST_CHECK_EXCEPTION(open(f / "out", join), convert_error, says("no unfinished store"));
}

BOOST_AUTO_TEST_CASE(a_killed_run_can_be_replaced) {
  folder f;
  fs::create_directories(f / "out/a");
  fs::create_directories(f / "out/.zarrbits-unfinished");
  std::ofstream(f / "out/.zarrbits-unfinished/journal-0") << "done\n";
  std::ofstream(f / "out/.zarrbits-unfinished/plan") << plan;
  std::ofstream(f / "out/a/zarr.json") << "{}";
  BOOST_CHECK_THROW(open(f / "out"), convert_error);
  {
    const auto s = open(f / "out", replace);
    BOOST_TEST(s->list(".zarrbits-unfinished").empty());
    s->finish();
  }
  BOOST_TEST(!fs::exists(f / "out/a"));
}

BOOST_AUTO_TEST_CASE(an_old_store_half_removed_is_not_gone_on_with) {
  folder f;
  fs::create_directories(f / "out/.zarrbits-unfinished");
  std::ofstream(f / "out/.zarrbits-unfinished/removing") << R"({"zarrbits": "1", "removing": true})";
  std::ofstream(f / "out/old") << "";
  BOOST_CHECK_EXCEPTION(open(f / "out", join), convert_error, says("not wholly removed"));
  open(f / "out", replace)->finish();
  BOOST_TEST(files_below(f / "out") == 0U);
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

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_is_a_sentence) {
  folder f;
  BOOST_CHECK_EXCEPTION(open(f / "no/such/out"), convert_error, says("No such file"));
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
    BOOST_CHECK_EXCEPTION(s->put("c/0", std::string(5000, 'x')), convert_error, says("too large"));
    BOOST_CHECK_EXCEPTION(s->put_range("c/0", source.get(), 0, 100000), convert_error, says("too large"));
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
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), 90'000, 20'000), unreadable_range);
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), 200'000, 1), unreadable_range);
  BOOST_CHECK_THROW(s->put_range("a/c/0", source.get(), ~std::uint64_t{0} - 5, 10), unreadable_range);
  BOOST_TEST(s->begin("a/c/1") != nullptr);  // not committed
  BOOST_TEST(s->list("a/c").empty());
  BOOST_TEST(files_below(f / "out") == 0U);
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
      sink& s = t % 2 == 0 ? *first : *second;
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
      BOOST_CHECK_EXCEPTION(s->put(key, "x"), convert_error, says("no place in a store"));
      BOOST_CHECK_EXCEPTION(s->put_new(key, std::as_bytes(std::span("x", 1))), convert_error, says("no place in a store"));
    }
    s->put("..a/b..", "x");
  }
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
    s->each("a", [&](std::string_view key, std::uint64_t size) { all[std::string(key)] = size; });
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
  using zarrbits::conversion::remove_unfinished;
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

BOOST_AUTO_TEST_CASE(a_store_that_is_synced_is_the_same_store) {
  folder f;
  {
    const auto s = make_sink(f / "out", {.sync = true});
    s->put("a/b/c/0/1", "x");
    s->append(".zarrbits-unfinished/journal-0", "line\n");
    s->put("zarr.json", "{}");
    s->finish();
  }
  BOOST_TEST(read_file(f / "out/a/b/c/0/1") == "x");
  BOOST_TEST(files_below(f / "out") == 2U);
}
