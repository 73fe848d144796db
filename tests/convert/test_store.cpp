// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/support.hpp"

#include "convert/sink.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <csignal>

using namespace support;
using zarrbits::convert_error;
using zarrbits::conversion::directory_sink;

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(a_target_that_exists_is_refused_and_stays_as_it_was) {
  folder f;
  fs::create_directory(f / "out");
  std::ofstream(f / "out/precious") << "data";
  BOOST_CHECK_THROW(directory_sink(f / "out", {}), convert_error);
  BOOST_CHECK_THROW(directory_sink(f / "out", {.overwrite = true}), convert_error);  // no Zarr store
  BOOST_TEST(read_file(f / "out/precious") == "data");
  std::ofstream(f / "file") << "data";
  BOOST_CHECK_THROW(directory_sink(f / "file", {.overwrite = true}), convert_error);
  BOOST_TEST(read_file(f / "file") == "data");
}

BOOST_AUTO_TEST_CASE(overwriting_removes_the_old_store_whole) {
  folder f;
  {
    directory_sink s(f / "out", {});
    s.put("a/c/0", "old");
    s.put("a/zarr.json", "{}");
    s.put("zarr.json", "{}");
    s.finish();
  }
  {
    directory_sink s(f / "out", {.overwrite = true});
    BOOST_TEST(!fs::exists(f / "out/zarr.json"));
    BOOST_TEST(!fs::exists(f / "out/a"));
    s.put("zarr.json", "{}");
    s.finish();
  }
  BOOST_TEST(fs::exists(f / "out/zarr.json"));
  BOOST_TEST(!fs::exists(f / "out/.zarrbits-unfinished"));
}

BOOST_AUTO_TEST_CASE(the_source_is_never_removed) {
  folder f;
  {
    directory_sink s(f / "out", {});
    s.put("zarr.json", "{}");
    s.finish();
  }
  std::ofstream(f / "out/in.h5") << "data";
  BOOST_CHECK_THROW(directory_sink(f / "out", {.overwrite = true, .source = f / "out/in.h5"}), convert_error);
  BOOST_TEST(read_file(f / "out/in.h5") == "data");
}

BOOST_AUTO_TEST_CASE(without_finish_nothing_stays) {
  folder f;
  {
    directory_sink s(f / "out", {});
    s.put("a/b/c/0/1", "x");
    s.put("zarr.json", "{}");
  }
  BOOST_TEST(!fs::exists(f / "out"));
}

BOOST_AUTO_TEST_CASE(a_killed_run_can_be_replaced) {
  folder f;
  fs::create_directories(f / "out/a");
  std::ofstream(f / "out/.zarrbits-unfinished") << "";
  std::ofstream(f / "out/a/zarr.json") << "{}";
  BOOST_CHECK_THROW(directory_sink(f / "out", {}), convert_error);
  {
    directory_sink s(f / "out", {.overwrite = true});
    s.finish();
  }
  BOOST_TEST(!fs::exists(f / "out/a"));
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_is_a_sentence) {
  folder f;
  BOOST_CHECK_EXCEPTION(directory_sink(f / "no/such/out", {}), convert_error,
                        [](const convert_error& e) { return std::string(e.what()).find("No such file") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_a_sentence_and_leaves_nothing) {
  struct rlimit old {};
  getrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, SIG_IGN);
  folder f;
  {
    directory_sink s(f / "out", {});
    const struct rlimit small {1000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    BOOST_CHECK_THROW(s.put("c/0", std::string(5000, 'x')), convert_error);
    setrlimit(RLIMIT_FSIZE, &old);
  }
  BOOST_TEST(!fs::exists(f / "out"));
}

BOOST_AUTO_TEST_CASE(no_temporary_file_stays_and_objects_are_counted) {
  folder f;
  directory_sink s(f / "out", {});
  s.put("a/c/0", "12345");
  s.put("zarr.json", "{}");
  s.finish();
  BOOST_TEST(s.objects() == 2U);
  BOOST_TEST(s.bytes() == 7U);
  std::size_t files = 0;
  for (const auto& e : fs::recursive_directory_iterator(f / "out")) files += e.is_regular_file();
  BOOST_TEST(files == 2U);
}
