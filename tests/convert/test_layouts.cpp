// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/support.hpp"

#include <boost/test/unit_test.hpp>

#include <numeric>

using namespace support;

namespace {

std::vector<std::int32_t> numbers(std::size_t n) {
  std::vector<std::int32_t> v(n);
  std::iota(v.begin(), v.end(), 1);
  return v;
}

}  // namespace

BOOST_AUTO_TEST_CASE(contiguous_values_are_copied_in_their_byte_order) {
  conversion c;
  const auto v = numbers(12);
  c.dataset("little", H5T_STD_I32LE, {3, 4}, v);
  {
    const handle d = c.dataset("big", H5T_STD_I32BE, {3, 4});
    check(H5Dwrite(d, H5T_STD_I32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()), "write");
  }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("little/c/0/0") == bytes_of(v)));
  std::string swapped;
  for (const auto x : v) {
    for (int i = 3; i >= 0; --i) swapped += static_cast<char>(x >> (8 * i));
  }
  BOOST_TEST((c.chunk("big/c/0/0") == swapped));
  const json m = c.meta("big");
  BOOST_TEST(m["data_type"] == "int32");
  BOOST_TEST(m["shape"] == (json{3, 4}));
  BOOST_TEST(m["codecs"] == json::parse(R"([{"name": "bytes", "configuration": {"endian": "big"}}])"));
  BOOST_TEST(m["chunk_key_encoding"]["name"] == "default");
  BOOST_TEST((c.entry("/big").outcome == zarrbits::outcome::raw));
}

BOOST_AUTO_TEST_CASE(large_contiguous_data_is_split_and_chunks_over_the_edge_are_full_size) {
  conversion c;
  const hsize_t rows = 5, columns = 700001;
  std::vector<std::int32_t> v(rows * columns);
  std::iota(v.begin(), v.end(), 7);
  const handle p(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  const std::int32_t fill = -3;
  check(H5Pset_fill_value(p, H5T_NATIVE_INT32, &fill), "set the fill value");
  c.dataset("x", H5T_STD_I32LE, {rows, columns}, v, p);
  BOOST_TEST(!c.run().has_losses());
  const json m = c.meta("x");
  const auto chunk = m["chunk_grid"]["configuration"]["chunk_shape"].get<dims>();
  BOOST_TEST(chunk[1] == columns);
  BOOST_TEST(chunk[0] < rows);
  BOOST_TEST(m["fill_value"] == -3);
  std::string all;
  for (hsize_t i = 0; i * chunk[0] < rows; ++i) {
    const std::string bytes = c.chunk("x/c/" + std::to_string(i) + "/0");
    BOOST_TEST(bytes.size() == chunk[0] * columns * 4);
    all += bytes;
  }
  BOOST_TEST((all.substr(0, v.size() * 4) == bytes_of(v)));
  if (all.size() > v.size() * 4) BOOST_TEST((all.substr(v.size() * 4, 4) == bytes_of(std::vector<std::int32_t>{-3})));
}

BOOST_AUTO_TEST_CASE(chunks_are_copied_and_those_never_written_left_out) {
  conversion c;
  const handle p = chunked({2, 3});
  const std::int32_t fill = 42;
  check(H5Pset_fill_value(p, H5T_NATIVE_INT32, &fill), "set the fill value");
  {
    const handle d = c.dataset("x", H5T_STD_I32LE, {5, 7}, p);
    const handle space(H5Dget_space(d), "space");
    const hsize_t first[] = {2, 3}, count[] = {2, 3};
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, count, nullptr), "select");
    const handle memory(H5Screate_simple(2, count, nullptr), "space");
    const auto v = numbers(6);
    check(H5Dwrite(d, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, v.data()), "write");
  }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("x/c/1/1") == bytes_of(numbers(6))));
  BOOST_TEST(!c.has("x/c/0/0"));
  BOOST_TEST(!c.has("x/c/2/2"));
  BOOST_TEST(c.meta("x")["fill_value"] == 42);
  BOOST_TEST(c.entry("/x").chunks.raw == 1U);
  BOOST_TEST(c.entry("/x").chunks.absent == 8U);
}

// libhdf5 lists the chunks of an extensible-array index at wrong coordinates where the unlimited dimension is not the first.
BOOST_AUTO_TEST_CASE(every_chunk_index_gives_right_coordinates) {
  const hsize_t unlimited = H5S_UNLIMITED;
  const std::vector<std::pair<dims, const char*>> cases = {{{4, 6}, "fixed array"},
                                                           {{10, unlimited}, "extensible array"},
                                                           {{unlimited, 6}, "extensible array, first"},
                                                           {{unlimited, unlimited}, "B-tree"}};
  for (const bool latest : {false, true}) {
    for (const auto& [max, name] : cases) {
      BOOST_TEST_CONTEXT(name << (latest ? ", latest" : ", earliest")) {
        const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
        if (latest) check(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "set versions");
        conversion c(H5P_DEFAULT, access);
        c.dataset("x", H5T_STD_I32LE, {4, 6}, numbers(24), chunked({2, 3}), max);
        BOOST_TEST(!c.run().has_losses());
        BOOST_TEST((c.chunk("x/c/0/1") == bytes_of(std::vector<std::int32_t>{4, 5, 6, 10, 11, 12})));
        BOOST_TEST((c.chunk("x/c/1/0") == bytes_of(std::vector<std::int32_t>{13, 14, 15, 19, 20, 21})));
        BOOST_TEST(c.entry("/x").chunks.raw == 4U);
        if (max[1] == unlimited) BOOST_TEST(c.notes("x")["maxshape"][1].is_null());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(chunks_left_behind_by_shrinking_are_not_converted) {
  const handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties");
  conversion c(H5P_DEFAULT, access);
  {
    const handle d = c.dataset("x", H5T_STD_I32LE, {6}, numbers(6), chunked({2}), {H5S_UNLIMITED});
    const hsize_t smaller[] = {3};
    check(H5Dset_extent(d, smaller), "shrink");
  }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST(c.has("x/c/1"));
  BOOST_TEST(!c.has("x/c/2"));
}

BOOST_AUTO_TEST_CASE(a_user_block_moves_nothing) {
  const handle creation(H5Pcreate(H5P_FILE_CREATE), "make properties");
  check(H5Pset_userblock(creation, 512), "set the user block");
  conversion c(creation, H5P_DEFAULT);
  c.dataset("contiguous", H5T_STD_I32LE, {6}, numbers(6));
  c.dataset("chunked", H5T_STD_I32LE, {6}, numbers(6), chunked({6}));
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("contiguous/c/0") == bytes_of(numbers(6))));
  BOOST_TEST((c.chunk("chunked/c/0") == bytes_of(numbers(6))));
}

BOOST_AUTO_TEST_CASE(compact_scalar_empty_and_null) {
  conversion c;
  const handle compact(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  check(H5Pset_layout(compact, H5D_COMPACT), "set the layout");
  c.dataset("compact", H5T_STD_I32LE, {6}, numbers(6), compact);
  c.dataset("empty", H5T_STD_I32LE, {0, 3});
  for (const bool null : {false, true}) {
    const handle space(H5Screate(null ? H5S_NULL : H5S_SCALAR), "space");
    const handle d(H5Dcreate2(c.file(), null ? "null" : "scalar", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                   "dataset");
    const std::int32_t v = 7;
    if (!null) check(H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &v), "write");
  }
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("compact/c/0") == bytes_of(numbers(6))));
  BOOST_TEST((c.chunk("scalar/c") == bytes_of(std::vector<std::int32_t>{7})));
  BOOST_TEST(c.meta("scalar")["shape"] == json::array());
  BOOST_TEST(c.meta("empty")["shape"] == (json{0, 3}));
  BOOST_TEST(c.meta("empty")["chunk_grid"]["configuration"]["chunk_shape"][0] == 1);
  BOOST_TEST(!c.has("empty/c"));
  BOOST_TEST(c.meta("null")["shape"] == json::array({0}));
  BOOST_TEST(c.notes("null")["null_dataspace"] == true);
  BOOST_TEST((c.entry("/null").outcome == zarrbits::outcome::mapped));
}

BOOST_AUTO_TEST_CASE(external_and_virtual_values_are_read) {
  conversion c;
  const auto v = numbers(6);
  const std::string raw = c.folder() / "raw.bin";
  std::ofstream(raw, std::ios::binary) << "skip" << bytes_of(v);
  const handle external(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  check(H5Pset_external(external, raw.c_str(), 4, 24), "set the external file");
  c.dataset("external", H5T_STD_I32LE, {6}, external);
  c.dataset("part", H5T_STD_I32LE, {6}, v);
  const handle virtual_(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  const hsize_t two[] = {3, 6}, one[] = {6}, first[] = {1, 0}, count[] = {1, 6};
  const handle whole(H5Screate_simple(2, two, nullptr), "space"), part(H5Screate_simple(1, one, nullptr), "space");
  check(H5Sselect_hyperslab(whole, H5S_SELECT_SET, first, nullptr, count, nullptr), "select");
  const std::int32_t fill = 9;
  check(H5Pset_fill_value(virtual_, H5T_NATIVE_INT32, &fill), "fill");
  check(H5Pset_virtual(virtual_, whole, ".", "part", part), "map");
  c.dataset("virtual", H5T_STD_I32LE, {3, 6}, virtual_);
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST((c.chunk("external/c/0") == bytes_of(v)));
  const std::string bytes = c.chunk("virtual/c/0/0");
  BOOST_TEST((bytes.substr(24, 24) == bytes_of(v)));
  BOOST_TEST((bytes.substr(0, 24) == bytes_of(std::vector<std::int32_t>(6, 9))));
}

BOOST_AUTO_TEST_CASE(sources_of_a_virtual_dataset_that_are_gone_are_a_loss) {
  conversion c;
  const handle p(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  const hsize_t size[] = {6};
  const handle space(H5Screate_simple(1, size, nullptr), "space");
  check(H5Pset_virtual(p, space, "gone.h5", "x", space), "map");
  c.dataset("virtual", H5T_STD_I32LE, {6}, p);
  BOOST_TEST(c.run().has_losses());
  BOOST_TEST(c.entry("/virtual").lossy);
  BOOST_TEST(!c.has("virtual/c/0"));
}

BOOST_AUTO_TEST_CASE(external_values_that_are_gone_are_skipped_with_a_reason) {
  conversion c;
  const handle external(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  check(H5Pset_external(external, (c.folder() / "gone.bin").c_str(), 0, 24), "set the external file");
  c.dataset("external", H5T_STD_I32LE, {6}, external);
  c.dataset("there", H5T_STD_I32LE, {6}, numbers(6));
  BOOST_TEST(c.run().has_losses());
  BOOST_TEST((c.entry("/external").outcome == zarrbits::outcome::skipped));
  BOOST_TEST(c.entry("/external").reason.find("external") != std::string::npos);
  BOOST_TEST(!c.has("external/zarr.json"));
  BOOST_TEST(c.has("there/zarr.json"));
}

BOOST_AUTO_TEST_CASE(an_absurd_extent_without_data_costs_nothing) {
  conversion c;
  c.dataset("chunked", H5T_STD_U8LE, {hsize_t{1} << 40, hsize_t{1} << 20}, chunked({256, 256}));
  c.dataset("contiguous", H5T_STD_U8LE, {hsize_t{1} << 50});
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST(!c.has("chunked/c"));
  BOOST_TEST(!c.has("contiguous/c"));
  BOOST_TEST(c.meta("chunked")["shape"][0] == (std::uint64_t{1} << 40));
}

BOOST_AUTO_TEST_CASE(fill_values_are_bit_for_bit) {
  conversion c;
  const auto with = [&](const char* name, hid_t type, const void* fill) {
    const handle p = chunked({4});
    check(H5Pset_fill_value(p, type, fill), "fill");
    c.dataset(name, type, {4}, p);
  };
  const std::uint64_t nan = 0x7FF8000000000000, payload = 0x7FF8000000000001, negative_nan = 0xFFF8000000000000,
                      minus_zero = 0x8000000000000000, infinity = 0xFFF0000000000000, most = ~std::uint64_t{0};
  with("nan", H5T_IEEE_F64LE, &nan);
  with("payload", H5T_IEEE_F64LE, &payload);
  with("negative_nan", H5T_IEEE_F64LE, &negative_nan);
  with("minus_zero", H5T_IEEE_F64LE, &minus_zero);
  with("infinity", H5T_IEEE_F64LE, &infinity);
  with("most", H5T_STD_U64LE, &most);
  const float tenth = 0.1F;
  with("tenth", H5T_IEEE_F32LE, &tenth);
  c.dataset("default", H5T_IEEE_F32LE, {4}, chunked({4}));
  BOOST_TEST(!c.run().has_losses());
  BOOST_TEST(c.meta("nan")["fill_value"] == "NaN");
  BOOST_TEST(c.meta("payload")["fill_value"] == "0x7ff8000000000001");
  BOOST_TEST(c.meta("negative_nan")["fill_value"] == "0xfff8000000000000");
  BOOST_TEST(std::signbit(c.meta("minus_zero")["fill_value"].get<double>()));
  BOOST_TEST(c.meta("infinity")["fill_value"] == "-Infinity");
  BOOST_TEST(c.meta("most")["fill_value"] == most);
  BOOST_TEST(c.meta("tenth")["fill_value"].get<float>() == tenth);
  BOOST_TEST(c.meta("default")["fill_value"] == 0.0);
}
