// SPDX-License-Identifier: BSL-1.0
//
// What the tests with a real libhdf5 share: a file in memory, datasets of one chunk, the sentences on the error stack.
#ifndef ZARRBITS_TESTS_FILTER_H5_SUPPORT_HPP
#define ZARRBITS_TESTS_FILTER_H5_SUPPORT_HPP

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

namespace h5_support {

using bytes_of = std::vector<unsigned char>;

inline hid_t memory_file() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(fapl, 1 << 20, 0);
  const hid_t file = H5Fcreate("filter_library.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  H5Pclose(fapl);
  return file;
}

// What the plugins pushed on the error stack, or "".
inline std::string our_sentence() {
  std::string found;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* e, void* data) -> herr_t {
        const std::string text = e->desc ? e->desc : "";
        if (text.rfind("zarrbits: ", 0) == 0) *static_cast<std::string*>(data) = text;
        return 0;
      },
      &found);
  return found;
}

// A dataset of `elements` in one chunk, anonymous. Negative where HDF5, or the filter, refuses to create it.
struct dataset {
  hid_t id = -1;
  hid_t type;
  dataset(hid_t file, hid_t type_, hsize_t elements, int filter, unsigned flags, const std::vector<unsigned>& cd) : type(type_) {
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &elements, nullptr);
    H5Pset_chunk(dcpl, 1, &elements);
    H5Pset_filter(dcpl, filter, flags, cd.size(), cd.data());
    id = H5Dcreate_anon(file, type, space, dcpl, H5P_DEFAULT);
    error = id < 0 ? our_sentence() : "";
    H5Sclose(space);
    H5Pclose(dcpl);
  }
  dataset(const dataset&) = delete;
  dataset& operator=(const dataset&) = delete;
  ~dataset() {
    if (id >= 0) H5Dclose(id);
  }

  // Through the filter, without conversion: bytes as they lie in the file's type.
  bool write(const bytes_of& decoded) const {
    return H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, decoded.data()) >= 0 && H5Dflush(id) >= 0;
  }
  bool read(bytes_of& decoded) const { return H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, decoded.data()) >= 0; }

  // The chunk as it is stored.
  bytes_of stored(std::uint32_t& mask) const {
    const hsize_t origin = 0;
    hsize_t size = 0;
    bytes_of out;
    if (H5Dget_chunk_storage_size(id, &origin, &size) < 0) return out;
    out.resize(size);
    H5Dread_chunk(id, H5P_DEFAULT, &origin, &mask, out.data());
    return out;
  }
  bool store(const bytes_of& encoded, std::uint32_t mask = 0) const {
    const hsize_t origin = 0;
    return H5Dwrite_chunk(id, H5P_DEFAULT, mask, &origin, encoded.size(), encoded.data()) >= 0;
  }
  std::vector<unsigned> parameters(int filter) const {
    const hid_t dcpl = H5Dget_create_plist(id);
    unsigned flags = 0, cd[32];
    std::size_t n = 32;
    H5Pget_filter_by_id2(dcpl, filter, &flags, &n, cd, 0, nullptr, nullptr);
    H5Pclose(dcpl);
    return std::vector<unsigned>(cd, cd + n);
  }

  std::string error;
};

}  // namespace h5_support

#endif
