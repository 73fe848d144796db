// SPDX-License-Identifier: BSL-1.0
//
// Copies the values of datasets, or gives them other chunks and filters.
//
//   value_copier values(source, copies, changes, options, report);
//   values.reserve_indexes();   // or
//   values.run();
//
#ifndef ZARRBITS_REPACK_VALUE_COPIER_HPP
#define ZARRBITS_REPACK_VALUE_COPIER_HPP

#include "array/box.hpp"
#include "repack/file_copier.hpp"
#include "repack/recoder.hpp"

#include <zarrbits/repack.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace zarrbits::repacking {

class value_copier {
 public:
  // The references live as long as this.
  value_copier(const opened_contents& source, const file_copier& copies, const dataset_changes& changes,
               const repack_options& options)
      : source_(source), copies_(copies), changes_(changes), options_(options) {}

  // Gives all chunks their places in the indexes, without values: for a file whose values are dropped. Throws what run() would
  // throw for filters that nothing here has.
  void reserve_indexes();
  // Values that lead elsewhere first, then those without chunks, then chunks. Throws hdf5::failure, io::read_error,
  // compressors::corrupt_chunk and zarrbits::error, with the path.
  void run();
  // About what run() makes of each dataset, by its address, and how long a thread takes to read and encode it: by samples of its
  // values. Throws what run() throws.
  std::map<haddr_t, copy_estimate> estimates();

 private:
  template <class Visit>
  void for_each_dataset(const Visit& visit);
  dataset_pair open(const tree_object& o, const dataset_layout& l) const;
  void reserve_index(const dataset_pair& d) const;

  const opened_contents& source_;
  const file_copier& copies_;
  const dataset_changes& changes_;
  const repack_options& options_;
};

}  // namespace zarrbits::repacking

#endif
