// SPDX-License-Identifier: BSL-1.0
//
// References in values, which name objects by their addresses: in a copy of the file they have to name the copies.
//
//   const reference_map map(source, target, addresses);
//   if (reference_map::has_linked_values(type)) map.translate(type, values.data(), count);
//
#ifndef ZARRBITS_REPACK_REFERENCE_MAP_HPP
#define ZARRBITS_REPACK_REFERENCE_MAP_HPP

#include "hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace zarrbits::repacking {

class reference_map {
 public:
  // `addresses`: of the objects of the source, and of their copies. The references live as long as this.
  reference_map(hid_t source, hid_t target, const std::map<haddr_t, haddr_t>& addresses)
      : source_(source), target_(target), addresses_(addresses) {}

  // True if values of the type lie outside of their dataset, or lead to other objects: their stored bytes mean something in their
  // own file alone.
  static bool has_linked_values(hid_t type);
  static bool has_references(hid_t type);
  // True if all `count` values in memory are equal, with what they lead to in memory.
  static bool are_equal(hid_t type, const std::byte* a, const std::byte* b, std::uint64_t count);

  // Changes the references in `count` values in memory, whose type is that of H5Dget_type() or H5Aget_type(). A reference without
  // a target becomes null, as it was or will be for each reader. Throws hdf5::failure.
  void translate(hid_t type, std::byte* values, std::uint64_t count) const;
  // References that led to no object that links lead to.
  std::uint64_t dangling() const noexcept { return dangling_; }

 private:
  void translate_object(std::byte* reference, std::size_t size) const;
  void translate_region(std::byte* reference, std::size_t size) const;

  const hid_t source_, target_;
  const std::map<haddr_t, haddr_t>& addresses_;
  mutable std::uint64_t dangling_ = 0;
};

}  // namespace zarrbits::repacking

#endif
