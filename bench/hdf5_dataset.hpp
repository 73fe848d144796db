// SPDX-License-Identifier: BSL-1.0
//
// One dataset of 64 MiB in a file that lies in memory (HDF5's core driver, never written to disk), with one filter or none and no
// chunk cache, so that every chunk goes through the filter at every read and write.
//
#ifndef ZARRBITS_BENCH_HDF5_DATASET_HPP
#define ZARRBITS_BENCH_HDF5_DATASET_HPP

#include <hdf5.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace zarrbits::bench {

// An HDF5 identifier, closed with the function that belongs to it. Throws std::runtime_error where HDF5 refused to give one.
class handle {
 public:
  handle(hid_t id, herr_t (*close)(hid_t));
  operator hid_t() const { return *id_; }

 private:
  std::shared_ptr<const hid_t> id_;
};

inline constexpr H5Z_filter_t noop_filter = 400;  // registered by register_noop_filter()
void register_noop_filter();

// Integers of `size` bytes of which HDF5 knows that only `precision` bits matter; h5py's bool.
handle integer(std::size_t size, std::size_t precision);
handle boolean();

class dataset {
 public:
  using filters = std::function<herr_t(hid_t dcpl)>;

  // chunk 0: contiguous. Writes `bytes` from `in`, so that later writes go over chunks that exist.
  dataset(hid_t file_type, hid_t memory_type, std::size_t bytes, std::size_t chunk, const filters& set, const void* in);
  bool write(const void* in) const;
  bool read(void* out) const;
  double stored() const;  // part of the decoded size

 private:
  handle file_, memory_type_, data_;
  std::size_t bytes_;
};

}  // namespace zarrbits::bench

#endif
