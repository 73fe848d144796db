// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/compare_files.hpp"

#include "hdf5/chunk_grid.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t block_bytes = 4U << 20;
constexpr std::size_t most_text = 64U << 20;  // bytes for the strings of a block

bool is_variable_text(const hdf5::type_tree& t) { return t.kind == hdf5::type_class::text && t.variable; }

bool same_block(const hdf5::chunk_source& a, const hdf5::chunk_source& b, const std::vector<hsize_t>& first,
                const std::vector<hsize_t>& count) {
  const std::size_t n = static_cast<std::size_t>(hdf5::product(count));
  if (!is_variable_text(a.type)) {
    compressors::buffer here(n * a.element_size), there(here.size());
    a.read_block(a.stored_type, a.element_size, first, count, count, here);
    b.read_block(a.stored_type, a.element_size, first, count, count, there);
    return here == there;
  }
  compressors::buffer here(n * a.type.size), there(here.size());
  hdf5::variable_memory strings_here(most_text), strings_there(most_text);
  a.read_block(a.type.memory, a.type.size, first, count, count, here, &strings_here);
  b.read_block(a.type.memory, a.type.size, first, count, count, there, &strings_there);
  for (std::size_t i = 0; i < here.size(); i += a.type.size) {
    if (hdf5::text_of(a.type, here.data() + i) != hdf5::text_of(a.type, there.data() + i)) return false;
  }
  return true;
}

}  // namespace

std::string difference(const hdf5::chunk_source& a, const hdf5::chunk_source& b) {
  if (a.null != b.null || a.dims != b.dims) return "their extents differ";
  if (H5Tequal(a.stored_type, b.stored_type) <= 0) return "their datatypes differ";
  if (a.null || hdf5::product(a.dims) == 0) return "";
  if (hdf5::holds_references(a.type) && !is_variable_text(a.type))
    return "values of type reference or sequence are not compared between files";
  const hdf5::chunk_grid blocks{a.dims, hdf5::chunk_shape_for(a.dims, std::max<std::size_t>(1, a.element_size), block_bytes)};
  std::vector<hsize_t> at(a.dims.size(), 0);
  do {
    if (!same_block(a, b, blocks.start(at), blocks.inside(at))) return "their values differ";
  } while (blocks.next(at));
  return "";
}

std::vector<std::string> differing_attributes(const text::json& a, const text::json& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a.items()) {
    if (name != text::own_key && (!b.contains(name) || b[name] != value)) names.push_back(name);
  }
  for (const auto& [name, value] : b.items()) {
    if (name != text::own_key && !a.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace zarrbits::conversion
