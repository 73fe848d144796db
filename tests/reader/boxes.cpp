// SPDX-License-Identifier: BSL-1.0
//
// hdf5_file beside H5Dread of the same libhdf5: boxes with steps, conversions, threads, refusals.
//
#include "array/box.hpp"
#include "hdf5/h5.hpp"

#include <zarrbits/hdf5_file.hpp>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace hdf5 = zarrbits::hdf5;
using zarrbits::errc;
using numbers = std::vector<std::uint64_t>;

struct test_file {
  std::string path = std::filesystem::temp_directory_path() / ("zarrbits-boxes-" + std::to_string(::getpid()) + ".h5");
  ~test_file() { std::filesystem::remove(path); }

  // Datasets "chunked", of 40 x 30 numbers in chunks of 7 x 11 with shuffle and deflate, of which some were never written;
  // "plain", contiguous; and "text", of variable length.
  test_file() {
    const hdf5::handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "create a file");
    const hsize_t shape[] = {40, 30}, chunk[] = {7, 11}, written[] = {21, 30}, start[] = {0, 0};
    const hdf5::handle space(H5Screate_simple(2, shape, nullptr)), part(H5Screate_simple(2, written, nullptr)),
        properties(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(properties, 2, chunk);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 4);
    const std::int16_t fill = -7;
    H5Pset_fill_value(properties, H5T_NATIVE_INT16, &fill);
    std::vector<std::int16_t> values(1200);
    std::iota(values.begin(), values.end(), static_cast<std::int16_t>(-100));
    const hdf5::handle chunked(H5Dcreate2(file, "chunked", H5T_STD_I16BE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, written, nullptr);
    H5Dwrite(chunked, H5T_NATIVE_INT16, part, space, H5P_DEFAULT, values.data());
    H5Sselect_all(space);
    const hdf5::handle plain(H5Dcreate2(file, "plain", H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(plain, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    const hdf5::handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text, H5T_VARIABLE);
    const char* const word = "abc";
    const hdf5::handle scalar(H5Screate(H5S_SCALAR)),
        texts(H5Dcreate2(file, "text", text, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(texts, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, &word);
  }

  template <class T>
  std::vector<T> by_libhdf5(const char* name, hid_t type) const {
    const hdf5::lock one_thread;
    const hdf5::handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open a file"),
        dataset(H5Dopen2(file, name, H5P_DEFAULT), "open a dataset");
    std::vector<T> values(1200);
    hdf5::check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read");
    return values;
  }
};

template <class T>
std::vector<T> selected(const std::vector<T>& all, const zarrbits::hdf5_box& box) {
  std::vector<T> values;
  for (std::uint64_t i = 0; i < box.count[0]; ++i) {
    for (std::uint64_t j = 0; j < box.count[1]; ++j)
      values.push_back(all[(box.first[0] + i * box.step[0]) * 30 + box.first[1] + j * box.step[1]]);
  }
  return values;
}

bool is_code(const zarrbits::error& e, errc code) { return e.kind() == code; }

}  // namespace

BOOST_AUTO_TEST_CASE(random_boxes_are_those_of_H5Dread) {
  const test_file file;
  const zarrbits::hdf5_file opened(file.path, {.threads = 2, .chunk_cache = 200});
  for (const char* const name : {"chunked", "plain"}) {
    const auto shorts = file.by_libhdf5<std::int16_t>(name, H5T_NATIVE_INT16);
    const auto doubles = file.by_libhdf5<double>(name, H5T_NATIVE_DOUBLE);
    const auto bytes = file.by_libhdf5<std::uint8_t>(name, H5T_NATIVE_UINT8);  // clipped
    const zarrbits::hdf5_dataset dataset = opened.dataset(name);
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
      zarrbits::hdf5_box box{numbers(2), numbers(2), numbers(2)};
      for (std::size_t d = 0; d < 2; ++d) {
        const std::uint64_t n = d == 0 ? 40 : 30;
        box.first[d] = random() % n;
        box.step[d] = random() % 9 + 1;
        box.count[d] = random() % ((n - 1 - box.first[d]) / box.step[d] + 2);
      }
      BOOST_TEST(dataset.read<std::int16_t>(box) == selected(shorts, box));
      BOOST_TEST(dataset.read<double>(box) == selected(doubles, box));
      BOOST_TEST(dataset.read<std::uint8_t>(box) == selected(bytes, box));
    }
  }
  BOOST_TEST(opened.statistics().libhdf5_values == 0U);
  BOOST_TEST(opened.statistics().empty_chunks > 0U);
}

BOOST_AUTO_TEST_CASE(threads_read_one_dataset_at_once) {
  const test_file file;
  const zarrbits::hdf5_file opened(file.path, {.threads = 2});
  const auto expected = file.by_libhdf5<float>("chunked", H5T_NATIVE_FLOAT);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& w : wrong) {
    threads.emplace_back([&w, &opened, &expected] {
      for (int i = 0; i < 50; ++i) w += opened.dataset("/chunked").read<float>({{0, 0}, {40, 30}}) != expected;
    });
  }
  for (std::thread& t : threads) t.join();
  BOOST_TEST(wrong == std::vector<int>(4, 0));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_refused) {
  const test_file file;
  const zarrbits::hdf5_file opened(file.path);
  const zarrbits::hdf5_dataset d = opened.dataset("chunked"), text = opened.dataset("text");
  const auto range = [](const zarrbits::error& e) { return is_code(e, errc::invalid_range); };
  std::byte out[8];
  BOOST_CHECK_EXCEPTION(d.read({{0}, {1}}, out), zarrbits::error, range);
  BOOST_CHECK_EXCEPTION(d.read<float>({{39, 29}, {2, 1}}), zarrbits::error, range);
  BOOST_CHECK_EXCEPTION(d.read<float>({{0, 0}, {2, 2}, {0, 1}}), zarrbits::error, range);
  BOOST_CHECK_EXCEPTION(d.read<float>({{0, 0}, {2, 2}, {UINT64_MAX, 1}}), zarrbits::error, range);
  BOOST_CHECK_EXCEPTION(d.read({{0, 0}, {1, 1}}, out), zarrbits::error,
                        [](const zarrbits::error& e) { return is_code(e, errc::element_count_mismatch); });
  BOOST_CHECK_EXCEPTION(text.read({{}, {}}, out), zarrbits::error,
                        [](const zarrbits::error& e) { return is_code(e, errc::unsupported_data_type); });
  BOOST_CHECK_EXCEPTION(opened.dataset("/"), zarrbits::error,
                        [](const zarrbits::error& e) { return is_code(e, errc::unsupported); });
  BOOST_CHECK_EXCEPTION(opened.describe("/none"), zarrbits::error,
                        [](const zarrbits::error& e) { return is_code(e, errc::not_found); });
  BOOST_CHECK_EXCEPTION(zarrbits::hdf5_file("/nonexistent.h5"), zarrbits::error,
                        [](const zarrbits::error& e) { return is_code(e, errc::not_found); });
  BOOST_TEST(text.is_variable());
  BOOST_TEST(text.read_packed({{}, {}}) == std::string("\3\0\0\0\0\0\0\0abc", 11));
  BOOST_TEST(d.read<float>({{5, 5}, {0, 3}}).empty());
}

BOOST_AUTO_TEST_CASE(objects_are_described_as_json) {
  const test_file file;
  const zarrbits::hdf5_file opened(file.path);
  const auto root = nlohmann::json::parse(opened.describe("/"));
  BOOST_TEST(root["members"].size() == 3U);
  const auto d = nlohmann::json::parse(opened.describe("chunked"));
  BOOST_TEST(d["type"].dump() == R"({"kind":"int","order":"big","signed":true,"size":2})");
  BOOST_TEST(d["chunks"].dump() == "[7,11]");
  BOOST_TEST(d["fill"] == "//k=");
  BOOST_TEST(d["filters"][0]["id"] == 2);
}
