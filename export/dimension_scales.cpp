// SPDX-License-Identifier: BSL-1.0
#include "export/dimension_scales.hpp"

#include "export/dataset_spec.hpp"
#include "export/netcdf_types.hpp"
#include "export/path_references.hpp"
#include "export/property_lists.hpp"
#include "hdf5/scale_attributes.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace zarrbits::exporting {

namespace {

bool is_unnamed(const std::string& dimension) { return dimension.empty() || text::is_phony(dimension); }

// That netCDF gave a dimension.
std::optional<std::int64_t> noted_id(const text::json& notes) {
  const text::json values = notes.is_object() ? notes.value("attribute_values", text::json()) : text::json();
  text::json id = values.is_object() ? values.value("_Netcdf4Dimid", text::json()) : text::json();
  if (id.is_array() && id.size() == 1) id = text::json(id[0]);
  return id.is_number_integer() ? std::optional(id.get<std::int64_t>()) : std::nullopt;
}

}  // namespace

dimension_scales::dimension_scales(store_tree& tree, const spec_rules& rules) : tree_(tree), rules_(rules) {
  for (std::size_t g = 0; g < tree.nodes.size(); ++g) {
    if (tree.nodes[g].kind == tree_node::kind_type::group) define_noted(g);
  }
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const tree_node& n = tree.nodes[i];
    if (!n.dimensions.empty() && n.dimensions[0] == last_of(n.path)) coordinates_.emplace(n.dimensions[0], i);
  }
  names_some_ = !scales_.empty() || std::any_of(tree.nodes.begin(), tree.nodes.end(), [&](const tree_node& n) {
    return n.kind == tree_node::kind_type::array && names_dimensions(n);
  });
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].kind == tree_node::kind_type::array) find_dimensions(i);
  }
  name_variables();
}

std::size_t dimension_scales::define(scale s) {
  by_name_[{s.group, s.name}] = scales_.size();
  scales_.push_back(std::move(s));
  return scales_.size() - 1;
}

void dimension_scales::define_noted(std::size_t g) {
  const store_node group = read_store_node(tree_.nodes[g].folder);
  if (group.is_array) return;  // a store that is one array
  const text::json& noted = group.note("dimensions");
  if (!noted.is_object()) return;
  for (const auto& item : noted.items()) {
    const text::json& note = item.value();
    if (!note.is_object() || !note.value("length", text::json()).is_number_unsigned() || text::is_phony(item.key())) continue;
    scale s;
    s.name = text::unescape_name(item.key());
    if (rules_.netcdf_types) s.name = text::to_nfc(s.name);
    s.length = note["length"].get<std::uint64_t>();
    s.group = g;
    s.unlimited = note.value("unlimited", text::json()) == true;
    if (note.contains("attributes") && note["attributes"].is_object()) {
      s.attributes = note["attributes"];
      if (const auto notes_entry = s.attributes.find("zarrbits"); notes_entry != s.attributes.end()) {
        s.notes = *notes_entry;
        s.attributes.erase(notes_entry);
      }
    }
    s.id = noted_id(s.notes);
    if (is_link_name(s.name)) define(std::move(s));
  }
}

// A text of fixed length without dimensions has one for its characters.
bool dimension_scales::names_dimensions(const tree_node& n) const {
  if (n.shape.empty()) return rules_.netcdf_types && characters_of(read_node(n), rules_) > 0;
  return !std::all_of(n.dimensions.begin(), n.dimensions.end(), is_unnamed);
}

// Gives the dimensions names that netCDF can have: its programs do not open files in which an array has only some, and xarray
// mistakes the numbers of those without a name where others have one.
void dimension_scales::name_all(std::size_t i, const store_node& node) {
  tree_node& n = tree_.nodes[i];
  if (!names_some_) return;
  n.dimensions.resize(n.shape.size());
  if (const std::size_t characters = characters_of(node, rules_); characters > 0) {
    n.dimensions.push_back("string" + std::to_string(characters));
    n.shape.push_back(characters);
  }
  for (std::size_t d = 0; d < n.dimensions.size(); ++d) {
    std::string& name = n.dimensions[d];
    const std::string reason = is_unnamed(name) ? "" : is_link_name(name) ? fault_of_netcdf_name(name) : "such a name";
    if (!is_unnamed(name) && reason.empty()) continue;
    const std::string generated = last_of(n.path) + "_dim_" + std::to_string(d);
    if (!reason.empty())
      add_renamed(n.path, "netCDF cannot have " + reason + "; \"" + text::escape_name(name) + "\" is \"" +
                              text::escape_name(generated) + "\" in the file");
    name = generated;
  }
}

void dimension_scales::find_dimensions(std::size_t i) {
  const store_node node = read_node(tree_.nodes[i]);
  if (node.note("null_dataspace") == true) {
    const text::json& noted = node.note("attribute_values");
    if (noted.is_object() && noted.contains("NAME")) without_dataspace_.emplace(tree_.nodes[i].path, i);
    return;
  }
  if (rules_.netcdf_types) name_all(i, node);
  const tree_node& n = tree_.nodes[i];
  if (n.dimensions.empty()) return;
  const text::json& values = node.note("attribute_values");
  const text::json numbers = values.is_object() ? values.value("_Netcdf4Coordinates", text::json()) : text::json();
  if (!numbers.is_null()) with_all_ids_.insert(i);
  const std::optional<std::int64_t> id = noted_id(node.notes);
  if (id) with_first_id_.insert(i);
  auto& of = of_node_[i];
  const text::json& limits = node.note("maxshape");
  for (std::size_t d = 0; d < n.dimensions.size(); ++d) {
    of.emplace_back();
    const std::string& name = n.dimensions[d];
    if (!is_link_name(name) || text::is_phony(name)) continue;
    of.back() = find(n, d, id || !numbers.is_null());
    if (!of.back()) continue;
    scale& s = scales_[*of.back()];
    if (limits.is_array() && d < limits.size() && limits[d].is_null()) s.unlimited = true;
    if (d == 0 && id) s.id = id;
    else if (numbers.is_array() && d < numbers.size() && numbers[d].is_number_integer()) s.id = numbers[d].get<std::int64_t>();
  }
}

std::optional<std::size_t> dimension_scales::find(const tree_node& n, std::size_t d, bool noted_by_netcdf) {
  const std::string& name = n.dimensions[d];
  const std::uint64_t length = n.shape[d];
  const auto define_in = [&](std::size_t group, const std::string& dimension_name) {
    scale s;
    s.name = dimension_name;
    s.length = length;
    s.group = group;
    return define(std::move(s));
  };
  auto result = visible(n.parent, name, length);
  if (result && rules_.netcdf_types && is_hidden(n, *result)) result.reset();
  if (!result && tree_.convention == "netcdf") {
    result = visible(n.parent, name, {});
    // in a file of netCDF's own, all arrays have the length of a dimension: the note is of another time, or of more files
    const bool is_stale = result && noted_by_netcdf && scales_[*result].id && scales_[*result].used_in.empty();
    if (is_stale) scales_[*result].length = length;
    else if (rules_.netcdf_types) result.reset();
    // otherwise HDF-EOS has scales of other lengths, and in groups beside that of the array
  }
  if (!result && tree_.convention == "netcdf") {
    if (const auto coordinate = nearest_coordinate(n, name, length)) {
      const std::size_t group = tree_.nodes[*coordinate].parent;
      const auto entry = by_name_.find({group, name});
      if (entry == by_name_.end()) result = define_in(group, name);
      else if (!rules_.netcdf_types || scales_[entry->second].length == length) result = entry->second;
    }
  }
  const bool other_name = rules_.netcdf_types && (has_other_values(n.parent, name, length) || would_hide(n.parent, name));
  if (!result && !by_name_.contains({n.parent, name}) && !other_name) result = define_in(n.parent, name);
  if (!result && rules_.netcdf_types) {
    const std::string generated = name + "_" + std::to_string(length);
    result = visible(n.parent, generated, length);
    if (!result) result = define_in(n.parent, by_name_.contains({n.parent, generated}) ? generated + "_" : generated);
    add_renamed(n.path, "a dimension \"" + text::escape_name(name) + "\" has another length; that of " + std::to_string(length) +
                            " is \"" + text::escape_name(scales_[*result].name) + "\" in the file");
  }
  if (result) scales_[*result].used_in.insert(n.parent);
  return result;
}

// True if the group has an array of this name with the values of a dimension of another length.
bool dimension_scales::has_other_values(std::size_t group, const std::string& name, std::uint64_t length) const {
  const auto [first, last] = coordinates_.equal_range(name);
  return std::any_of(first, last, [&](const auto& c) {
    const tree_node& values = tree_.nodes[c.second];
    return values.parent == group && values.shape[0] != length;
  });
}

// netCDF's programs know dimensions by their names, and take the nearest: true if that is another one than this scale.
bool dimension_scales::is_hidden(const tree_node& n, std::size_t scale_index) const {
  const scale& s = scales_[scale_index];
  for (std::size_t group = n.parent; group != s.group; group = tree_.nodes[group].parent) {
    if (by_name_.contains({group, s.name}) || has_other_values(group, s.name, s.length)) return true;
  }
  return false;
}

// True if a dimension of this name in the group would come before one that arrays in or below the group have.
bool dimension_scales::would_hide(std::size_t group, const std::string& name) const {
  const auto is_within = [&](std::size_t inner, std::size_t outer) {
    while (inner != outer && tree_.nodes[inner].parent != inner) inner = tree_.nodes[inner].parent;
    return inner == outer;
  };
  return std::any_of(scales_.begin(), scales_.end(), [&](const scale& s) {
    return s.name == name && s.group != group && is_within(group, s.group) &&
           std::any_of(s.used_in.begin(), s.used_in.end(), [&](std::size_t user) { return is_within(user, group); });
  });
}

// The array of that name and length that has the most groups in common with the other one; none if several have.
std::optional<std::size_t> dimension_scales::nearest_coordinate(const tree_node& n, const std::string& name,
                                                                std::uint64_t length) const {
  std::optional<std::size_t> nearest;
  std::ptrdiff_t max_groups = -1;
  const auto [first, last] = coordinates_.equal_range(name);
  for (auto candidate = first; candidate != last; ++candidate) {
    const tree_node& c = tree_.nodes[candidate->second];
    if (c.shape[0] != length) continue;
    const auto end = std::mismatch(n.path.begin(), n.path.end(), c.path.begin(), c.path.end()).first;
    const std::ptrdiff_t groups = std::count(n.path.begin(), end, '/');
    if (groups == max_groups) nearest.reset();
    if (groups <= max_groups) continue;
    max_groups = groups;
    nearest = candidate->second;
  }
  return nearest;
}

std::optional<std::size_t> dimension_scales::visible(std::size_t group, const std::string& name,
                                                     std::optional<std::uint64_t> length) const {
  while (true) {
    const auto match = by_name_.find({group, name});
    if (match != by_name_.end() && (!length || scales_[match->second].length == *length)) return match->second;
    if (tree_.nodes[group].parent == group) return {};
    group = tree_.nodes[group].parent;
  }
}

void dimension_scales::name_variables() {
  for (auto& [i, of] : of_node_) {
    tree_node& n = tree_.nodes[i];
    const auto match = by_name_.find({n.parent, last_of(n.path)});
    if (match == by_name_.end()) continue;
    if (of[0] == match->second) {
      scales_[match->second].variable = i;
      variables_.insert(i);
    } else n.path = path_below(tree_.nodes[n.parent].path, "_nc4_non_coord_" + last_of(n.path));
  }
  for (tree_node& n : tree_.nodes) {  // arrays without dimensions
    const bool bare = n.kind == tree_node::kind_type::array && n.dimensions.empty() && n.path != "/";
    if (bare && by_name_.contains({n.parent, last_of(n.path)}))
      n.path = path_below(tree_.nodes[n.parent].path, "_nc4_non_coord_" + last_of(n.path));
  }
  rename_taken();
}

// A dimension cannot have the name of a group.
void dimension_scales::rename_taken() {
  std::set<std::string> paths;
  for (const tree_node& n : tree_.nodes) paths.insert(n.path);
  for (std::size_t k = 0; k < scales_.size(); ++k) {
    scale& s = scales_[k];
    if (const auto match = without_dataspace_.find(path_of(s)); !s.variable && match != without_dataspace_.end()) {
      s.variable = match->second;
      variables_.insert(match->second);
    }
    s.is_taken = !s.variable && paths.contains(path_of(s));
    if (!s.is_taken || !rules_.netcdf_types) continue;
    const std::string original = s.name;
    do s.name += "_dim";
    while (paths.contains(path_of(s)) || by_name_.contains({s.group, s.name}));
    by_name_[{s.group, s.name}] = k;
    s.is_taken = false;
    add_renamed(path_below(tree_.nodes[s.group].path, original),
                "a group has the name of this dimension, which is \"" + text::escape_name(s.name) + "\" in the file");
  }
}

std::string dimension_scales::path_of(const scale& s) const {
  return s.variable ? tree_.nodes[*s.variable].path : path_below(tree_.nodes[s.group].path, s.name);
}

bool dimension_scales::is_made(const scale& s) const { return s.variable ? tree_.nodes[*s.variable].is_created : s.is_created; }

void dimension_scales::create(hid_t file) {
  for (scale& s : scales_) {
    if (s.variable && !tree_.nodes[*s.variable].is_created) {
      variables_.erase(*s.variable);
      s.variable.reset();
    }
    if (s.variable || s.is_created || s.is_taken || !tree_.nodes[s.group].is_created) continue;
    s.is_created = true;
    const hsize_t length = s.length, max_length = s.unlimited ? H5S_UNLIMITED : std::max<hsize_t>(s.length, 1), chunk = 1024;
    const bool chunked = s.unlimited;
    const hdf5::handle space(H5Screate_simple(1, &length, chunked ? &max_length : nullptr), "create a dataspace");
    const hdf5::handle properties = make_property_list(H5P_DATASET_CREATE);
    if (chunked) hdf5::check(H5Pset_chunk(properties, 1, &chunk), "set the chunks of a dimension");
    hdf5::check(H5Pset_attr_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
                "track the order of attributes");
    const hdf5::handle dataset(H5Dcreate2(file, path_of(s).c_str(), H5T_IEEE_F32BE, space, H5P_DEFAULT, properties, H5P_DEFAULT),
                               "create a dimension");
  }
}

// Numbers from 0 on, in the order of those in the source. None if a source without such numbers had dimensions.
std::vector<std::int32_t> dimension_scales::ids() const {
  const bool has_ids = std::any_of(scales_.begin(), scales_.end(), [](const scale& s) { return s.id.has_value(); });
  if (tree_.convention == "netcdf" && !has_ids && !rules_.netcdf_types) return {};
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < scales_.size(); ++k) {
    if (is_made(scales_[k])) order.push_back(k);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scales_[a].id.value_or(INT64_MAX) < scales_[b].id.value_or(INT64_MAX);
  });
  std::vector<std::int32_t> ids(scales_.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) ids[order[i]] = static_cast<std::int32_t>(i);
  return ids;
}

void dimension_scales::attach(hid_t file) {
  std::vector<std::vector<hdf5::scale_user>> users(scales_.size());
  const std::vector<std::int32_t> id = ids();
  for (auto& [i, of] : of_node_) {
    const tree_node& n = tree_.nodes[i];
    if (!n.is_created) continue;
    const hdf5::handle dataset(H5Dopen2(file, n.path.c_str(), H5P_DEFAULT), "open a dataset");
    const hdf5::handle values(H5Dget_space(dataset), "get a dataspace");
    of.resize(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(values), 0)));  // others are within a value
    if (of.empty()) continue;
    const bool has_all = std::all_of(of.begin(), of.end(), [&](const auto& d) { return d && is_made(scales_[*d]); });
    // HDF5 does not record the further dimensions of a scale
    if (!id.empty() && has_all && (with_all_ids_.contains(i) || (is_scale(i) && of.size() > 1))) {
      std::vector<std::int32_t> coordinates;
      for (const auto& d : of) coordinates.push_back(id[*d]);
      hdf5::write_number_attribute(dataset, "_Netcdf4Coordinates", coordinates, false);
    }
    if (is_scale(i)) continue;
    if (!id.empty() && has_all && with_first_id_.contains(i))
      hdf5::write_number_attribute(dataset, "_Netcdf4Dimid", {id[*of[0]]}, true);
    std::vector<std::vector<hobj_ref_t>> list(of.size());
    const hobj_ref_t self = hdf5::reference_to(file, n.path);
    bool has_scale = false;
    for (std::size_t d = 0; d < of.size(); ++d) {
      if (!of[d]) continue;
      const scale& s = scales_[*of[d]];
      if (!is_made(s)) continue;
      list[d] = {hdf5::reference_to(file, path_of(s))};
      users[*of[d]].push_back({self, static_cast<std::int32_t>(d)});
      has_scale = true;
    }
    if (has_scale) hdf5::write_scale_list(dataset, std::move(list));
  }
  for (std::size_t k = 0; k < scales_.size(); ++k) {
    const scale& s = scales_[k];
    if (!is_made(s)) continue;
    const hdf5::handle dataset(H5Dopen2(file, path_of(s).c_str(), H5P_DEFAULT), "open a dimension");
    hdf5::write_text_attribute(dataset, "CLASS", "DIMENSION_SCALE");
    if (H5Aexists(dataset, "NAME") <= 0)
      hdf5::write_text_attribute(dataset, "NAME", s.variable ? s.name : hdf5::name_without_variable(s.length));
    if (!id.empty()) hdf5::write_number_attribute(dataset, "_Netcdf4Dimid", {id[k]}, true);
    if (!users[k].empty()) hdf5::write_scale_users(dataset, users[k]);
  }
}

void write_labels(hid_t dataset, const std::vector<std::string>& names) {
  if (H5Aexists(dataset, "DIMENSION_LABELS") > 0) return;
  const hdf5::handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(type, H5T_VARIABLE), "create a string type");
  std::vector<const char*> labels;
  for (const std::string& name : names) labels.push_back(name.c_str());
  const hsize_t rank = labels.size();
  const hdf5::handle space(H5Screate_simple(1, &rank, nullptr), "create a dataspace");
  const hdf5::handle attribute(H5Acreate2(dataset, "DIMENSION_LABELS", type, space, H5P_DEFAULT, H5P_DEFAULT),
                               "create DIMENSION_LABELS");
  hdf5::check(H5Awrite(attribute, type, labels.data()), "write DIMENSION_LABELS");
}

}  // namespace zarrbits::exporting
