// SPDX-License-Identifier: BSL-1.0
#include "export/dataset_spec.hpp"

#include "export/netcdf_types.hpp"
#include "metadata/node.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace zarrbits::exporting {

using conversion::source_array;
using zarr::zarr_kind;

namespace {

const text::json no_codecs = text::json::array();

bool says_int8_boolean(const store_node& node) {
  const text::json values = node.note("attribute_values");
  return values.is_object() && values.value("dtype", text::json()) == "bool";
}

// MATLAB's complex numbers have other names.
void take_for_complex(type_spec& t) {
  if (t.kind != type_kind::compound || t.members.size() != 2) return;
  const type_spec &a = t.members[0].type, &b = t.members[1].type;
  if (a.kind != type_kind::floating || b.kind != type_kind::floating || a.size != b.size || a.converted || b.converted ||
      a.big_endian != b.big_endian)
    return;
  t.kind = type_kind::complex;
  t.big_endian = a.big_endian;
}

// Takes the last dimensions from the array: they are within a value.
void take_inner(dataset_spec& f, const array::extents& extents, array::extents& chunk) {
  const std::size_t n = extents.size();
  const auto ends_with = [&](const array::extents& shape) {
    return shape.size() >= n && std::equal(extents.begin(), extents.end(), shape.end() - static_cast<std::ptrdiff_t>(n));
  };
  if (!ends_with(f.dims))
    throw unsupported_in_hdf5(reason_code::damaged, "an array whose last dimensions are not those of the type in its notes");
  if (!ends_with(chunk))
    throw unsupported_in_hdf5(reason_code::damaged, "an array in whose chunks values of the type in its notes are cut");
  f.dims.resize(f.dims.size() - n);
  chunk.resize(chunk.size() - n);
  for (const std::uint64_t e : extents) f.inner *= static_cast<std::size_t>(e);
}

type_spec element_spec(const zarr::zarr_type& type, const store_node& node, const spec_rules& rules) {
  const text::json& note = node.note("hdf5_type");
  if (note.is_null()) {
    // xarray's booleans in netCDF
    if (type.kind == zarr_kind::boolean && (says_int8_boolean(node) || rules.netcdf)) return integer_spec(1, true, false);
    type_spec t = spec_of_array(type, metadata::is_big_endian(codecs_of_chunks(node)), node.note("enum"), rules);
    return rules.netcdf_types ? netcdf_spec(std::move(t)) : std::move(t);
  }
  type_spec t = spec_of_note(note, rules);
  if (type.kind == zarr_kind::complex) take_for_complex(t);
  if (type.name.starts_with("numpy.") && t.kind == type_kind::bytes) t.is_ordered = true;  // the tag says "<"
  if (!rules.netcdf_types) return t;
  const bool fixed = t.kind == type_kind::text && !t.variable;
  return fixed && type.kind != zarr_kind::terminated ? variable_text_spec() : netcdf_spec(std::move(t));
}

// The extents of array types, whose dimensions are the last ones of the array; for netCDF, they stay there.
array::extents array_types(const store_node& node, const spec_rules& rules) {
  array::extents extents;
  if (rules.netcdf_types) return extents;
  const text::json& note = node.note("array_type");
  for (const text::json& e : note.is_array() ? note : no_codecs) {
    if (!e.is_number_unsigned() || e == 0U)
      throw unsupported_in_hdf5(reason_code::damaged, "a note on its array type that is not a list of extents");
    extents.push_back(e.get<std::uint64_t>());
  }
  return extents;
}

void find_type(dataset_spec& f, const source_array& array, const store_node& node, const spec_rules& rules,
               array::extents& chunk) {
  const zarr::zarr_type& type = array.type();
  f.element = element_spec(type, node, rules);
  if (f.element.kind == type_kind::bytes && type.kind == zarr_kind::unsigned_integer && type.size == 1) {
    take_inner(f, {f.element.size}, chunk);
    f.composite = std::move(f.element);
    f.element = integer_spec(1, false, false);
  }
  if (array::extents extents = array_types(node, rules); !extents.empty()) {
    take_inner(f, extents, chunk);
    f.composite = array_spec(f.composite ? std::move(*f.composite) : element_spec(type, node, rules), std::move(extents));
  }
  f.same_layout = is_same_layout(f.element, type);
  const bool text_like =
      type.variable() || type.kind == zarr_kind::text32 || type.kind == zarr_kind::terminated || type.kind == zarr_kind::record;
  if (!f.same_layout && !text_like)
    throw unsupported_in_hdf5(reason_code::damaged,
                              "the notes of the array give it a type that its data type, " + type.name + ", does not fit");
  if (rules.netcdf_types && f.same_layout && f.element.kind == type_kind::text && f.element.size > 1) {
    f.characters = f.element.size;
    f.element = text_spec(1, false, rules);
    f.dims.push_back(f.characters);
    chunk.push_back(f.characters);
  }
}

// The chunk length that covers the most elements, if lengths differ: HDF5 has chunks of one length.
std::uint64_t usual_length(const metadata::dimension_grid& edges) {
  std::map<std::uint64_t, std::uint64_t> elements;  // of each length
  std::uint64_t usual = edges.max_length();
  for (const auto& run : edges.runs()) elements[run.length] += run.length * run.count;
  for (const auto& [length, element_count] : elements) {
    if (element_count >= elements[usual]) usual = length;
  }
  return usual;
}

}  // namespace

const text::json& codecs_of_chunks(const store_node& node) {
  const text::json& codecs = metadata::codecs_of(node.document);
  return codecs.is_array() ? metadata::inner_codecs(codecs) : no_codecs;
}

bool must_write_fill(const source_array& array, const dataset_spec& form) {
  if (form.null || form.type().holds_references()) return false;
  const zarr::element_buffer& fill = array.fill();
  if (array.type().variable()) return !fill.strings[0].empty();
  const std::vector<std::byte>& bytes = fill.data;
  if (form.characters > 0) return std::any_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b != bytes[0]; });
  return form.type().has_variable_parts() &&
         std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
}

std::size_t characters_of(const store_node& node, const spec_rules& rules) {
  if (!rules.netcdf_types || !node.is_array || metadata::data_type_of(node.document).is_null()) return 0;
  const zarr::zarr_type type = zarr::parse_type(metadata::data_type_of(node.document));
  if (type.kind != zarr_kind::terminated || type.size < 2) return 0;
  const type_spec t = element_spec(type, node, rules);
  return t.kind == type_kind::text && !t.variable ? type.size : 0;
}

array::extents max_dims_of(const store_node& node, const array::extents& dims) {
  array::extents max_dims = dims;
  const text::json& note = node.note("maxshape");
  if (!note.is_array()) return max_dims;
  // dimensions that a convention made longer, and those within a value, have no limits of their own
  for (std::size_t i = 0; i < std::min(max_dims.size(), note.size()); ++i) {
    if (note[i].is_null()) max_dims[i] = H5S_UNLIMITED;
    else if (note[i].is_number_unsigned()) max_dims[i] = std::max<std::uint64_t>(max_dims[i], note[i].get<std::uint64_t>());
  }
  return max_dims;
}

dataset_spec dataset_spec_of(const source_array& array, const store_node& node, const spec_rules& rules) {
  dataset_spec f;
  f.dims = array.shape();
  array::extents chunk = array.chunk_shape();
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (!array.grid(i).is_regular()) chunk[i] = usual_length(array.grid(i));
  }
  f.null = node.note("null_dataspace") == true;
  if (f.null) {
    f.element = element_spec(array.type(), node, rules);
    if (array::extents extents = array_types(node, rules); !extents.empty())
      f.composite = array_spec(element_spec(array.type(), node, rules), std::move(extents));
    return f;
  }
  find_type(f, array, node, rules, chunk);
  if (f.dims.size() > H5S_MAX_RANK)
    throw unsupported_in_hdf5(reason_code::unsupported_feature, "an array of more than 32 dimensions");
  f.max_dims = max_dims_of(node, f.dims);
  std::uint64_t total_bytes = H5Tget_size(f.type().file), in_chunk = total_bytes, count = 1;
  bool one = true;
  for (std::size_t i = 0; i < f.dims.size(); ++i) {
    if (f.max_dims[i] == 0) f.max_dims[i] = 1;
    if (__builtin_mul_overflow(total_bytes, std::max<std::uint64_t>(f.dims[i], 1), &total_bytes) ||
        total_bytes > (std::uint64_t{1} << 62))
      throw unsupported_in_hdf5(reason_code::too_large, "an array of more than 4 EiB");
    if (__builtin_mul_overflow(in_chunk, chunk[i], &in_chunk) || in_chunk > 0xFFFFFFFFU)
      throw unsupported_in_hdf5(reason_code::too_large, "a chunk of more than 4 GiB, which HDF5 cannot have");
    count *= f.dims[i];
    one = one && chunk[i] >= f.dims[i];
  }
  const text::json& codecs = codecs_of_chunks(node);
  const bool fixed =
      f.max_dims == f.dims || (count == 0 && std::find(f.max_dims.begin(), f.max_dims.end(), H5S_UNLIMITED) == f.max_dims.end());
  // one piece without compression is stored as HDF5 stores data that nobody chunked
  if (f.dims.empty() || (fixed && (count == 0 || (one && codecs.size() <= 1)))) {
    f.max_dims = f.dims;
    return f;
  }
  for (std::size_t i = 0; i < f.dims.size(); ++i)
    f.max_dims[i] = std::max(f.max_dims[i], chunk[i]);  // HDF5's chunks fit in the limits
  f.chunk = std::move(chunk);
  return f;
}

}  // namespace zarrbits::exporting
