// SPDX-License-Identifier: BSL-1.0
//
// The objects of the source by their addresses: the targets of references, scales and hard links.
//
#ifndef ZARRBITS_VERIFY_SOURCE_OBJECTS_HPP
#define ZARRBITS_VERIFY_SOURCE_OBJECTS_HPP

#include <cstdint>
#include <hdf5.h>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::verification {

class source_objects {
 public:
  virtual ~source_objects() = default;
  virtual hid_t file() const = 0;
  // The object at a path in the store's text: a path of the file as reports show it, or a path of the store.
  virtual std::optional<std::uint64_t> address_of(const std::string& path) const = 0;
  // The names of the object's hard links, as in the file; none if no path leads to it.
  virtual std::vector<std::string> names_of(std::uint64_t address) const = 0;
  // True if a path leads to it.
  virtual bool reachable(std::uint64_t address) const = 0;
};

}  // namespace zarrbits::verification

#endif
