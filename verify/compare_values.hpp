// SPDX-License-Identifier: BSL-1.0
//
// Compares an element of an HDF5 dataset with an element of a Zarr array.
//
#ifndef ZARRBITS_VERIFY_COMPARE_VALUES_HPP
#define ZARRBITS_VERIFY_COMPARE_VALUES_HPP

#include "verify/source_objects.hpp"
#include "verify/source_values.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zarrbits::verification {

enum class likeness { equal, unknown, different };

// A difference between elements, as text. `field` is the path of a compound's member, or empty.
struct difference {
  std::string field;
  std::string source;
  std::string store;
};

// One element of the store: bytes, or a string if its type has variable length.
struct zarr_element {
  const std::byte* bytes = nullptr;
  const std::string* string = nullptr;
};

inline zarr_element element_of(const zarr::zarr_type& type, const zarr::element_buffer& values, std::size_t i) {
  return type.variable() ? zarr_element{nullptr, &values.strings[i]} : zarr_element{values.data.data() + i * type.size, nullptr};
}

class comparison {
 public:
  // `exported`: the file is netCDF that `export` made, which has other types for some (docs/reference/exported.md).
  comparison(const source_type& source, const zarr::zarr_type& store, const source_objects& objects, bool exported = false);

  // different: the types cannot hold the same values. unknown: this code cannot decide. reason() is the sentence.
  likeness types() const noexcept { return types_; }
  const std::string& reason() const noexcept { return reason_; }

  // True if equal elements have equal bytes, so that many can be compared at once.
  bool bytewise() const noexcept { return bytewise_; }

  likeness compare(const std::byte* source, const zarr_element& store, difference& d) const;

 private:
  const source_type& source_;
  const zarr::zarr_type& store_;
  const source_objects& objects_;
  likeness types_ = likeness::equal;
  std::string reason_;
  bool bytewise_ = false;
};

}  // namespace zarrbits::verification

#endif
