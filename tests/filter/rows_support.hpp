// SPDX-License-Identifier: BSL-1.0
//
// Datasets in memory, for the tests of <zarrbits/hdf5.hpp>. Include it after Boost.Test.
//
#ifndef ZARRBITS_TESTS_FILTER_ROWS_SUPPORT_HPP
#define ZARRBITS_TESTS_FILTER_ROWS_SUPPORT_HPP

#include <zarrbits/hdf5.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

struct file {
  hid_t id;
  file() {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(fapl, 1 << 20, 0);
    id = H5Fcreate("filter_rows.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Pclose(fapl);
    BOOST_TEST_REQUIRE(id >= 0);
    BOOST_TEST_REQUIRE(zarrbits_hdf5_load() >= 0);
  }
  ~file() { H5Fclose(id); }
};

using set_up = std::function<void(hid_t dcpl)>;

inline hid_t make(const file& f, const std::string& name, hid_t type, const std::vector<hsize_t>& shape,
                  const std::vector<hsize_t>& chunk, const set_up& filters) {
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  std::vector<hsize_t> most = shape;  // a chunk may only be larger than a dataset that can grow
  for (std::size_t d = 0; d < chunk.size(); ++d)
    if (chunk[d] > shape[d]) most[d] = H5S_UNLIMITED;
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), most.data());
  if (!chunk.empty()) H5Pset_chunk(dcpl, static_cast<int>(chunk.size()), chunk.data());
  filters(dcpl);
  const hid_t d = H5Dcreate2(f.id, name.c_str(), type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  H5Sclose(space);
  H5Pclose(dcpl);
  BOOST_TEST_REQUIRE(d >= 0, name);
  return d;
}

// Every chunk as it is stored, with its filter mask.
inline std::vector<std::pair<std::uint32_t, std::vector<unsigned char>>> chunks_of(hid_t d, const std::vector<hsize_t>& shape,
                                                                                   const std::vector<hsize_t>& chunk) {
  BOOST_TEST(H5Dflush(d) >= 0);
  std::vector<std::pair<std::uint32_t, std::vector<unsigned char>>> all;
  std::vector<hsize_t> at(shape.size(), 0);
  for (;;) {
    hsize_t size = 0;
    std::uint32_t mask = 0;
    haddr_t address = HADDR_UNDEF;
    BOOST_TEST_REQUIRE(H5Dget_chunk_info_by_coord(d, at.data(), &mask, &address, &size) >= 0);
    std::vector<unsigned char> bytes(address == HADDR_UNDEF ? 0 : size);
    std::uint32_t ignored = 0;  // HDF5 1.10 gives 0 for the chunk that H5Dwrite_chunk() wrote last
    if (!bytes.empty()) BOOST_TEST_REQUIRE(H5Dread_chunk(d, H5P_DEFAULT, at.data(), &ignored, bytes.data()) >= 0);
    all.emplace_back(mask, bytes);
    std::size_t i = at.size();
    while (i > 0 && (at[i - 1] += chunk[i - 1]) >= shape[i - 1]) at[--i] = 0;
    if (i == 0) return all;
  }
}

inline const set_up none = [](hid_t) {};

inline set_up packed(unsigned bits, unsigned options = 0, unsigned first = 0) {
  return [=](hid_t p) { BOOST_TEST_REQUIRE(H5Pset_zarrbits_packbits(p, bits, options, first) >= 0); };
}

#endif
