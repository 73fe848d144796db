// SPDX-License-Identifier: BSL-1.0
//
// Datasets of combined files as aggregation variables of CF-1.13 (section 2.8): scalars whose attributes name the files, and the
// shapes of their parts, in variables of the new file.
//
//   cf_aggregation aggregation(files, uri_of_file);
//   aggregation.plan(source, o);                                 // each dataset, from the file that gives it to the new one
//   aggregation.is_aggregated("/tas");
//   aggregation.create(target, dimensions);                      // the new file has all objects
//
#ifndef ZARRBITS_REPACK_CF_AGGREGATION_HPP
#define ZARRBITS_REPACK_CF_AGGREGATION_HPP

#include "repack/combined_files.hpp"
#include "repack/dimension_lists.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

class cf_aggregation {
 public:
  // Both live as long as this. `uri_of`: what the new file calls the file with this number.
  cf_aggregation(combined_files& files, std::function<std::string(std::size_t)> uri_of)
      : files_(files), uri_of_(std::move(uri_of)) {}

  // Decides what becomes of the datasets that the new file takes from this one, with number `k`. Adds a note for each that keeps
  // its values although readers would expect an aggregation variable. Throws zarrbits::error for one that is too large for that,
  // hdf5::failure.
  void plan(const opened_file& source, std::size_t k);
  bool is_aggregated(const std::string& path) const { return variables_.contains(path); }
  // What the variable is unpacked to, or H5I_INVALID_HID if it has the type of its parts.
  hid_t type_of(const std::string& path) const;
  // Attributes that it is copied without.
  std::set<std::string> omitted_attributes(const std::string& path) const;

  // Gives the aggregation variables, which are in the new file, their attributes, and creates what these name.
  void create(hid_t target, dimension_lists& dimensions);

 private:
  struct variable {
    hid_t unpacked_type = H5I_INVALID_HID;  // a predefined type
    std::string dimensions;                 // their names, with blanks between them
    std::vector<std::string> short_names;   // those without groups
  };
  struct fragment_arrays {
    std::string map, uris;
  };

  std::string obstacle(const opened_file& source, const tree_object& o, hid_t dataset, const combined_dataset& d,
                       variable& v) const;
  std::vector<std::uint64_t> lengths_along(const combined_dataset& d, std::size_t dimension) const;
  void require_small(const std::string& path, const combined_dataset& d, const std::string& reason) const;
  std::string unused_name(const std::string& name);
  std::string dimension_of(const std::string& name, std::uint64_t length, dimension_lists& dimensions);
  const fragment_arrays& arrays_of(hid_t target, const combined_dataset& d, const variable& v, dimension_lists& dimensions);

  combined_files& files_;
  std::function<std::string(std::size_t)> uri_of_;
  std::map<std::string, variable> variables_;                                    // by path
  std::set<std::string> names_;                                                  // of all objects, without their groups
  std::set<std::string> bounds_;                                                 // paths
  std::map<std::pair<std::string, std::uint64_t>, std::string> new_dimensions_;  // by what they are of, and length
  // by the names of their dimensions, the lengths of the parts along each, and the files
  using fragments = std::tuple<std::vector<std::string>, std::vector<std::vector<std::uint64_t>>, std::vector<std::string>>;
  std::map<fragments, fragment_arrays> arrays_;
};

}  // namespace zarrbits::repacking

#endif
