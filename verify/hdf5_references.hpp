// SPDX-License-Identifier: BSL-1.0
//
// Compares elements of two HDF5 files. References are compared by the paths of their targets, because addresses differ.
//
#ifndef ZARRBITS_VERIFY_HDF5_REFERENCES_HPP
#define ZARRBITS_VERIFY_HDF5_REFERENCES_HPP

#include "verify/compare_values.hpp"
#include "verify/hdf5_pairs.hpp"
#include "verify/hdf5_types.hpp"

#include <cstddef>
#include <string>
#include <unordered_map>

namespace zarrbits::verification {

class element_comparison {
 public:
  element_comparison(const source_tree& first, const source_tree& second, const hdf5_pairs& pairs)
      : first_{first, {}}, second_{second, {}}, pairs_(pairs) {}

  // Two elements in memory. Throws source_error, and not_supported if they cannot be compared.
  likeness compare(const element_form& form, const std::byte* first, const std::byte* second, difference& d);
  // A sentence if only one of two datatypes is a named type, or if they are different ones; else "".
  std::string named_type_difference(hid_t first, hid_t second) const;

 private:
  struct target {
    enum class state_type { null, dangling, object, unlisted } state = state_type::dangling;
    haddr_t address = HADDR_UNDEF;
    std::string text;  // object: its path; unlisted: the path that libhdf5 has for it
  };
  struct side {
    const source_tree& tree;
    std::unordered_map<haddr_t, target> objects;  // looked up before
  };

  likeness compare_bits(const element_form& form, const std::byte* first, const std::byte* second, difference& d) const;
  likeness compare_lists(const element_form& form, const std::byte* first, const std::byte* second, std::size_t count,
                         difference& d);
  likeness compare_sequences(const element_form& form, const std::byte* first, const std::byte* second, difference& d);
  likeness compare_objects(const std::byte* first, const std::byte* second, difference& d);
  likeness compare_regions(const std::byte* first, const std::byte* second, difference& d);
  likeness compare_targets(const target& first, const target& second, difference& d) const;
  static const target& object_target(side& s, const std::byte* reference);
  static target target_of(const side& s, const void* reference, H5R_type_t type);

  side first_, second_;
  const hdf5_pairs& pairs_;
};

}  // namespace zarrbits::verification

#endif
