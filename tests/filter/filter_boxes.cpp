// SPDX-License-Identifier: BSL-1.0
//
// Boxes of <zarrbits/hdf5.hpp> beside hyperslabs of H5Dwrite() and H5Dread(): the same values, and the same bytes in the file.
//
#include <zarrbits/hdf5.hpp>

#define BOOST_TEST_MODULE filter_boxes
#include <boost/test/unit_test.hpp>

#include "tests/filter/rows_support.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rows = zarrbits::hdf5;
using zarrbits::errc;
using zarrbits::hdf5_box;

namespace {

using values = std::vector<std::uint16_t>;
using extents = std::vector<hsize_t>;

std::size_t size_of(const hdf5_box& box) {
  std::size_t n = 1;
  for (const std::uint64_t count : box.count) n *= static_cast<std::size_t>(count);
  return n;
}

herr_t transfer(hid_t d, const hdf5_box& box, values& v, bool write) {
  const extents first(box.first.begin(), box.first.end()), count(box.count.begin(), box.count.end());
  extents step(box.step.begin(), box.step.end());
  if (step.empty()) step.assign(first.size(), 1);
  const hid_t in_file = H5Dget_space(d), in_memory = H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, first.data(), step.data(), count.data(), nullptr);
  const herr_t status = write ? H5Dwrite(d, H5T_NATIVE_UINT16, in_memory, in_file, H5P_DEFAULT, v.data())
                              : H5Dread(d, H5T_NATIVE_UINT16, in_memory, in_file, H5P_DEFAULT, v.data());
  H5Sclose(in_file);
  H5Sclose(in_memory);
  return status;
}

hdf5_box some_box(std::mt19937& random, const extents& shape, bool with_steps) {
  hdf5_box box;
  for (const hsize_t length : shape) {
    const auto pick = [&](std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end)(random); };
    const std::uint64_t first = pick(length - 1), step = with_steps ? 1 + pick(5) : 1;
    box.first.push_back(first);
    box.count.push_back(1 + pick((length - 1 - first) / step));
    if (with_steps) box.step.push_back(step);
  }
  return box;
}

values some_values(std::mt19937& random, std::size_t n, unsigned bits) {
  values v(n);
  for (std::uint16_t& value : v) value = static_cast<std::uint16_t>(random() & ((1U << bits) - 1));
  return v;
}

std::string text_of(const hdf5_box& box) {
  std::string text = "box";
  for (const auto* part : {&box.first, &box.count, &box.step}) {
    text += " |";
    for (const std::uint64_t n : *part) text += " " + std::to_string(n);
  }
  return text;
}

const std::vector<std::pair<extents, extents>> shapes = {
    {{13, 11, 9}, {4, 4, 4}}, {{12, 10, 16}, {1, 10, 16}}, {{9, 16}, {3, 40}}, {{100}, {8}}, {{7, 30, 2}, {7, 5, 1}}};

}  // namespace

BOOST_AUTO_TEST_CASE(random_boxes_are_those_of_libhdf5) {
  const auto deflated = [](hid_t p) {
    packed(12)(p);
    H5Pset_deflate(p, 1);
  };
  const auto filled = [](hid_t p) {
    const std::uint16_t value = 77;
    H5Pset_fill_value(p, H5T_NATIVE_UINT16, &value);
    packed(12, ZARRBITS_HDF5_PADDING_LAST_BYTE)(p);
  };
  const auto never = [](hid_t p) {
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    packed(12)(p);
  };
  const struct {
    const char* name;
    hid_t type;
    set_up filters;
    bool has_chunks;
  } forms[] = {{"packbits", H5T_STD_U16LE, packed(12), true},        {"packbits, big endian", H5T_STD_U16BE, packed(12), true},
               {"fill value", H5T_STD_U16LE, filled, true},          {"never filled", H5T_STD_U16LE, never, true},
               {"packbits, deflate", H5T_STD_U16LE, deflated, true}, {"no filter", H5T_STD_U16LE, none, true},
               {"no filter, big endian", H5T_STD_U16BE, none, true}, {"contiguous", H5T_STD_U16BE, none, false}};
  std::mt19937 random(41);
  std::uint64_t chunks = 0, libhdf5_values = 0;
  for (const auto& how : forms) {
    for (const auto& [shape, chunk] : shapes) {
      const file f;
      const extents in_chunks = how.has_chunks ? chunk : extents{};
      const hid_t theirs = make(f, "theirs", how.type, shape, in_chunks, how.filters),
                  ours = make(f, "ours", how.type, shape, in_chunks, how.filters);
      for (int i = 0; i < 30; ++i) {
        const bool with_steps = i % 3 == 2;
        const hdf5_box box = some_box(random, shape, with_steps);
        BOOST_TEST_CONTEXT(how.name << ", " << shape.size() << " dimensions, " << text_of(box)) {
          const unsigned threads = 1 + static_cast<unsigned>(i % 4);
          values given = some_values(random, size_of(box), i % 5 == 4 ? 13 : 12);
          BOOST_TEST(transfer(theirs, box, given, true) >= 0);
          const auto written = rows::write_chunks(ours, box, given, {.threads = threads});
          if (with_steps && std::any_of(box.step.begin(), box.step.end(), [](std::uint64_t n) { return n != 1; }))
            BOOST_TEST(written.chunks == 0U);
          const hdf5_box other = some_box(random, shape, i % 2 == 1);
          values expected(size_of(other), 1), result(size_of(other), 1);
          BOOST_TEST(transfer(theirs, other, expected, false) >= 0);
          const auto read = rows::read_chunks(ours, other, result, {.threads = threads});
          BOOST_TEST((result == expected));
          chunks += written.chunks + read.chunks;
          libhdf5_values += written.libhdf5_values + read.libhdf5_values;
        }
      }
      if (how.has_chunks) BOOST_TEST((chunks_of(ours, shape, chunk) == chunks_of(theirs, shape, chunk)));
      H5Dclose(theirs);
      H5Dclose(ours);
    }
  }
  BOOST_TEST(chunks > 1000U);
  BOOST_TEST(libhdf5_values > 1000U);
}

BOOST_AUTO_TEST_CASE(boxes_that_are_none) {
  const file f;
  const hid_t d = make(f, "d", H5T_STD_U16LE, {10, 10}, {4, 4}, packed(12));
  values v(4);
  const auto refuse = [&](const hdf5_box& box, errc code, const char* words) {
    const auto is_right = [&](const zarrbits::error& e) {
      return e.kind() == code && std::string(e.what()).find(words) != std::string::npos;
    };
    BOOST_CHECK_EXCEPTION(rows::read_chunks(d, box, v), zarrbits::error, is_right);
    BOOST_CHECK_EXCEPTION(rows::write_chunks(d, box, v), zarrbits::error, is_right);
  };
  constexpr std::uint64_t huge = UINT64_MAX;
  refuse({{0}, {4}}, errc::invalid_range, "does not have the 2 dimensions");
  refuse({{0, 0}, {2, 2}, {1}}, errc::invalid_range, "does not have the 2 dimensions");
  refuse({{0, 0}, {2, 2}, {0, 1}}, errc::invalid_range, "use at least 1");
  refuse({{9, 0}, {2, 2}}, errc::invalid_range, "ends after the 10 elements of dimension 0");
  refuse({{0, 0}, {2, 2}, {1, 10}}, errc::invalid_range, "of dimension 1");
  refuse({{0, 0}, {2, 2}, {1, huge}}, errc::invalid_range, "of dimension 1");
  refuse({{huge, 0}, {1, 4}}, errc::invalid_range, "of dimension 0");
  refuse({{0, 0}, {huge, 4}}, errc::invalid_range, "of dimension 0");
  refuse({{0, 0}, {2, 3}}, errc::element_count_mismatch, "8 bytes are not the values of the box");
  refuse({{0, 0}, {0, 2}}, errc::element_count_mismatch, "8 bytes are not the values of the box");
  v.clear();
  rows::write_chunks(d, hdf5_box{{10, 0}, {0, 2}}, v);
  rows::read_chunks(d, hdf5_box{{0, 10}, {2, 0}}, v);
  H5Dclose(d);
}
