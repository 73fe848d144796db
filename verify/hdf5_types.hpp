// SPDX-License-Identifier: BSL-1.0
//
// Datatypes of two HDF5 files: whether they are the same, and how their elements lie in memory.
//
#ifndef ZARRBITS_VERIFY_HDF5_TYPES_HPP
#define ZARRBITS_VERIFY_HDF5_TYPES_HPP

#include "verify/source_values.hpp"

#include <cstddef>
#include <hdf5.h>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::verification {

// "X, in the second file Y".
std::string in_both(const std::string& first, const std::string& second);

// The difference between two datatypes, as the end of "has a different type: "; "" if they are equal. Compares as H5Tequal does,
// and names the member or property. Throws source_error, not_supported.
std::string datatype_difference(hid_t first, hid_t second, unsigned depth = 0);

// How the elements of a datatype lie in memory, as H5Dget_type returns it: libhdf5 then converts nothing but variable lengths.
struct element_form {
  enum class kind_type { bits, variable_text, sequence, array, compound, object, region };
  kind_type kind = kind_type::bits;
  std::size_t size = 0;                      // bytes
  std::size_t offset = 0;                    // of a member
  std::string name;                          // of a member
  std::vector<std::byte> mask;               // bits: those that have a meaning; empty: all
  std::size_t count = 1;                     // array: elements
  std::vector<element_form> parts;           // compound: members; array and sequence: one, the base
  std::shared_ptr<const hdf5::handle> type;  // bits: for format_bits()

  bool is_plain() const;            // equal elements have equal bytes
  bool has_variable_parts() const;  // libhdf5 allocates memory for its values
  bool has_references() const;
};

// Throws source_error, and not_supported if libhdf5 cannot read such elements.
element_form form_of(hid_t type, unsigned depth = 0);

// The type under which source_values reads such elements.
source_type source_type_of(const element_form& form);

// An element of a number, a text or an opaque type, as a short text.
std::string format_bits(const element_form& form, const std::byte* p);

}  // namespace zarrbits::verification

#endif
