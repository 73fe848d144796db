// SPDX-License-Identifier: BSL-1.0
//
// read_chunks() and write_chunks() of <zarrbits/hdf5.hpp> with ZARRBITS_HDF5_DECODERS, beside H5Dread and H5Dwrite.
//
#include <zarrbits/hdf5.hpp>
#include <zarrbits/hdf5_decoders.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using zarrbits::errc;
namespace rows = zarrbits::hdf5;

struct memory_file {
  hid_t id;
  memory_file() {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 20, 0);
    id = H5Fcreate("reader_rows.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
  }
  ~memory_file() { H5Fclose(id); }

  // 23 x 10 numbers in chunks of 4 x 7.
  hid_t create(hid_t type, const std::function<void(hid_t)>& filters) const {
    const hsize_t shape[] = {23, 10}, chunk[] = {4, 7};
    const hid_t space = H5Screate_simple(2, shape, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 2, chunk);
    const std::int32_t fill = -3;
    H5Pset_fill_value(properties, H5T_NATIVE_INT32, &fill);
    filters(properties);
    const hid_t d = H5Dcreate2(id, "d", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Ldelete(id, "d", H5P_DEFAULT);
    H5Pclose(properties);
    H5Sclose(space);
    BOOST_TEST_REQUIRE(d >= 0);
    return d;
  }
};

std::vector<std::int32_t> some_numbers() {
  std::vector<std::int32_t> values(230);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * i % 1000) - 300;
  return values;
}

void set_lzf(hid_t p) { H5Pset_filter(p, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_pipeline_is_read_as_H5Dread_reads_it) {
  const memory_file file;
  const std::pair<const char*, std::function<void(hid_t)>> pipelines[] = {
      {"deflate", [](hid_t p) { H5Pset_deflate(p, 4); }},
      {"shuffle, deflate", [](hid_t p) { H5Pset_shuffle(p), H5Pset_deflate(p, 4); }},
      {"fletcher32", [](hid_t p) { H5Pset_fletcher32(p); }},
      {"shuffle, deflate, fletcher32", [](hid_t p) { H5Pset_shuffle(p), H5Pset_deflate(p, 4), H5Pset_fletcher32(p); }},
      {"scaleoffset", [](hid_t p) { H5Pset_scaleoffset(p, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT); }},
      {"nbit, deflate", [](hid_t p) { H5Pset_nbit(p), H5Pset_deflate(p, 4); }},
  };
  const std::vector<std::int32_t> values = some_numbers();
  for (const auto& [name, filters] : pipelines) {
    for (const hid_t type : {H5T_STD_I32LE, H5T_STD_I32BE}) {
      BOOST_TEST_CONTEXT(name) {
        const hid_t d = file.create(type, filters);
        const hsize_t start[] = {0, 0}, count[] = {19, 10};  // the last rows are never written
        const hid_t space = H5Dget_space(d), part = H5Screate_simple(2, count, nullptr);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
        BOOST_TEST(H5Dwrite(d, H5T_NATIVE_INT32, part, space, H5P_DEFAULT, values.data()) >= 0);
        std::vector<std::int32_t> expected(230), result(230);
        BOOST_TEST(H5Dread(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()) >= 0);
        for (const unsigned threads : {1U, 3U}) {
          rows::read_chunks(d, 0, result, {.threads = threads});
          BOOST_TEST(result == expected);
          std::vector<std::int32_t> middle(50);
          rows::read_chunks(d, 3, middle, {.threads = threads});
          BOOST_TEST(middle == std::vector<std::int32_t>(expected.begin() + 30, expected.begin() + 80));
          // every third row, every second column
          std::vector<std::int32_t> thinned(7 * 4), in_box;
          for (std::size_t row = 1; row < 22; row += 3) {
            for (std::size_t column = 2; column < 10; column += 2) in_box.push_back(expected[10 * row + column]);
          }
          const auto counts =
              rows::read_chunks(d, {.first = {1, 2}, .count = {7, 4}, .step = {3, 2}}, thinned, {.threads = threads});
          BOOST_TEST(thinned == in_box);
          BOOST_TEST(counts.libhdf5_values == 0U);
          BOOST_TEST(counts.chunks == 10U);  // of 12: two are not there
        }
        H5Sclose(space);
        H5Sclose(part);
        H5Dclose(d);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(filters_without_a_plugin_masks_and_damage) {
  const memory_file file;
  BOOST_TEST_REQUIRE(H5Zfilter_avail(32000) <= 0, "this libhdf5 has LZF, and the test would show nothing");
  const hid_t d = file.create(H5T_NATIVE_INT32, set_lzf);
  std::vector<std::int32_t> chunk(28, 5), result(40);
  std::vector<unsigned char> literal;  // LZF: a run of at most 32 bytes after its length
  for (std::size_t i = 0; i < 112; i += 28) {
    literal.push_back(27);
    const auto* bytes = reinterpret_cast<const unsigned char*>(chunk.data()) + i;
    literal.insert(literal.end(), bytes, bytes + 28);
  }
  const hsize_t first[] = {0, 0}, second[] = {0, 7};
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 0, first, literal.size(), literal.data()) >= 0);
  chunk.assign(28, 6);
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 1, second, 112, chunk.data()) >= 0);  // the filter was left out
  rows::read_chunks(d, 0, result);
  for (std::size_t i = 0; i < 40; ++i) BOOST_TEST(result[i] == (i % 10 < 7 ? 5 : 6));
  literal[0] = 31;
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 0, first, literal.size(), literal.data()) >= 0);
  BOOST_CHECK_EXCEPTION(rows::read_chunks(d, 0, result), zarrbits::error, [](const zarrbits::error& e) {
    return e.kind() == errc::damaged_source && std::string(e.what()).find("the chunk at (0, 0) is damaged") != std::string::npos;
  });
  H5Dclose(d);
}

BOOST_AUTO_TEST_CASE(every_pipeline_with_encoders_is_written_as_H5Dwrite_writes_it) {
  const memory_file file;
  struct form {
    const char* name;
    std::function<void(hid_t)> filters;
    bool is_encoded;
  };
  const form forms[] = {
      {"deflate", [](hid_t p) { H5Pset_deflate(p, 4); }, true},
      {"shuffle, deflate, fletcher32", [](hid_t p) { H5Pset_shuffle(p), H5Pset_deflate(p, 1), H5Pset_fletcher32(p); }, true},
      {"fletcher32", [](hid_t p) { H5Pset_fletcher32(p); }, true},
      {"scaleoffset", [](hid_t p) { H5Pset_scaleoffset(p, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT); }, false},
      {"edges without filters", [](hid_t p) { H5Pset_deflate(p, 4), H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS); },
       false},
  };
  const std::vector<std::int32_t> values = some_numbers();
  for (const form& f : forms) {
    for (const hid_t type : {H5T_STD_I32LE, H5T_STD_I32BE}) {
      BOOST_TEST_CONTEXT(f.name) {
        const hid_t d = file.create(type, f.filters);
        const std::vector<std::int32_t> before(230, 9), middle(values.begin() + 30, values.begin() + 130);
        std::vector<std::int32_t> result(230), expected = before;
        // in libhdf5's cache of chunks, and not in the file
        BOOST_TEST(H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, before.data()) >= 0);
        const rows::chunk_counts part = rows::write_chunks(d, 3, middle, {.threads = 3});  // rows 4 to 11 are whole chunks
        std::copy(middle.begin(), middle.end(), expected.begin() + 30);
        BOOST_TEST(H5Dread(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.data()) >= 0);
        BOOST_TEST(result == expected);
        BOOST_TEST(part.chunks == (f.is_encoded ? 4U : 0U));
        BOOST_TEST(part.libhdf5_values == (f.is_encoded ? 20U : 100U));
        const rows::chunk_counts all = rows::write_chunks(d, 0, values, {.threads = 3});
        BOOST_TEST(H5Dread(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.data()) >= 0);
        BOOST_TEST(result == values);
        BOOST_TEST(all.chunks == (f.is_encoded ? 12U : 0U));
        BOOST_TEST(all.libhdf5_values == (f.is_encoded ? 0U : 230U));
        H5Dclose(d);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(chunks_alone) {
  const std::vector<rows::chunk_filter> checksum = {{3, {}}}, unknown = {{3, {}}, {31999, {}}};
  const unsigned char stored[] = {1, 2, 3, 4, 0, 0, 0, 0};
  std::byte values[4] = {};
  BOOST_TEST(rows::has_decoders(checksum));
  BOOST_TEST(!rows::has_decoders(unknown));
  const auto bytes = std::as_bytes(std::span(stored));
  rows::decode_chunk(checksum, 1, bytes.first(4), values);  // left out
  BOOST_TEST(std::memcmp(values, stored, 4) == 0);
  BOOST_CHECK_EXCEPTION(rows::decode_chunk(unknown, 0, bytes, values), zarrbits::error,
                        [](const zarrbits::error& e) { return e.kind() == errc::unsupported; });
  BOOST_CHECK_EXCEPTION(rows::decode_chunk(checksum, 0, bytes.first(3), values), zarrbits::error,
                        [](const zarrbits::error& e) { return e.kind() == errc::damaged_source; });
  // filters that plugins have; tests/python has them beside the plugins
  for (const rows::chunk_filter& f : std::vector<rows::chunk_filter>{{307, {9}},
                                                                     {32004, {}},
                                                                     {32015, {3}},
                                                                     {32000, {}},
                                                                     {32001, {2, 2, 4, 400, 5, 1, 5}},
                                                                     {32001, {2, 2, 4, 400, 5, 2, 1}},
                                                                     {32008, {0, 4, 4, 0, 0}},
                                                                     {32008, {0, 4, 4, 0, 2}},
                                                                     {32008, {0, 4, 1, 64, 2}},
                                                                     {32008, {0, 4, 2, 8, 3, 5}},
                                                                     {32008, {0, 4, 12, 0, 2}}}) {
    for (const std::size_t size : {400U, 4096U * 3, 12U}) {
      std::vector<std::byte> numbers(size), decoded(size);
      for (std::size_t i = 0; i < size; ++i) numbers[i] = i % 4 == 0 || size == 12 ? std::byte(i * i / 4) : std::byte{};
      if (size % 12 != 0 && f.values.size() > 4 && f.values[2] == 12) continue;
      const std::vector<rows::chunk_filter> pipeline = {{2, {4}}, f, {3, {}}};
      BOOST_TEST_REQUIRE(rows::has_encoders(pipeline));
      rows::decode_chunk(pipeline, 0, rows::encode_chunk(pipeline, numbers), decoded);
      BOOST_TEST((numbers == decoded), f.id << " of " << size);
    }
  }
  const std::vector<rows::chunk_filter> bits = {{H5Z_FILTER_NBIT, {}}}, level = {{1, {10}}},
                                        compressor = {{32001, {2, 2, 4, 4, 5, 1, 6}}};
  BOOST_TEST(!rows::has_encoders(bits));
  BOOST_TEST(!rows::has_encoders(level));
  BOOST_CHECK_EXCEPTION(rows::encode_chunk(bits, bytes), zarrbits::error,
                        [](const zarrbits::error& e) { return e.kind() == errc::unsupported; });
  BOOST_CHECK_EXCEPTION(rows::encode_chunk(compressor, bytes), zarrbits::error,
                        [](const zarrbits::error& e) { return e.kind() == errc::io_failed; });
}
