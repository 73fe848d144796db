// SPDX-License-Identifier: BSL-1.0
#include "array/chunk_grid.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/type_description.hpp"
#include "hdf5/type_json.hpp"
#include "hdf5/zarrbits_filters.hpp"
#include "inspect/tree_readers.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace zarrbits::inspection {

using node = inspected_node;

namespace {

std::string type_text(const hdf5::type_description& t) {
  const std::string order = t.big_endian && hdf5::has_byte_order(t) ? " big-endian" : "";
  switch (t.kind) {
    case hdf5::type_class::boolean: return "bool";
    case hdf5::type_class::enumeration:
      return "enum " + std::string(t.is_signed ? "int" : "uint") + std::to_string(8 * t.size) + order;
    case hdf5::type_class::integer:
    case hdf5::type_class::floating:
    case hdf5::type_class::complex: return (t.stored.empty() ? hdf5::zarr_data_type(t).get<std::string>() : t.stored) + order;
    case hdf5::type_class::text: return t.variable ? "string" : "string of " + std::to_string(t.size);
    case hdf5::type_class::opaque: return "opaque of " + std::to_string(t.size);
    case hdf5::type_class::compound: {
      std::string s = "{";
      for (const hdf5::type_description& m : t.parts)
        s += (s.size() > 1 ? ", " : "") + text::escape_name(m.name) + ": " + type_text(m);
      return s + "}";
    }
    case hdf5::type_class::array: {
      std::string s = type_text(t.element()) + "[";
      for (const std::uint64_t d : t.dims) s += (s.back() == '[' ? "" : ", ") + std::to_string(d);
      return s + "]";
    }
    case hdf5::type_class::sequence: return "sequence of " + type_text(t.element());
    case hdf5::type_class::object_reference: return "object reference";
    case hdf5::type_class::region_reference: return "region reference";
    case hdf5::type_class::unsupported: return t.reason;
  }
  return {};
}

constexpr std::uint64_t max_chunk_bytes = std::uint64_t{1} << 48;  // for which sizes can be computed

std::uint64_t attribute_count(hid_t object) {
  H5O_info_t info;
  return H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) >= 0 ? info.num_attrs : 0;
}

// How many chunks our packbits left unpacked, without reading any: if it is the only filter apart from checksums, each has one of
// two sizes, so the number and the sum of all imply it. With a compressor, only the content of the chunks does
// (report_filters()).
std::optional<std::uint64_t> unpacked_chunks(const hdf5::pipeline& p, const hdf5::type_description& t, std::uint64_t chunk_bytes,
                                             const node& n) {
  const auto is_packbits = [](const hdf5::filter& f) { return f.id == hdf5::packbits_filter; };
  const auto f = std::find_if(p.filters.begin(), p.filters.end(), is_packbits);
  if (f == p.filters.end() || !hdf5::was_resolved(*f) || !hdf5::supports_packbits(*f, t)) return {};
  const std::uint64_t checksums = p.filters.size() - 1;
  if (std::any_of(p.filters.begin(), p.filters.end(),
                  [&](const hdf5::filter& g) { return !is_packbits(g) && g.id != H5Z_FILTER_FLETCHER32; }) ||
      std::count_if(p.filters.begin(), p.filters.end(), is_packbits) != 1 || (p.partial_unfiltered && checksums > 0))
    return {};
  const std::uint64_t packed = hdf5::packed_size(*f, chunk_bytes, t), min_size = packed + 4 * checksums;
  if (packed >= chunk_bytes || n.objects > n.stored_bytes / min_size) return {};
  const std::uint64_t excess = n.stored_bytes - n.objects * min_size, excess_per_chunk = chunk_bytes - packed;
  return excess % excess_per_chunk == 0 && excess / excess_per_chunk <= n.objects ? std::optional(excess / excess_per_chunk)
                                                                                  : std::nullopt;
}

void describe_dataset(hid_t dataset, node& n) {
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype"), space(H5Dget_space(dataset), "get the dataspace"),
      properties(H5Dget_create_plist(dataset), "get the properties");
  const hdf5::type_description t = hdf5::describe_type(type);
  n.type = type_text(t);
  text::json details = {{"data_type", hdf5::datatype_json(t)}};
  n.details = text::json_text(details);
  if (H5Sget_simple_extent_type(space) != H5S_NULL) {
    const array::extents extent = hdf5::extent(space);
    n.shape.emplace(extent.begin(), extent.end());
    const array::extents max_extent = hdf5::maximum_extent(space);
    for (std::size_t d = 0; d < max_extent.size(); ++d) {
      if (max_extent[d] == H5S_UNLIMITED) n.unlimited.push_back(d);
    }
  }
  const H5D_layout_t layout = H5Pget_layout(properties);
  n.layout = layout == H5D_COMPACT                   ? "compact"
             : layout == H5D_VIRTUAL                 ? "virtual"
             : H5Pget_external_count(properties) > 0 ? "external"
                                                     : "contiguous";
  n.stored_bytes = H5Dget_storage_size(dataset);
  n.objects = n.stored_bytes > 0;
  if (layout != H5D_CHUNKED) return;
  n.layout.clear();
  const array::extents chunk = hdf5::chunk_extent(properties);
  if (chunk.size() == (n.shape ? n.shape->size() : 0)) n.chunk = chunk;
  hsize_t chunks = 0;
  const hdf5::pipeline p = hdf5::read_pipeline(properties);
  n.codecs = p.text();
  if (H5Dget_num_chunks(dataset, space, &chunks) >= 0) {
    n.objects = chunks;
    const std::uint64_t elements = array::product(chunk), size = H5Tget_size(type);
    if (size > 0 && elements <= max_chunk_bytes / size) n.unpacked = unpacked_chunks(p, t, elements * size, n);
  }
  details["filters"] = text::json::array();
  for (const hdf5::filter& f : p.filters)
    details["filters"].push_back({{"id", f.id}, {"name", text::escape_name(f.name)}, {"values", f.values}});
  n.details = text::json_text(details);
}

// The names that it has; those that the converter gives to nameless dimensions are left out.
std::vector<std::string> names_of_dimensions(const hdf5::source_file& source, const hdf5::source_object& o, hid_t dataset,
                                             const node& n) {
  if (!n.shape || n.shape->empty()) return {};
  std::vector<std::string> names = hdf5::dimension_namer(source).names(o, dataset, *n.shape, n.shape->size());
  for (std::string& name : names) {
    if (name.starts_with(text::phony_prefix)) name.clear();
  }
  const bool has_names = std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  return has_names ? names : std::vector<std::string>();
}

std::string fill_value_of(hid_t dataset) {
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype"),
      properties(H5Dget_create_plist(dataset), "get the properties");
  const hdf5::type_description t = hdf5::describe_type(type);
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  const bool number = t.kind == hdf5::type_class::boolean || t.kind == hdf5::type_class::enumeration ||
                      t.kind == hdf5::type_class::integer || t.kind == hdf5::type_class::floating ||
                      t.kind == hdf5::type_class::complex;
  if (!number || H5Pfill_value_defined(properties, &status) < 0 || status == H5D_FILL_VALUE_UNDEFINED) return {};
  std::vector<std::byte> fill(t.size);
  if (H5Pget_fill_value(properties, t.memory, fill.data()) < 0) return {};
  return text::json_text(hdf5::fill_json(t, fill.data()));
}

std::string attributes_of(const hdf5::source_file& source, hid_t object) {
  constexpr std::uint64_t max_bytes = 64U << 20;  // bytes of all
  hdf5::file_references references(source, object);
  std::vector<hdf5::attribute_report> unused;
  const text::json values = hdf5::convert_attributes(object, references, nullptr, {}, max_bytes, unused);
  return values.empty() ? "" : text::json_text(values);
}

// Adds the object, then its content, in order of names.
void add(const hdf5::source_file& source, std::size_t index, inspected_tree& t, const inspect_options& options) {
  const hdf5::source_object& o = source.objects()[index];
  if (options.progress) options.progress(o.path);
  node n;
  n.path = o.path;
  n.kind = o.kind == hdf5::source_object::kind_type::group     ? "group"
           : o.kind == hdf5::source_object::kind_type::dataset ? "array"
                                                               : "datatype";
  try {
    const hdf5::handle id = source.open(o);
    n.attributes = attribute_count(id);
    // libhdf5 opens the sources of a virtual dataset to find its extent
    if (n.kind == "array" && source.find_external_dependencies(id)->is_cyclic)
      throw hdf5::failure(source.find_external_dependencies(id)->obstacle);
    if (n.kind == "array") {
      describe_dataset(id, n);
      n.dimension_names = names_of_dimensions(source, o, id, n);
      n.fill_value = fill_value_of(id);
    }
    if (options.attributes) n.attribute_values = attributes_of(source, id);
    if (n.kind == "datatype") n.type = type_text(hdf5::describe_type(id));
  } catch (const hdf5::failure& e) {
    n.kind = "unreadable";
    n.note = e.what();
    n.code = e.code;
  }
  H5Eclear2(H5E_DEFAULT);
  if (!o.listing_error.empty()) {
    n.note = "not everything in it can be listed: " + o.listing_error.sentence;
    n.code = o.listing_error.code;
  }
  t.nodes.push_back(std::move(n));
  std::multimap<std::string, std::function<void()>> children;
  for (const std::size_t child : o.children)
    children.emplace(source.objects()[child].path, [&, child] { add(source, child, t, options); });
  for (const hdf5::extra_link& link : o.links) {
    node l;
    l.path = text::join_path(o.path, text::escape_name(link.name));
    l.kind = link.kind == "broken" ? "unreadable" : "link";
    l.type = link.kind == "broken" ? "" : link.kind + " link";
    l.note = link.kind == "broken" ? link.detail : link.file.empty() ? link.target : link.file + ":" + link.target;
    if (link.kind == "broken") l.code = link.code;
    children.emplace(l.path, [&t, l] { t.nodes.push_back(l); });
  }
  for (const auto& [path, emit] : children) emit();
}

}  // namespace

inspected_tree read_hdf5(const std::string& file, const std::string& object, const inspect_options& options) {
  hdf5::source_file source(file, {.remote = options.remote, .cache = options.memory / 4, .lock = options.lock});
  source.walk(true, object);
  inspected_tree t;
  t.name = object.empty() ? file : file + ":" + object;
  t.format = "HDF5";
  if (!object.empty()) t.top = text::escape_name(object);
  t.bytes = source.state().size;
  t.files = 1;
  add(source, 0, t, options);
  source.require_unchanged();
  return t;
}

}  // namespace zarrbits::inspection
