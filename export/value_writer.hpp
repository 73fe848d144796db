// SPDX-License-Identifier: BSL-1.0
//
// Values of a store as libhdf5 takes them: the inverse of hdf5/values_json.hpp.
//
//   value_arena arena(max_bytes);  // strings and sequences live in it
//   write_json_value(t, value, out, references, arena);  // `out` has t.size bytes
//
#ifndef ZARRBITS_EXPORT_VALUE_WRITER_HPP
#define ZARRBITS_EXPORT_VALUE_WRITER_HPP

#include "export/type_spec.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::exporting {

// Memory of variable length that values in buffers point to. Throws unsupported_in_hdf5 beyond `max_bytes` bytes.
class value_arena {
 public:
  explicit value_arena(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
  char* text(std::string_view s);  // with NUL at the end
  std::byte* block(std::size_t size);
  void clear();

 private:
  void count(std::uint64_t bytes);
  std::uint64_t max_bytes_, used_ = 0;
  std::deque<std::vector<std::byte>> blocks_;
};

// HDF5's references for the paths that a store has.
class reference_maker {
 public:
  virtual ~reference_maker() = default;
  virtual void object(const std::string& path, std::byte* out) = 0;               // "": null
  virtual void region(const text::json& path_and_selection, std::byte* out) = 0;  // "": null
};

// All of these throw unsupported_in_hdf5 if the value cannot be one of the type.

void write_json_value(const type_spec& t, const text::json& value, std::byte* out, reference_maker& references,
                      value_arena& arena);
// A Zarr element of fixed length, in this machine's byte order.
void write_element(const type_spec& t, const zarr::zarr_type& type, const std::byte* in, std::byte* out,
                   reference_maker& references, value_arena& arena);
// A Zarr element of variable length.
void write_text_value(const type_spec& t, std::string_view text, std::byte* out, reference_maker& references, value_arena& arena);

// True if elements in this machine's byte order become values by reversing bytes alone, or not at all: the form has the same
// numbers at the same places.
bool is_same_layout(const type_spec& t, const zarr::zarr_type& type);
// True if all numbers of the form have this byte order (or one byte).
bool has_order(const type_spec& t, bool big_endian);
// Brings `count` values of the same layout from this machine's byte order to the form's.
void set_order(const type_spec& t, std::byte* values, std::size_t count);

}  // namespace zarrbits::exporting

#endif
