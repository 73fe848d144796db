// SPDX-License-Identifier: BSL-1.0
//
// The values of joined datasets, copied from the files that have parts of them: stored chunks where they are chunks of the whole,
// other values decoded and encoded.
//
//   joined_values values(files, target, options);
//   values.write("/tas", mapping);
//
#ifndef ZARRBITS_REPACK_JOINED_VALUES_HPP
#define ZARRBITS_REPACK_JOINED_VALUES_HPP

#include "repack/combined_files.hpp"
#include "repack/dataset_copier.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

namespace zarrbits::repacking {

// Chunks, filters and extent of the whole: those of the first file that has chunks.
joined_layout layout_of(const combined_dataset& d);

class joined_values {
 public:
  // `target`: the file, which has the datasets. The references live as long as this.
  joined_values(const combined_files& files, hid_t target, const repack_options& options);

  // Throws zarrbits::error, which names the dataset and, where one file is the reason, that file.
  void write(const std::string& path);
  // Throws zarrbits::error if a file was written to meanwhile.
  void finish() const;
  const dataset_copier& copier() const { return copier_; }

 private:
  std::shared_ptr<const hdf5::source_file> open_file(std::size_t k);
  std::shared_ptr<const dataset_part> open_part(const std::string& path, const combined_dataset& d,
                                                const combined_dataset::file_part& p, hid_t type);
  void copy(const std::string& path);

  const combined_files& files_;
  const hid_t target_;
  dataset_copier copier_;
  std::list<std::pair<std::size_t, std::shared_ptr<const hdf5::source_file>>> opened_ = {};  // the last used one first
};

}  // namespace zarrbits::repacking

#endif
