// SPDX-License-Identifier: BSL-1.0
//
// The ways by which a sentence reaches the user: the error stack, a line on standard error, the last error of the thread.
#include "filter/message.hpp"

#include "h5_support.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

using namespace zarrbits::filter;

namespace {

int pushed = 0;

herr push(hid, const char*, const char*, unsigned, hid, hid, hid, const char*, ...) {
  ++pushed;
  return 0;
}

library of_version(bool loses) {
  H5open();  // the error ids that the sentence is pushed with
  library l;
  l.complete = true;
  l.call.push_error = push;
  l.loses_filter_errors = loses;
  return l;
}

sentence saying(const char* text) {
  sentence s;
  s.set(minor::bad_value, "%s", text);
  return s;
}

// What `f` prints on standard error.
template <class F>
std::string printed(F f) {
  std::fflush(stderr);
  const int kept = dup(2);
  std::FILE* file = std::tmpfile();
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(kept);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_error_stack_is_enough_where_it_is_kept) {
  unsetenv("ZARRBITS_HDF5_LOG");
  pushed = 0;
  BOOST_TEST(printed([] { report(of_version(false), "filter", saying("kept")); }) == "");
  BOOST_TEST(pushed == 1);
  BOOST_TEST(std::string(last_error()) == "kept");
}

BOOST_AUTO_TEST_CASE(what_the_library_throws_away_is_one_line_on_standard_error) {
  unsetenv("ZARRBITS_HDF5_LOG");
  const library h5 = of_version(true);
  pushed = 0;
  const std::string text = printed([&] {
    for (int i = 0; i < 100; ++i) report(h5, "filter", saying("thrown away"));
    report(h5, "filter", saying("another"));
  });
  BOOST_TEST(text == "thrown away\nanother\n");
  BOOST_TEST(pushed == 101);
  // only what filter() puts there is lost
  BOOST_TEST(printed([&] { report(h5, "set_local", saying("stays")); }) == "");
}

BOOST_AUTO_TEST_CASE(the_environment_asks_for_all_lines_or_for_none) {
  setenv("ZARRBITS_HDF5_LOG", "0", 1);
  BOOST_TEST(printed([] {
               report(of_version(true), "filter", saying("x"));
               note(saying("y"));
             }) == "");
  setenv("ZARRBITS_HDF5_LOG", "1", 1);
  BOOST_TEST(printed([] {
               report(of_version(false), "filter", saying("x"));
               report(of_version(false), "filter", saying("x"));
               note(saying("y"));
             }) == "x\nx\ny\n");
  unsetenv("ZARRBITS_HDF5_LOG");
  BOOST_TEST(printed([] { note(saying("y")); }) == "");
}

BOOST_AUTO_TEST_CASE(a_warning_is_one_line_for_each_thing) {
  const auto warn_of = [](int a, int b) {
    return printed([=] {
      for (int i = 0; i < 3; ++i) {
        warn(0x5000 + static_cast<std::uintptr_t>(a), saying("a"));
        warn(0x6010 + static_cast<std::uintptr_t>(b), saying("b"));
      }
    });
  };
  BOOST_TEST(warn_of(0, 0) == "a\nb\n");
  BOOST_TEST(warn_of(0, 0) == "");
  BOOST_TEST(warn_of(0, 32) == "b\n");
  BOOST_TEST(std::string(last_error()) == "b");
  setenv("ZARRBITS_HDF5_LOG", "0", 1);
  BOOST_TEST(warn_of(1, 1) == "");
  setenv("ZARRBITS_HDF5_LOG", "1", 1);
  BOOST_TEST(warn_of(1, 1) == "a\nb\na\nb\na\nb\n");
  unsetenv("ZARRBITS_HDF5_LOG");
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_last_error) {
  report(of_version(false), "filter", saying("of this thread"));
  std::string before = "?", after;
  std::thread other([&] {
    before = last_error();
    report(of_version(false), "filter", saying("of the other"));
    after = last_error();
  });
  other.join();
  BOOST_TEST(before == "");
  BOOST_TEST(after == "of the other");
  BOOST_TEST(std::string(last_error()) == "of this thread");
  note(saying("nothing failed"));
  BOOST_TEST(std::string(last_error()) == "of this thread");
}
