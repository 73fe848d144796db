// SPDX-License-Identifier: BSL-1.0
//
// One rank of zarrbits-mpi without MPI: it takes the same names of files and stores as the command does.
//
#include "command/mpi_worker.hpp"
#include "tests/convert/support.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdlib>
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

namespace {

// A part of two dimensions: rows y and y + 1, columns x and x + 1; each value is 10 * row + column.
void write_part(const std::string& path, std::int32_t y, std::int32_t x) {
  const handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "make a file");
  const auto write = [&](const char* name, const dims& shape, const std::vector<std::int32_t>& values) {
    const handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), "make a space");
    handle dataset(H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "make a dataset");
    check(H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "write");
    return dataset;
  };
  write("y", {2}, {y, y + 1});
  write("x", {2}, {x, x + 1});
  const handle values = write("v", {2, 2}, {10 * y + x, 10 * y + x + 1, 10 * y + x + 10, 10 * y + x + 11});
  const handle text(H5Tcopy(H5T_C_S1), "make a type");
  check(H5Tset_size(text, H5T_VARIABLE), "make a type");
  const hsize_t two = 2;
  const handle space(H5Screate_simple(1, &two, nullptr), "make a space"),
      labels(H5Acreate2(values, "DIMENSION_LABELS", text, space, H5P_DEFAULT, H5P_DEFAULT), "make an attribute");
  const char* const names[] = {"y", "x"};
  check(H5Awrite(labels, text, names), "write");
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_may_be_parts_of_several_dimensions) {
  folder here;
  std::filesystem::create_directory(here / "temporary");
  ::setenv("TMPDIR", (here / "temporary").c_str(), 1);
  std::vector<std::string> arguments{"convert", "-q", "--no-lock", "--concat", "y,x"};
  for (const std::int32_t part : {3, 0, 2, 1}) {
    arguments.push_back(here / (std::to_string(part) + ".h5"));
    write_part(arguments.back(), part / 2 * 2, part % 2 * 2);
  }
  const std::string store = here / "out.zarr";
  arguments.push_back(store);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  {
    // rank 1 joins the store that rank 0 began, from a file of its own that combines the others
    zarrbits::command::mpi_worker first(static_cast<int>(arguments.size()), pointers.data()),
        second(static_cast<int>(arguments.size()), pointers.data());
    BOOST_REQUIRE_EQUAL(first.start(0, 2), -1);
    BOOST_REQUIRE_EQUAL(second.start(1, 2), -1);
    BOOST_TEST(first.all_units().size() == 3);
    bool is_odd = false;
    for (const std::string& unit : first.all_units()) {
      zarrbits::command::mpi_worker& rank = (is_odd = !is_odd) ? second : first;
      rank.begin(unit);
      BOOST_TEST(rank.wait() == "");
    }
    second.leave();
    first.leave();
    BOOST_TEST(first.finish() == 0);
  }
  BOOST_TEST(json::parse(read_file(store + "/v/zarr.json")).at("shape") == json({4, 4}));
  std::vector<std::int32_t> expected;
  for (std::int32_t i = 0; i < 16; ++i) expected.push_back(i / 4 * 10 + i % 4);
  BOOST_TEST(read_file(store + "/v/c/0/0") == bytes_of(expected));
  BOOST_TEST(std::filesystem::is_empty(here / "temporary"));
  ::unsetenv("TMPDIR");
}

BOOST_AUTO_TEST_CASE(unknown_schemes_are_wrong_usage) {
  std::string convert = "convert", source = "ftp://host/in.h5", store = "out.zarr";
  char* arguments[] = {convert.data(), source.data(), store.data(), nullptr};
  zarrbits::command::mpi_worker worker(3, arguments);
  BOOST_TEST(worker.start(0, 1) == 2);
}
