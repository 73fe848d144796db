// SPDX-License-Identifier: BSL-1.0
//
// How values of a dataset or an attribute are in memory, for readers in other languages: as they are stored if such a reader can
// have them so (every number, byte order, compound with its offsets), converted by libhdf5 to a number or text that is close, or
// packed: strings, sequences and references of variable length one after the other.
//
#ifndef ZARRBITS_READER_VALUE_LAYOUT_HPP
#define ZARRBITS_READER_VALUE_LAYOUT_HPP

#include "hdf5/h5.hpp"
#include "hdf5/type_description.hpp"
#include "hdf5/values_json.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zarrbits::reader {

class value_layout {
 public:
  // Throws failure. The caller holds hdf5::lock.
  explicit value_layout(hid_t stored);

  // The type of the stored values, and as libhdf5 knows those in memory.
  const hdf5::type_description& stored() const { return stored_; }
  hid_t memory() const { return memory_ ? memory_.get() : stored_.memory.get(); }
  std::size_t size() const { return size_; }
  bool is_stored() const { return is_stored_; }
  // Values hold pointers or addresses: pack() writes what these lead to.
  bool is_variable() const { return is_variable_; }
  // Why no value can be read; "" if they can.
  const std::string& obstacle() const { return obstacle_; }
  // docs/reference/hdf5-types.md
  const text::json& json() const { return json_; }

  // Appends values: numbers and text of fixed length as in memory, members of compounds without gaps; a text as its length (8
  // bytes, little endian) and bytes, a sequence as its length and values, a reference as a text, JSON. The caller holds lock.
  void pack(const std::byte* values, std::uint64_t count, hdf5::reference_reader& references, std::string& out) const;

 private:
  hdf5::type_description stored_;
  hdf5::handle memory_;
  std::size_t size_ = 0;
  bool is_stored_ = false, is_variable_ = false;
  std::string obstacle_;
  text::json json_;
};

// A number of `pack()`.
void append_length(std::string& out, std::uint64_t length);

}  // namespace zarrbits::reader

#endif
