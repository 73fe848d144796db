// SPDX-License-Identifier: BSL-1.0
//
// A dimension that datasets of a new file have before those of their source: its scale, and the attributes that name dimensions.
//
//   new_dimension member("member", 3);
//   member.add(source, o);             // a dataset that gets the dimension, or a user of a scale
//   member.write(target);
//
#ifndef ZARRBITS_REPACK_NEW_DIMENSION_HPP
#define ZARRBITS_REPACK_NEW_DIMENSION_HPP

#include "repack/opened_file.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

class new_dimension {
 public:
  new_dimension(std::string name, std::uint64_t length) : name_(std::move(name)), length_(length) {}

  // Attributes that a dataset is copied without, because write() makes them.
  static std::set<std::string> attributes(bool has_dimension);

  // A dataset of a source. Throws hdf5::failure.
  void add(const opened_file& source, const tree_object& o, bool has_dimension);
  // Into a file that has all datasets. Throws hdf5::failure.
  void write(hid_t target) const;

 private:
  void write_scale(hid_t target) const;

  struct dataset_dimensions {
    bool has_dimension = false;
    std::vector<std::vector<std::string>> scales;  // paths of those of each dimension of the source
    std::vector<std::string> labels;               // of each dimension; empty without labels
  };
  std::string name_;
  std::uint64_t length_;
  std::map<std::string, dataset_dimensions> datasets_;  // by path
};

}  // namespace zarrbits::repacking

#endif
