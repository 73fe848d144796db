// SPDX-License-Identifier: BSL-1.0
//
// One rank of zarrbits-mpi without MPI: it takes the same names of files and stores as the command does.
//
#include "command/mpi_worker.hpp"
#include "tests/convert/support.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace support;

BOOST_AUTO_TEST_CASE(names_may_be_file_urls) {
  conversion c;
  c.dataset("values", H5T_STD_I32LE, {3}, std::vector<std::int32_t>{1, 2, 3});
  H5Fflush(c.file(), H5F_SCOPE_GLOBAL);
  const std::string store = c.folder() / "by rank.zarr";
  std::vector<std::string> arguments{"convert", "file://" + c.source(), "file://" + (c.folder() / "by%20rank.zarr"), "--no-lock",
                                     "-q"};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  zarrbits::command::mpi_worker worker(static_cast<int>(arguments.size()), pointers.data());
  BOOST_REQUIRE_EQUAL(worker.start(0, 1), -1);
  for (const std::string& unit : worker.all_units()) {
    worker.begin(unit);
    BOOST_TEST(worker.wait() == "");
  }
  worker.leave();
  BOOST_TEST(worker.finish() == 0);
  BOOST_TEST(std::filesystem::exists(store + "/values/zarr.json"));
}

BOOST_AUTO_TEST_CASE(unknown_schemes_are_wrong_usage) {
  std::string convert = "convert", source = "ftp://host/in.h5", store = "out.zarr";
  char* arguments[] = {convert.data(), source.data(), store.data(), nullptr};
  zarrbits::command::mpi_worker worker(3, arguments);
  BOOST_TEST(worker.start(0, 1) == 2);
}
