// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/compare_files.hpp"

#include "array/chunk_grid.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t block_bytes = 4U << 20;
constexpr std::size_t max_text_bytes = 64U << 20;  // bytes for the strings of a block

bool is_variable_text(const hdf5::type_description& t) { return t.kind == hdf5::type_class::text && t.variable; }

bool same_block(const hdf5::chunk_source& a, const hdf5::chunk_source& b, const array::extents& first,
                const array::extents& count) {
  const std::size_t n = static_cast<std::size_t>(array::product(count));
  if (!is_variable_text(a.type)) {
    compressors::buffer a_values(n * a.element_size), b_values(a_values.size());
    a.read_block(a.stored_type, a.element_size, first, count, count, a_values);
    b.read_block(a.stored_type, a.element_size, first, count, count, b_values);
    return a_values == b_values;
  }
  compressors::buffer a_values(n * a.type.size), b_values(a_values.size());
  hdf5::vlen_allocator strings_here(max_text_bytes), strings_there(max_text_bytes);
  a.read_block(a.type.memory, a.type.size, first, count, count, a_values, &strings_here);
  b.read_block(a.type.memory, a.type.size, first, count, count, b_values, &strings_there);
  for (std::size_t i = 0; i < a_values.size(); i += a.type.size) {
    if (hdf5::text_of(a.type, a_values.data() + i) != hdf5::text_of(a.type, b_values.data() + i)) return false;
  }
  return true;
}

}  // namespace

hdf5::handle in_native_order(hid_t type) {
  hdf5::handle copy(H5Tcopy(type), "copy a datatype");
  const H5T_class_t kind = H5Tget_class(copy);
  if (kind == H5T_INTEGER || kind == H5T_FLOAT)
    hdf5::check(H5Tset_order(copy, H5Tget_order(H5T_NATIVE_INT)), "choose a byte order");
  return copy;
}

std::string difference(const hdf5::chunk_source& a, const hdf5::chunk_source& b) {
  if (a.null != b.null || a.dims != b.dims) return "their extents differ";
  if (H5Tequal(in_native_order(a.stored_type), in_native_order(b.stored_type)) <= 0) return "their datatypes differ";
  if (a.null || array::product(a.dims) == 0) return "";
  if (hdf5::holds_references(a.type) && !is_variable_text(a.type))
    return "values of type reference or sequence are not compared between files";
  const array::chunk_grid blocks{a.dims, array::chunk_shape_for(a.dims, std::max<std::size_t>(1, a.element_size), block_bytes)};
  array::extents coordinates(a.dims.size(), 0);
  do {
    if (!same_block(a, b, blocks.start(coordinates), blocks.inside(coordinates))) return "their values differ";
  } while (blocks.next(coordinates));
  return "";
}

std::vector<std::string> differing_attributes(const text::json& a, const text::json& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a.items()) {
    if (name != text::annotation_key && (!b.contains(name) || b[name] != value)) names.push_back(name);
  }
  for (const auto& [name, value] : b.items()) {
    if (name != text::annotation_key && !a.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace zarrbits::conversion
