// SPDX-License-Identifier: BSL-1.0
//
// One array of the datasets of many files, one after the other along an axis. Its object is that of the first file
// (source_object::joined); stored bytes and values come from the parts, through joined_dataset.hpp.
//
#ifndef ZARRBITS_CONVERT_CONCAT_JOINED_PARTS_HPP
#define ZARRBITS_CONVERT_CONCAT_JOINED_PARTS_HPP

#include "append/existing_array.hpp"
#include "hdf5/source_files.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A value that the array cannot have. what() is a reason: "its value 7 does not fit in the terms of the first file".
struct unrepresentable_value : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Converts values of a part so that they mean in the array what they mean in their file.
class value_change {
 public:
  virtual ~value_change() = default;
  // The types of a value before and after: native numbers.
  virtual hid_t source_type() const = 0;
  virtual hid_t target_type() const = 0;
  // Converts `n` values. Throws unrepresentable_value.
  virtual void apply(const std::byte* input, std::byte* output, std::size_t n) const = 0;
};

struct joined_part {
  std::size_t file = 0;                             // index in source_files
  haddr_t address = 0;                              // address of the dataset in its file
  std::uint64_t first = 0;                          // start along the axis
  std::uint64_t count = 0;                          // length along the axis
  bool stored_alike = false;                        // its chunks are chunks of the array, where the array's grid has them
  std::uint64_t chunk_length = 0;                   // of its chunks along the axis, if they are stored alike
  std::shared_ptr<const value_change> change = {};  // null: its values are those of the array
  std::vector<hdf5::stored_place> chunks = {};      // all of its dataset, in C order; empty: ask its file
};

struct joined_parts {
  std::size_t axis = 0;  // a new first one (schema_override::new_dimension), if each part is one step along it
  std::shared_ptr<const append::existing_array> existing = {};  // for a growing store; null: the array begins with the first part
  std::uint64_t length = 0;                                     // total length along the axis
  array::extents chunk;                                         // chunk shape of most parts; empty: they are not chunked
  std::vector<joined_part> list;  // ordered by `first`, without overlap; gaps between them read as fill values
  std::uint64_t stored_bytes = 0;
  bool nothing_stored = true;                   // in no part; values in other files have no stored bytes
  hdf5::handle type;                            // type of the array, if it differs from the first file's
  bool missing_is_nan = false;                  // if set, its fill value is NaN
  std::vector<std::string> removed_attributes;  // names of attributes that the array must not have
  std::shared_ptr<const hdf5::source_files> files;

  std::uint64_t stored_count() const { return existing ? existing->count : 0; }
  // The first part that ends after this position; list.size() if absent.
  std::size_t first_over(std::uint64_t position) const;
  bool has_gaps() const;
};

// What the store already has of the object's array; null: it does not grow.
inline const append::existing_array* in_store(const hdf5::source_object& o) {
  return o.joined ? o.joined->existing.get() : nullptr;
}

}  // namespace zarrbits::conversion

#endif
