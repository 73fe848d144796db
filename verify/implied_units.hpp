// SPDX-License-Identifier: BSL-1.0
//
// Which variable names another one as its bounds or climatology, in a file and in a store: the latter has the units of time and
// the calendar of the former (cf_meaning.hpp).
//
//   const source_inherited_units inherited(tree);
//   const inherited_units& units = inherited.units_for(address_of_time_bnds);
//
#ifndef ZARRBITS_VERIFY_IMPLIED_UNITS_HPP
#define ZARRBITS_VERIFY_IMPLIED_UNITS_HPP

#include "verify/cf_meaning.hpp"
#include "verify/source_tree.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <map>
#include <string>

namespace zarrbits::verification {

class source_inherited_units {
 public:
  // Examines all datasets. Throws source_error.
  explicit source_inherited_units(const source_tree& tree);
  const inherited_units& units_for(haddr_t dataset) const;
  // Those of the dataset at a path, in the file or in the store; empty if absent.
  static inherited_units units_at(const source_tree& tree, const std::string& path);

 private:
  std::map<haddr_t, inherited_units> units_;
};

// Examines the arrays next to an array on request, and keeps the result.
class store_inherited_units {
 public:
  // `path`: of an array in the store: "/a/b". Throws store_error.
  const inherited_units& units_for(const zarr::store_folder& root, const std::string& path);

 private:
  void scan_group(const zarr::store_folder& root, const std::string& group);
  std::map<std::string, std::map<std::string, inherited_units>> by_group_;  // of the naming variable; then by the named path
};

}  // namespace zarrbits::verification

#endif
