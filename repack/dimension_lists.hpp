// SPDX-License-Identifier: BSL-1.0
//
// The dimensions of a new file that differ from those of its sources: new ones, and the attributes by which datasets name theirs.
//
//   dimension_lists dimensions;
//   dimensions.add_dimension("member", 3);
//   dimensions.add(source, o, "member");       // a dataset that gets it before its own ones; "": a user of scales, or a scale
//   dimensions.add_user("/weights", {"member"});
//   dimensions.write(target);
//
#ifndef ZARRBITS_REPACK_DIMENSION_LISTS_HPP
#define ZARRBITS_REPACK_DIMENSION_LISTS_HPP

#include "repack/opened_file.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

// The paths of the scales of each dimension; none if the dataset has no list of them. Throws hdf5::failure.
std::vector<std::vector<std::string>> scale_paths(const opened_file& source, hid_t dataset, std::size_t rank);

class dimension_lists {
 public:
  // Attributes that a dataset is copied without, because write() makes them. `are_others`: it has not the dimensions of its
  // source.
  static std::set<std::string> attributes(bool are_others);

  // A dimension without values, in the root group.
  void add_dimension(const std::string& name, std::uint64_t length) { dimensions_.emplace_back(name, length); }
  // A dataset of a source. `first`: a new dimension before its own ones, or "". Throws hdf5::failure.
  void add(const opened_file& source, const tree_object& o, const std::string& first);
  // A dataset with new dimensions alone.
  void add_user(const std::string& path, const std::vector<std::string>& dimensions);
  // Into a file that has all datasets. Throws hdf5::failure.
  void write(hid_t target) const;

 private:
  void write_dimensions(hid_t target) const;

  struct dataset_dimensions {
    std::vector<std::vector<std::string>> scales;  // paths of those of each dimension
    std::vector<std::string> labels = {};          // of each dimension; empty without labels
  };
  std::vector<std::pair<std::string, std::uint64_t>> dimensions_;  // names and lengths
  std::map<std::string, dataset_dimensions> datasets_;             // by path
};

}  // namespace zarrbits::repacking

#endif
