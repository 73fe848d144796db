// SPDX-License-Identifier: BSL-1.0
//
// <zarrbits/hdf5.hpp> beside H5Dwrite() and H5Dread() through the plugins: the same bytes in the file, chunk by chunk, and the
// same values, whatever the dataset is.
//
#include <zarrbits/hdf5.hpp>

#define BOOST_TEST_MODULE filter_rows
#include <boost/test/unit_test.hpp>

#include "tests/filter/rows_support.hpp"

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace rows = zarrbits::hdf5;

namespace {

struct form {
  std::string name;
  hid_t type;    // in the file
  hid_t memory;  // for H5Dwrite
  set_up filters;
  bool with_chunks = true;
};

template <class T>
std::vector<T> some_values(std::size_t n, unsigned bits, bool with_misfits) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = static_cast<T>(random() & ((1u << bits) - 1));
    if (with_misfits && i % (n / 3 + 1) == 7) v[i] = static_cast<T>(1u << bits);
  }
  return v;
}

herr_t transfer_rows(hid_t d, hid_t memory, hsize_t first, hsize_t count, std::vector<hsize_t> shape, void* values, bool write) {
  std::vector<hsize_t> start(shape.size(), 0);
  start[0] = first;
  shape[0] = count;
  const hid_t fs = H5Dget_space(d), ms = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  H5Sselect_hyperslab(fs, H5S_SELECT_SET, start.data(), nullptr, shape.data(), nullptr);
  const herr_t status =
      write ? H5Dwrite(d, memory, ms, fs, H5P_DEFAULT, values) : H5Dread(d, memory, ms, fs, H5P_DEFAULT, values);
  H5Sclose(fs);
  H5Sclose(ms);
  return status;
}

template <class T>
void compare(const form& how, const std::vector<hsize_t>& shape, const std::vector<hsize_t>& chunk, unsigned bits,
             bool with_misfits) {
  const file f;
  std::size_t row = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) row *= static_cast<std::size_t>(shape[d]);
  std::vector<T> values = some_values<T>(row * static_cast<std::size_t>(shape[0]), bits, with_misfits);
  int number = 0;
  for (const auto& [first, count] : {std::pair<hsize_t, hsize_t>{0, shape[0]}, {0, chunk[0]}, {1, shape[0] - 1}, {2, 3}}) {
    if (first + count > shape[0]) continue;
    for (const unsigned threads : {1u, 2u, 5u}) {
      BOOST_TEST_CONTEXT(how.name << ", rows " << first << " + " << count << ", " << threads << " threads") {
        const std::string name = std::to_string(number++);
        const auto chunked = how.with_chunks ? chunk : std::vector<hsize_t>{};
        const hid_t theirs = make(f, "theirs" + name, how.type, shape, chunked, how.filters),
                    ours = make(f, "ours" + name, how.type, shape, chunked, how.filters);
        const std::size_t begin = static_cast<std::size_t>(first) * row, n = static_cast<std::size_t>(count) * row;
        const std::span<T> part(values.data() + begin, n);
        BOOST_TEST(transfer_rows(theirs, how.memory, first, count, shape, part.data(), true) >= 0);
        rows::write_chunks(ours, first, part, {.threads = threads});
        if (how.with_chunks) BOOST_TEST((chunks_of(ours, shape, chunk) == chunks_of(theirs, shape, chunk)));
        // all rows, written or not
        std::vector<T> wanted(values.size(), T(1)), got(values.size(), T(1));
        BOOST_TEST(transfer_rows(theirs, how.memory, 0, shape[0], shape, wanted.data(), false) >= 0);
        rows::read_chunks(theirs, 0, got, {.threads = threads});
        BOOST_TEST((std::memcmp(got.data(), wanted.data(), n * sizeof(T)) == 0));
        BOOST_TEST((std::memcmp(wanted.data() + begin, part.data(), n * sizeof(T)) == 0));
        std::vector<T> some(n, T(1));
        rows::read_chunks(ours, first, some, {.threads = threads});
        BOOST_TEST((std::memcmp(some.data(), part.data(), n * sizeof(T)) == 0));
        H5Dclose(theirs);
        H5Dclose(ours);
      }
    }
  }
}

const std::vector<std::pair<std::vector<hsize_t>, std::vector<hsize_t>>> shapes = {
    {{12, 10, 16}, {1, 10, 16}},  // frames
    {{12, 10, 16}, {4, 10, 16}},
    {{13, 11, 9}, {4, 4, 4}},  // every chunk of the last ones reaches over an edge
    {{9, 16}, {3, 40}},        // wider than the dataset
    {{1000}, {64}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(twelve_bits_with_and_without_values_that_do_not_fit) {
  const auto fill = [](hid_t p) {
    const std::uint16_t value = 77;
    H5Pset_fill_value(p, H5T_NATIVE_UINT16, &value);
    packed(12)(p);
  };
  const auto fill_that_does_not_fit = [](hid_t p) {
    const std::uint16_t value = 65535;
    H5Pset_fill_value(p, H5T_NATIVE_UINT16, &value);
    packed(12)(p);
  };
  const auto never = [](hid_t p) {
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    packed(12)(p);
  };
  const form forms[] = {{"little endian", H5T_STD_U16LE, H5T_NATIVE_UINT16, packed(12)},
                        {"big endian", H5T_STD_U16BE, H5T_NATIVE_UINT16, packed(12)},
                        {"count byte first", H5T_STD_U16LE, H5T_NATIVE_UINT16, packed(12, ZARRBITS_HDF5_PADDING_FIRST_BYTE)},
                        {"count byte last", H5T_STD_U16BE, H5T_NATIVE_UINT16, packed(12, ZARRBITS_HDF5_PADDING_LAST_BYTE)},
                        {"fill value", H5T_STD_U16LE, H5T_NATIVE_UINT16, fill},
                        {"fill value that does not fit", H5T_STD_U16LE, H5T_NATIVE_UINT16, fill_that_does_not_fit},
                        {"never filled", H5T_STD_U16LE, H5T_NATIVE_UINT16, never}};
  for (const form& how : forms)
    for (const auto& [shape, chunk] : shapes)
      for (const bool misfits : {false, true}) compare<std::uint16_t>(how, shape, chunk, 12, misfits);
}

BOOST_AUTO_TEST_CASE(other_filters_and_none) {
  const auto deflated = [](hid_t p) {
    packed(12)(p);
    H5Pset_deflate(p, 1);
  };
  const auto reversed = [](hid_t p) { BOOST_TEST_REQUIRE(H5Pset_zarrbits_bytes(p, 1) >= 0); };
  const auto checked = [](hid_t p) {
    H5Pset_fletcher32(p);
    packed(12)(p);
  };
  const auto partial_unfiltered = [](hid_t p) {
    packed(12)(p);
    H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  };
  const form forms[] = {{"no filter", H5T_STD_U16LE, H5T_NATIVE_UINT16, none},
                        {"no filter, big endian", H5T_STD_U16BE, H5T_NATIVE_UINT16, none},
                        {"contiguous", H5T_STD_U16BE, H5T_NATIVE_UINT16, none, false},
                        {"bytes", H5T_STD_U16LE, H5T_NATIVE_UINT16, reversed},
                        {"bytes of big endian", H5T_STD_U16BE, H5T_NATIVE_UINT16, reversed},
                        {"deflate after packbits", H5T_STD_U16LE, H5T_NATIVE_UINT16, deflated},
                        {"fletcher32 before packbits", H5T_STD_U16LE, H5T_NATIVE_UINT16, checked},
                        {"partial chunks without filters", H5T_STD_U16LE, H5T_NATIVE_UINT16, partial_unfiltered}};
  for (const form& how : forms)
    for (const auto& [shape, chunk] : shapes) compare<std::uint16_t>(how, shape, chunk, 12, true);
}

// fletcher32 and deflate after ours are done here, too; zlib is libhdf5's own.
BOOST_AUTO_TEST_CASE(filters_after_ours) {
  const auto with = [](const set_up& first, const std::vector<set_up>& after) -> set_up {
    return [=](hid_t p) {
      first(p);
      for (const set_up& f : after) f(p);
    };
  };
  const set_up deflate = [](hid_t p) { H5Pset_deflate(p, 4); }, checksum = [](hid_t p) { H5Pset_fletcher32(p); },
               shuffle = [](hid_t p) { H5Pset_shuffle(p); };
  const set_up reversed = [](hid_t p) { BOOST_TEST_REQUIRE(H5Pset_zarrbits_bytes(p, 1) >= 0); },
               as_it_is = [](hid_t p) { BOOST_TEST_REQUIRE(H5Pset_zarrbits_bytes(p, 0) >= 0); };
  const set_up filled = [](hid_t p) {
    const std::uint16_t value = 77;
    H5Pset_fill_value(p, H5T_NATIVE_UINT16, &value);
    packed(11, ZARRBITS_HDF5_PADDING_LAST_BYTE)(p);
  };
  const hid_t le = H5T_STD_U16LE, be = H5T_STD_U16BE, native = H5T_NATIVE_UINT16;
  const form forms[] = {{"fletcher32", le, native, with(packed(12), {checksum})},
                        {"deflate, fletcher32", be, native, with(packed(12), {deflate, checksum})},
                        {"fletcher32, deflate", le, native, with(packed(12), {checksum, deflate})},
                        {"deflate twice", le, native, with(filled, {deflate, deflate})},
                        {"shuffle, deflate", le, native, with(packed(12), {shuffle, deflate})},
                        {"bytes, deflate", le, native, with(as_it_is, {deflate})},
                        {"bytes reversed, fletcher32", le, native, with(reversed, {checksum})}};
  for (const form& how : forms)
    for (const auto& [shape, chunk] : shapes)
      for (const bool misfits : {false, true}) compare<std::uint16_t>(how, shape, chunk, 11, misfits);
  compare<std::uint8_t>({"odd bytes", H5T_STD_U8LE, H5T_NATIVE_UINT8, with(packed(5), {checksum})}, {20, 7}, {3, 7}, 5, true);
}

BOOST_AUTO_TEST_CASE(damage_and_masks_of_filters_after_ours) {
  const file f;
  const auto both = [](hid_t p) {
    packed(12)(p);
    H5Pset_deflate(p, 4);
    H5Pset_fletcher32(p);
  };
  const hid_t d = make(f, "x", H5T_STD_U16LE, {8, 64}, {2, 64}, both);
  const std::vector<std::uint16_t> values = some_values<std::uint16_t>(512, 12, false);
  std::vector<std::uint16_t> all(512);
  const hsize_t at[] = {4, 0};
  const auto stored = [&] {
    rows::write_chunks(d, 0, values);
    return chunks_of(d, {8, 64}, {2, 64}).at(2).second;
  };
  const auto is_damaged = [&](const std::vector<unsigned char>& bytes, const std::string& words) {
    BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, bytes.size(), bytes.data()) >= 0);
    for (const unsigned threads : {1u, 3u}) {
      try {
        rows::read_chunks(d, 0, all, {.threads = threads});
        BOOST_ERROR("nothing was thrown: " + words);
      } catch (const zarrbits::error& e) {
        BOOST_TEST((e.kind() == zarrbits::errc::damaged_source), e.what());
        BOOST_TEST(std::string(e.what()).find(words) != std::string::npos, e.what());
        BOOST_TEST(std::string(e.what()).find("dataset \"/x\" of \"filter_rows.h5\": the chunk at (4, 0) is") == 0, e.what());
        BOOST_TEST(e.place().file == "filter_rows.h5");
        BOOST_TEST(e.place().object == "/x");
      }
    }
  };
  auto bytes = stored();
  bytes[20] ^= 1;
  is_damaged(bytes, "fletcher32");
  is_damaged({1, 2, 3}, "shorter than its checksum");
  is_damaged({0, 0, 0, 0}, "zlib");
  // written again as HDF5 allows it: a filter left out, and bytes that no chunk has
  bytes = stored();
  bytes.resize(bytes.size() - 4);
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 4, at, bytes.size(), bytes.data()) >= 0);
  rows::read_chunks(d, 0, all);
  BOOST_TEST((all == values));
  const std::vector<char> far_too_long(100000);
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, far_too_long.size(), far_too_long.data()) >= 0);
  BOOST_CHECK_THROW(rows::read_chunks(d, 0, all), zarrbits::error);
  H5Dclose(d);
}

BOOST_AUTO_TEST_CASE(a_chunk_that_replaces_one_without_filters_has_them) {
  const file f;
  const auto swapped = [](hid_t p) { BOOST_TEST_REQUIRE(H5Pset_zarrbits_bytes(p, 1) >= 0); };
  const auto checked = [](hid_t p) {
    packed(12)(p);
    H5Pset_fletcher32(p);
  };
  const std::vector<std::uint16_t> values = some_values<std::uint16_t>(64, 12, false);
  std::vector<std::uint16_t> all(64);
  const hsize_t at[] = {0};
  int number = 0;
  for (const auto& [filters, size] :
       {std::pair<set_up, std::size_t>(swapped, 128), std::pair<set_up, std::size_t>(checked, 100)}) {
    const hid_t d = make(f, "x" + std::to_string(number++), H5T_STD_U16LE, {64}, {64}, filters);
    const std::vector<char> other(size, 1);
    BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 1, at, other.size(), other.data()) >= 0);
    BOOST_TEST(chunks_of(d, {64}, {64}).at(0).first == 1u);
    rows::write_chunks(d, 0, values);
    const auto chunk = chunks_of(d, {64}, {64}).at(0);
    BOOST_TEST(chunk.first == 0u);
    BOOST_TEST(chunk.second.size() == size);
    BOOST_TEST(H5Dread(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()) >= 0);
    BOOST_TEST((all == values));
    rows::read_chunks(d, 0, all);
    BOOST_TEST((all == values));
    H5Dclose(d);
  }
}

BOOST_AUTO_TEST_CASE(other_types) {
  const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
  for (const auto& [name, value] : {std::pair<const char*, signed char>{"FALSE", 0}, {"TRUE", 1}})
    H5Tenum_insert(boolean, name, &value);
  const hid_t twelve = H5Tcopy(H5T_STD_U16LE);
  H5Tset_precision(twelve, 12);
  for (const auto& [shape, chunk] : shapes) {
    compare<std::uint8_t>({"booleans", boolean, boolean, packed(0)}, shape, chunk, 1, false);
    compare<std::uint8_t>({"booleans that are none", boolean, boolean, packed(0)}, shape, chunk, 1, true);
    compare<std::int32_t>({"int32", H5T_STD_I32BE, H5T_NATIVE_INT32, packed(20)}, shape, chunk, 19, true);
    compare<float>({"float32", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, packed(16, 0, 16)}, shape, chunk, 5, false);
    compare<double>({"float64", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, none}, shape, chunk, 20, false);
    compare<std::uint16_t>({"reduced precision", twelve, H5T_NATIVE_UINT16, packed(0)}, shape, chunk, 12, false);
    compare<std::uint32_t>({"converted by HDF5", H5T_STD_U16LE, H5T_NATIVE_UINT32, packed(12)}, shape, chunk, 12, false);
  }
  H5Tclose(boolean);
  H5Tclose(twelve);
}

BOOST_AUTO_TEST_CASE(structs_and_complex_numbers_are_their_bytes) {
  const file f;
  const hid_t complex = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(complex, "r", 0, H5T_IEEE_F32LE);
  H5Tinsert(complex, "i", 4, H5T_IEEE_F32LE);
  const hid_t d = make(f, "x", complex, {10, 4}, {3, 4}, none), p = make(f, "p", complex, {10, 4}, {3, 4}, packed(32));
  std::vector<std::complex<float>> values(40), back(40);
  for (std::size_t i = 0; i < 40; ++i) values[i] = {static_cast<float>(i), -1};
  for (const hid_t id : {d, p}) {
    rows::write_chunks(id, 0, values);
    BOOST_TEST(H5Dread(id, complex, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
    BOOST_TEST((back == values));
    rows::read_chunks(id, 0, back);
    BOOST_TEST((back == values));
    H5Dclose(id);
  }
  H5Tclose(complex);
}

BOOST_AUTO_TEST_CASE(what_is_in_the_chunk_cache_counts) {
  const file f;
  const hid_t d = make(f, "x", H5T_STD_U16LE, {8, 64}, {2, 64}, packed(12));
  std::vector<std::uint16_t> ones(512, 1), values = some_values<std::uint16_t>(512, 12, true), back(512);
  BOOST_TEST(H5Dwrite(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data()) >= 0);
  rows::read_chunks(d, 0, back);
  BOOST_TEST((back == ones));
  rows::write_chunks(d, 0, values);
  BOOST_TEST(H5Dread(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
  BOOST_TEST((back == values));
  H5Dclose(d);
}

BOOST_AUTO_TEST_CASE(truncation_drops_bits_as_the_plugin_does) {
  const file f;
  const hid_t theirs = make(f, "t", H5T_STD_U16LE, {8, 64}, {2, 64}, packed(12, ZARRBITS_HDF5_RANGE_TRUNCATE)),
              ours = make(f, "o", H5T_STD_U16LE, {8, 64}, {2, 64}, packed(12, ZARRBITS_HDF5_RANGE_TRUNCATE));
  std::vector<std::uint16_t> v(512, 0xFABC);
  BOOST_TEST(H5Dwrite(theirs, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()) >= 0);
  rows::write_chunks(ours, 0, v);
  BOOST_TEST((chunks_of(ours, {8, 64}, {2, 64}) == chunks_of(theirs, {8, 64}, {2, 64})));
  H5Dclose(theirs);
  H5Dclose(ours);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_a_sentence) {
  const file f;
  const auto says = [](zarrbits::errc code, const std::string& words, const auto& what) {
    try {
      what();
      BOOST_ERROR("nothing was thrown: " + words);
    } catch (const zarrbits::error& e) {
      BOOST_TEST((e.kind() == code), e.what());
      BOOST_TEST(std::string(e.what()).find(words) != std::string::npos, e.what());
    }
  };
  const hid_t d = make(f, "camera", H5T_STD_U16LE, {8, 64}, {2, 64}, packed(12));
  std::vector<std::uint16_t> v(65), rows_of_two(128);
  struct odd {
    char bytes[3];
  };
  std::vector<odd> odds(64);
  using zarrbits::errc;
  says(errc::element_count_mismatch, "\"/camera\"", [&] { rows::write_chunks(d, 0, v); });
  says(errc::invalid_range, "rows 7 to 9 of 8", [&] { rows::write_chunks(d, 7, rows_of_two); });
  says(errc::invalid_range, "rows 9 to 11 of 8", [&] { rows::read_chunks(d, 9, rows_of_two); });
  says(errc::unsupported_data_type, "2 bytes", [&] { rows::write_chunks(d, 0, odds); });
  says(errc::io_failed, "not an open dataset", [&] { rows::write_chunks(f.id, 0, v); });
  // a damaged chunk: HDF5's own error
  const hsize_t at[] = {4, 0};
  const char broken[10] = {};
  BOOST_TEST(H5Dwrite_chunk(d, H5P_DEFAULT, 0, at, sizeof broken, broken) >= 0);
  std::vector<std::uint16_t> all(512);
  for (const unsigned threads : {1u, 3u})
    says(errc::io_failed, "10 bytes in the file instead of 192", [&] { rows::read_chunks(d, 0, all, {.threads = threads}); });
  const hid_t counted = make(f, "counted", H5T_STD_U16LE, {8, 63}, {1, 63}, packed(12, ZARRBITS_HDF5_PADDING_FIRST_BYTE));
  std::vector<char> chunk(96, '\7');  // 95 bytes of values, and 4 bits of padding
  const hsize_t second[] = {1, 0};
  BOOST_TEST(H5Dwrite_chunk(counted, H5P_DEFAULT, 0, second, chunk.size(), chunk.data()) >= 0);
  all.resize(8 * 63);
  for (const unsigned threads : {1u, 3u})
    says(errc::damaged_source, "dataset \"/counted\" of \"filter_rows.h5\": the chunk at (1, 0) is damaged: packbits",
         [&] { rows::read_chunks(counted, 0, all, {.threads = threads}); });
  H5Dclose(counted);
  H5Dclose(d);
  const hid_t scalar_space = H5Screate(H5S_SCALAR);
  const hid_t scalar = H5Dcreate2(f.id, "scalar", H5T_STD_U16LE, scalar_space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  says(errc::invalid_range, "no dimension", [&] { rows::write_chunks(scalar, 0, v); });
  H5Dclose(scalar);
  H5Sclose(scalar_space);
}

// HDF5 would keep such chunks in memory, and give them to whoever reads.
BOOST_AUTO_TEST_CASE(a_file_open_for_reading_only_is_not_written) {
  const std::string name = "filter_rows_read_only.h5";
  const std::vector<hsize_t> shape = {8, 64}, chunk = {2, 64};
  const std::vector<std::uint16_t> ones(512, 1), twos(512, 2);
  {
    const hid_t id = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (const auto& [dataset, filters] : {std::pair<const char*, set_up>{"packed", packed(12)}, {"plain", none}}) {
      const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape.data(), nullptr);
      H5Pset_chunk(dcpl, 2, chunk.data());
      filters(dcpl);
      const hid_t d = H5Dcreate2(id, dataset, H5T_STD_U16BE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
      BOOST_TEST_REQUIRE(d >= 0);
      rows::write_chunks(d, 0, std::span(ones).first(256));
      H5Dclose(d);
      H5Sclose(space);
      H5Pclose(dcpl);
    }
    H5Fclose(id);
  }
  const hid_t id = H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  for (const char* dataset : {"packed", "plain"}) {
    const hid_t d = H5Dopen2(id, dataset, H5P_DEFAULT);
    for (const hsize_t first : {hsize_t{0}, hsize_t{4}, hsize_t{1}}) {
      try {
        rows::write_chunks(d, first, std::span(twos).first(128));
        BOOST_ERROR("it was written");
      } catch (const zarrbits::error& e) {
        BOOST_TEST((e.kind() == zarrbits::errc::io_failed));
        BOOST_TEST(std::string(e.what()) ==
                   "dataset \"/" + std::string(dataset) + "\" of \"" + name +
                       "\": its file is open for reading only; open it with H5F_ACC_RDWR to write to it");
      }
    }
    std::vector<std::uint16_t> back(512, 7), wanted = ones;
    std::fill(wanted.begin() + 256, wanted.end(), std::uint16_t{0});
    BOOST_TEST(H5Dread(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0);
    BOOST_TEST((back == wanted));
    rows::read_chunks(d, 0, back);
    BOOST_TEST((back == wanted));
    H5Dclose(d);
  }
  H5Fclose(id);
  std::remove(name.c_str());
}

// A program that only opens a dataset has no plugin until something asks HDF5 for it.
BOOST_AUTO_TEST_CASE(the_plugin_is_asked_for) {
  const file f;
  const std::vector<hsize_t> shape = {10, 64}, chunk = {3, 64};
  const std::vector<std::uint16_t> values = some_values<std::uint16_t>(640, 12, false);
  const set_up mandatory = [](hid_t p) {
    const unsigned bits = 12;
    H5Pset_filter(p, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_MANDATORY, 1, &bits);
  };
  const set_up bytes = [](hid_t p) { H5Pset_zarrbits_bytes(p, 1); };
  const auto forget = [] {  // which fails for a filter that is not there
    const bool packbits = H5Zunregister(ZARRBITS_HDF5_PACKBITS_ID) >= 0, bytes_too = H5Zunregister(ZARRBITS_HDF5_BYTES_ID) >= 0;
    BOOST_TEST_REQUIRE((packbits || bytes_too));
  };
  for (const auto& [name, filters] :
       {std::pair<std::string, set_up>{"optional", packed(12)}, {"mandatory", mandatory}, {"bytes", bytes}}) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST_REQUIRE(zarrbits_hdf5_load() >= 0);
      for (const std::string& which : {"theirs " + name, "ours " + name})
        H5Dclose(make(f, which, H5T_STD_U16LE, shape, chunk, filters));
      const hid_t theirs = H5Dopen2(f.id, ("theirs " + name).c_str(), H5P_DEFAULT);
      BOOST_TEST(H5Dwrite(theirs, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
      const auto wanted = chunks_of(theirs, shape, chunk);
      H5Dclose(theirs);
      forget();
      hid_t ours = H5Dopen2(f.id, ("ours " + name).c_str(), H5P_DEFAULT);
      for (const hsize_t first : {hsize_t{0}, hsize_t{4}, hsize_t{8}})
        rows::write_chunks(ours, first, std::span(values).subspan(first * 64, first == 8 ? 128 : 256));
      BOOST_TEST((chunks_of(ours, shape, chunk) == wanted));
      H5Dclose(ours);
      forget();
      ours = H5Dopen2(f.id, ("ours " + name).c_str(), H5P_DEFAULT);
      std::vector<std::uint16_t> back(256);
      rows::read_chunks(ours, 1, back);
      BOOST_TEST((std::equal(back.begin(), back.end(), values.begin() + 64)));
      H5Dclose(ours);
      forget();
      // whole chunks need no plugin; HDF5 would store others unpacked
      H5PLset_loading_state(0);
      ours = H5Dopen2(f.id, ("ours " + name).c_str(), H5P_DEFAULT);
      rows::write_chunks(ours, 3, std::span(values).subspan(192, 384));
      std::vector<std::uint16_t> whole(384);
      rows::read_chunks(ours, 3, whole);
      BOOST_TEST((std::equal(whole.begin(), whole.end(), values.begin() + 192)));
      try {
        rows::write_chunks(ours, 1, std::span(values).first(64));
        BOOST_ERROR("it was written without the plugin");
      } catch (const zarrbits::error& e) {
        BOOST_TEST(
            std::string(e.what()).find("cannot be written: zarrbits: HDF5 does not find libzarrbits_") != std::string::npos,
            e.what());
      }
      BOOST_TEST((chunks_of(ours, shape, chunk) == wanted));
      H5Dclose(ours);
      H5PLset_loading_state(H5PL_ALL_PLUGIN);
    }
  }
}

// Finding a chunk costs the same, however many there are.
BOOST_AUTO_TEST_CASE(many_small_chunks_are_read_in_linear_time) {
  const file f;
  const hsize_t length = 20000;
  const hid_t d = make(f, "x", H5T_STD_U16LE, {length, 16}, {1, 16}, packed(12));
  const std::vector<std::uint16_t> values = some_values<std::uint16_t>(16 * length, 12, false);
  rows::write_chunks(d, 0, values);
  std::vector<std::uint16_t> back(values.size());
  const auto seconds = [&](const auto& work) {
    const auto before = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  };
  const double theirs =
      seconds([&] { BOOST_TEST(H5Dread(d, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0); });
  back.assign(values.size(), 0);
  const double ours = seconds([&] { rows::read_chunks(d, 0, back); });
  BOOST_TEST((back == values));
  BOOST_TEST_MESSAGE(length << " chunks: H5Dread " << theirs << " s, read_chunks " << ours << " s");
  BOOST_TEST(ours < 10 * theirs + 2);
  std::vector<std::uint16_t> frame(16);
  const double one = seconds([&] {
    for (hsize_t i = 0; i < 200; ++i) rows::read_chunks(d, length - 1 - i, frame);
  });
  BOOST_TEST_MESSAGE("200 frames of them, one by one: " << one << " s");
  BOOST_TEST(one < 2);
  H5Dclose(d);
}
