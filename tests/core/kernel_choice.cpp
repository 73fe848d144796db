// SPDX-License-Identifier: BSL-1.0
//
// Which table of kernels is used: the best one, or the one that ZARRBITS_KERNELS names.
//
#include "core/kernels/kernels.hpp"

#include <zarrbits/packbits.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <string>

using namespace zarrbits::detail;

// The environment is read once in a process; these run in processes of their own, started by the next case.
BOOST_AUTO_TEST_CASE(in_a_process_with_the_name_of_a_table, *boost::unit_test::disabled()) {
  BOOST_TEST(std::string(kernels().name) == std::getenv("ZARRBITS_KERNELS"));
  BOOST_TEST(unavailable_kernels() == nullptr);
  BOOST_CHECK_NO_THROW((void)zarrbits::packbits("uint16", {.last_bit = 11}));
}

BOOST_AUTO_TEST_CASE(in_a_process_with_another_name, *boost::unit_test::disabled()) {
  BOOST_TEST(&kernels() == all_kernels().back());
  try {
    (void)zarrbits::packbits("uint16", {.last_bit = 11});
    BOOST_ERROR("a codec was made");
  } catch (const zarrbits::error& e) {
    const std::string what = e.what();
    BOOST_TEST(what.find("ZARRBITS_KERNELS") != what.npos, what);
    BOOST_TEST(what.find("fastest") != what.npos, what);
    for (const kernel_table* k : all_kernels()) BOOST_TEST(what.find(k->name) != what.npos, what);
  }
}

BOOST_AUTO_TEST_CASE(the_environment_variable_forces_a_table_and_a_wrong_name_is_an_error_with_the_names) {
  const std::string self =
      std::string(ZARRBITS_TEST_EMULATOR " '") + boost::unit_test::framework::master_test_suite().argv[0] + "'";
  const auto run = [&](const std::string& value, const std::string& test) {
    return std::system(
        ("ZARRBITS_KERNELS=" + value + " " + self + " --run_test=" + test + " --log_level=error --report_level=no >&2").c_str());
  };
  for (const kernel_table* k : all_kernels()) BOOST_TEST(run(k->name, "in_a_process_with_the_name_of_a_table") == 0);
  BOOST_TEST(run("fastest", "in_a_process_with_another_name") == 0);
}
