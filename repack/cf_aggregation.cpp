// SPDX-License-Identifier: BSL-1.0
#include "repack/cf_aggregation.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

namespace zarrbits::repacking {

namespace {

constexpr int first_minor_version = 13;  // of CF that has aggregation variables
constexpr const char* packing_attributes[] = {"scale_factor", "add_offset"};

bool is_netcdf_number(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  const bool is_integer = H5Tget_class(type) == H5T_INTEGER && (size == 1 || size == 2 || size == 4 || size == 8);
  const bool is_float = H5Tget_class(type) == H5T_FLOAT && (size == 4 || size == 8);
  return (is_integer || is_float) && H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0;
}

// What the conventions unpack values to, by the types of the attributes. `reason` is set if these are not numbers.
hid_t unpacked_type(hid_t dataset, hid_t type, std::string& reason) {
  std::size_t size = 0;
  for (const char* name : packing_attributes) {
    if (H5Aexists(dataset, name) <= 0) continue;
    const hdf5::handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), "open an attribute");
    const hdf5::handle number(H5Aget_type(attribute), "get the datatype of an attribute"),
        space(H5Aget_space(attribute), "get the dataspace of an attribute");
    if (!is_netcdf_number(number) || H5Tget_class(number) != H5T_FLOAT || H5Sget_simple_extent_npoints(space) != 1)
      reason = std::string("its \"") + name + "\" is not a floating-point number";
    size = std::max(size, H5Tget_size(number));
  }
  if (size == 0) return H5I_INVALID_HID;
  if (H5Tget_class(type) == H5T_FLOAT) size = std::max(size, H5Tget_size(type));
  return size > 4 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
}

hdf5::handle text_type(std::size_t size) {
  hdf5::handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(type, size), "create a string type");
  hdf5::check(H5Tset_cset(type, H5T_CSET_UTF8), "set a character set");
  return type;
}

// As netCDF writes text.
void write_text(hid_t object, const char* name, const std::string& text) {
  const hdf5::handle type = text_type(text.size()), space(H5Screate(H5S_SCALAR), "create a dataspace");
  if (H5Aexists(object, name) > 0) hdf5::check(H5Adelete(object, name), "replace an attribute");
  const hdf5::handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute");
  hdf5::check(H5Awrite(attribute, type, text.data()), "write an attribute");
}

void write_number(hid_t object, const char* name, hid_t type, double value) {
  const hsize_t one = 1;
  const hdf5::handle space(H5Screate_simple(1, &one, nullptr), "create a dataspace");
  const hdf5::handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute");
  hdf5::check(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value), "write an attribute");
}

// No extents: a scalar.
hdf5::handle create_variable(hid_t target, const std::string& name, hid_t type, const std::vector<hsize_t>& extents) {
  const hdf5::handle properties(H5Pcreate(H5P_DATASET_CREATE), "create properties");
  hdf5::check(H5Pset_obj_track_times(properties, false), "leave out times");
  const hdf5::handle space(
      extents.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      "create a dataspace");
  return {H5Dcreate2(target, name.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT), "create a dataset"};
}

void write_strings(hid_t target, const std::string& name, const std::vector<std::string>& strings,
                   const std::vector<hsize_t>& extents) {
  const hdf5::handle type = text_type(H5T_VARIABLE), dataset = create_variable(target, name, type, extents);
  std::vector<const char*> pointers;
  for (const std::string& s : strings) pointers.push_back(s.c_str());
  hdf5::check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), "write values");
}

// The variable's name, or, in a group, its path. netCDF calls a variable that is not the coordinates of its dimension "x", and
// its dataset "_nc4_non_coord_x".
std::string identifier_of(const std::string& path) {
  constexpr std::string_view prefix = "_nc4_non_coord_";
  const std::size_t begin = path.rfind('/') + 1;
  std::string name = path.substr(begin);
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return begin > 1 ? path.substr(0, begin) + name : name;
}

// The root group's attribute, which also names the first version of CF that has aggregation variables, or a later one.
std::string conventions_with_aggregation(const std::string& conventions) {
  const std::string version = "CF-1." + std::to_string(first_minor_version);
  for (std::size_t begin = conventions.find("CF-"); begin != conventions.npos; begin = conventions.find("CF-", begin + 1)) {
    if (begin > 0 && conventions[begin - 1] != ' ' && conventions[begin - 1] != ',') continue;
    const std::size_t end = std::min(conventions.find_first_of(" ,", begin), conventions.size());
    const std::string word = conventions.substr(begin, end - begin);
    int minor = 0;
    const bool is_first =
        word.starts_with("CF-1.") && std::from_chars(word.data() + 5, word.data() + word.size(), minor).ec == std::errc();
    if (!is_first || minor >= first_minor_version) return conventions;
    return conventions.substr(0, begin) + version + conventions.substr(end);
  }
  if (conventions.empty()) return version;
  return conventions + (conventions.find(',') != conventions.npos ? ", " : " ") + version;
}

}  // namespace

// Why a dataset cannot be an aggregation variable; empty if it can.
std::string cf_aggregation::obstacle(const opened_file& source, const tree_object& o, hid_t dataset, const combined_dataset& d,
                                     variable& v) const {
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype");
  if (!is_netcdf_number(type)) return "its type is not one of netCDF's number types";
  if (H5Aexists(dataset, "_Unsigned") > 0) return "its attribute \"_Unsigned\" gives its values another type";
  std::string reason;
  v.unpacked_type = unpacked_type(dataset, type, reason);
  if (!reason.empty()) return reason;
  std::vector<std::vector<std::string>> scales = scale_paths(source, dataset, d.dims.size() - (d.has_new_dimension ? 1 : 0));
  if (d.has_new_dimension) scales.insert(scales.begin(), {files_.new_dimension_path()});
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (scales[i].size() != 1) return "its dimension " + std::to_string(i) + " has no scale, or several";
    const std::string& path = scales[i][0];
    v.short_names.push_back(text::base_name(path));
    const bool is_new = d.has_new_dimension && i == 0;
    const bool is_in_scope = is_new || path_in_scope(source.tree, o.path, v.short_names.back()) == path;
    const std::string name = is_in_scope ? v.short_names.back() : path;
    if (name.find_first_of(" \t\n") != name.npos) return "the name of its dimension " + std::to_string(i) + " has blanks";
    v.dimensions += (i > 0 ? " " : "") + name;
  }
  std::uint64_t places = 1;
  for (std::size_t i = 0; i < d.dims.size(); ++i) {
    const std::vector<std::uint64_t> lengths = lengths_along(d, i);
    places = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == d.shape[i]
                 ? array::saturating_mul(places, lengths.size())
                 : 0;
  }
  return places == d.placed.size() ? "" : "some of its parts are in no file";
}

// Those of the parts, in their order.
std::vector<std::uint64_t> cf_aggregation::lengths_along(const combined_dataset& d, std::size_t dimension) const {
  std::map<std::uint64_t, std::uint64_t> lengths;
  for (const auto& [first, part] : d.placed) {
    if (!lengths.contains(first[dimension])) lengths[first[dimension]] = files_.shape_of(d, d.parts[part])[dimension];
  }
  std::vector<std::uint64_t> result;
  for (const auto& [first, n] : lengths) result.push_back(n);
  return result;
}

void cf_aggregation::require_small(const std::string& path, const combined_dataset& d, const std::string& reason) const {
  const std::uint64_t bytes = array::saturating_mul(array::product(d.shape), std::max<std::uint64_t>(d.element_bytes, 1));
  if (!d.is_tiled() || bytes <= max_stored_bytes) return;
  throw error(errc::not_joinable,
              "\"" + text::escape_name(path) + "\" cannot be an aggregation variable: " + reason + ", and its values, " +
                  text::format_bytes(bytes) +
                  ", are too many to be in the new file itself; remove `cf_aggregation`, or leave it " + "out of the files",
              {path});
}

void cf_aggregation::plan(const opened_file& source, std::size_t k) {
  for (const tree_object& o : source.tree.objects) {
    names_.insert(text::base_name(o.path));
    for (const tree_link& link : o.links) names_.insert(link.name);
    if (o.kind != H5I_DATASET) continue;
    const hdf5::handle dataset = open_object(source.file.file(), o);
    if (!hdf5::is_dimension_scale(dataset)) continue;
    for (const char* attribute : {"bounds", "climatology"}) {
      if (H5Aexists(dataset, attribute) <= 0) continue;
      for (const std::string& name : hdf5::text_attribute(dataset, attribute))
        bounds_.insert(path_in_scope(source.tree, o.path, name));
    }
  }
  for (const tree_object& o : source.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    const combined_dataset& d = files_.datasets().at(o.path);
    if (d.parts[0].file != k || d.is_left_out || d.is_copied || d.is_stored()) continue;
    const hdf5::handle dataset = open_object(source.file.file(), o);
    const bool is_coordinate = hdf5::is_dimension_scale(dataset) || d.is_coordinate(o.path) || bounds_.contains(o.path);
    variable v;
    const std::string reason = is_coordinate                  ? "it has coordinates"
                               : array::product(d.shape) == 0 ? "it has no values"
                                                              : obstacle(source, o, dataset, d, v);
    if (reason.empty()) {
      variables_.emplace(o.path, std::move(v));
      continue;
    }
    require_small(o.path, d, reason);
    if (!is_coordinate && array::product(d.shape) > 0)
      files_.add_note("\"" + text::escape_name(o.path) +
                      "\" is stored with its values, not as an aggregation variable: " + reason);
  }
}

hid_t cf_aggregation::type_of(const std::string& path) const { return variables_.at(path).unpacked_type; }

std::set<std::string> cf_aggregation::omitted_attributes(const std::string& path) const {
  std::set<std::string> names = dimension_lists::attributes(true);
  // the parts are unpacked, and their missing values are missing, before they are put together
  if (type_of(path) >= 0)
    names.insert({"scale_factor", "add_offset", "_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"});
  return names;
}

std::string cf_aggregation::unused_name(const std::string& name) {
  std::string result = name;
  for (int i = 2; !names_.insert(result).second; ++i) result = name + "_" + std::to_string(i);
  return result;
}

std::string cf_aggregation::dimension_of(const std::string& name, std::uint64_t length, dimension_lists& dimensions) {
  const auto [entry, is_new] = new_dimensions_.try_emplace({name, length});
  if (is_new) dimensions.add_dimension(entry->second = unused_name(name), length);
  return entry->second;
}

const cf_aggregation::fragment_arrays& cf_aggregation::arrays_of(hid_t target, const combined_dataset& d, const variable& v,
                                                                 dimension_lists& dimensions) {
  std::vector<std::string> uris;
  for (const auto& [first, part] : d.placed) uris.push_back(uri_of_(d.parts[part].file));
  std::vector<std::vector<std::uint64_t>> lengths;
  std::vector<hsize_t> counts;
  for (std::size_t i = 0; i < d.dims.size(); ++i) {
    lengths.push_back(lengths_along(d, i));
    counts.push_back(lengths.back().size());
  }
  const auto [entry, is_new] = arrays_.try_emplace({v.short_names, lengths, uris});
  fragment_arrays& arrays = entry->second;
  if (!is_new) return arrays;
  arrays = {unused_name("fragment_map"), unused_name("fragment_uris")};
  const hsize_t rows = lengths.size(), columns = *std::max_element(counts.begin(), counts.end());
  constexpr std::int64_t missing = -1;
  std::vector<std::int64_t> map(rows * columns, missing);
  for (std::size_t i = 0; i < rows; ++i)
    std::copy(lengths[i].begin(), lengths[i].end(), map.begin() + static_cast<std::ptrdiff_t>(i * columns));
  const bool is_small = *std::max_element(map.begin(), map.end()) <= std::numeric_limits<std::int32_t>::max();
  const hid_t type = is_small ? H5T_STD_I32LE : H5T_STD_I64LE;
  const hdf5::handle dataset = create_variable(target, arrays.map, type, {rows, columns});
  hdf5::check(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, map.data()), "write values");
  write_number(dataset, "_FillValue", type, missing);
  write_strings(target, arrays.uris, uris, counts);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows; ++i) names.push_back(dimension_of("f_" + v.short_names[i], counts[i], dimensions));
  dimensions.add_user("/" + arrays.uris, names);
  dimensions.add_user("/" + arrays.map, {dimension_of("j", rows, dimensions), dimension_of("i", columns, dimensions)});
  return arrays;
}

void cf_aggregation::create(hid_t target, dimension_lists& dimensions) {
  if (!files_.new_dimension_path().empty()) names_.insert(text::base_name(files_.new_dimension_path()));
  for (const auto& [path, v] : variables_) {
    if (files_.datasets().at(path).is_left_out) continue;
    const fragment_arrays& arrays = arrays_of(target, files_.datasets().at(path), v, dimensions);
    const std::string identifiers = unused_name("fragment_identifiers_" + text::base_name(path));
    write_strings(target, identifiers, {identifier_of(path)}, {});
    const hdf5::handle dataset(H5Dopen2(target, path.c_str(), H5P_DEFAULT), "open a dataset");
    write_text(dataset, "aggregated_dimensions", v.dimensions);
    write_text(dataset, "aggregated_data", "map: " + arrays.map + " uris: " + arrays.uris + " identifiers: " + identifiers);
    if (v.unpacked_type < 0) continue;
    constexpr double missing = std::numeric_limits<double>::quiet_NaN();
    write_number(dataset, "_FillValue", v.unpacked_type, missing);
    hdf5::check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &missing), "write a value");
  }
  if (variables_.empty()) return;
  const hdf5::handle root(H5Gopen2(target, "/", H5P_DEFAULT), "open the root group");
  std::string conventions;
  if (H5Aexists(root, "Conventions") > 0) {
    for (const std::string& name : hdf5::text_attribute(root, "Conventions"))
      conventions += (conventions.empty() ? "" : " ") + name;
  }
  write_text(root, "Conventions", conventions_with_aggregation(conventions));
}

}  // namespace zarrbits::repacking
