// SPDX-License-Identifier: BSL-1.0
//
// Which variable names another one as its bounds or climatology, in a file and in a store: the latter has the units of time and
// the calendar of the former (cf_meaning.hpp).
//
//   source_lenders lenders(tree);
//   const lent_units units = lenders.to(address_of_time_bnds);
//
#ifndef ZARRBITS_VERIFY_LENT_UNITS_HPP
#define ZARRBITS_VERIFY_LENT_UNITS_HPP

#include "verify/cf_meaning.hpp"
#include "verify/source_tree.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <map>
#include <string>

namespace zarrbits::verification {

class source_lenders {
 public:
  // Examines all datasets. Throws source_error.
  explicit source_lenders(const source_tree& tree);
  const lent_units& to(haddr_t dataset) const;
  // Those of the dataset at a path, in the file or in the store; empty if there is none.
  static lent_units units_at(const source_tree& tree, const std::string& path);

 private:
  std::map<haddr_t, lent_units> lent_;
};

// Examines the arrays next to an array on request, and keeps the result.
class store_lenders {
 public:
  // `path`: of an array in the store: "/a/b". Throws store_error.
  const lent_units& to(const zarr::store_folder& root, const std::string& path);

 private:
  void look_at(const zarr::store_folder& root, const std::string& group);
  std::map<std::string, std::map<std::string, lent_units>> by_group_;  // of the naming variable; then by the named path
};

}  // namespace zarrbits::verification

#endif
