// SPDX-License-Identifier: BSL-1.0
//
// The order in which the objects of a group were created, which `convert` notes where it is not that of their names.
//
#ifndef ZARRBITS_EXPORT_LINK_ORDER_HPP
#define ZARRBITS_EXPORT_LINK_ORDER_HPP

#include "export/store_node.hpp"

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <unordered_map>

namespace zarrbits::exporting {

class link_order {
 public:
  explicit link_order(const store_node& group);

  bool empty() const noexcept { return ranks_.empty(); }
  // `name`: as in the file. Names that the note does not have come last.
  std::size_t rank(const std::string& name) const;
  // Gives the links of a group of the file, which tracks the order of creation, this order. Throws hdf5::failure.
  void apply(hid_t group) const;

 private:
  std::unordered_map<std::string, std::size_t> ranks_;
};

}  // namespace zarrbits::exporting

#endif
