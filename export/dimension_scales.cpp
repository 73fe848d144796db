// SPDX-License-Identifier: BSL-1.0
#include "export/dimension_scales.hpp"

#include "export/new_object.hpp"
#include "export/path_references.hpp"
#include "text/shown.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

namespace zarrbits::exporting {

namespace {

// An attribute that is one string of fixed length, as H5DSset_scale() makes them.
void write_text(hid_t object, const char* name, const std::string& text) {
  const h5::handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  h5::check(H5Tset_size(type, text.size() + 1), "create a string type");
  const h5::handle space(H5Screate(H5S_SCALAR), "create a dataspace");
  const h5::handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute of a scale");
  h5::check(H5Awrite(attribute, type, text.c_str()), "write an attribute of a scale");
}

void write_numbers(hid_t object, const char* name, const std::vector<std::int32_t>& numbers, bool scalar) {
  const hsize_t n = numbers.size();
  const h5::handle space(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, nullptr), "create a dataspace");
  const h5::handle attribute(H5Acreate2(object, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT),
                             "create an attribute of a scale");
  h5::check(H5Awrite(attribute, H5T_NATIVE_INT32, numbers.data()), "write an attribute of a scale");
}

// An element of REFERENCE_LIST.
struct user_of_scale {
  hobj_ref_t dataset;
  std::int32_t dimension;
};

void write_users(hid_t object, const std::vector<user_of_scale>& users) {
  const auto make = [](std::size_t size, std::size_t at, hid_t number) {
    h5::handle t(H5Tcreate(H5T_COMPOUND, size), "create a compound type");
    h5::check(H5Tinsert(t, "dataset", 0, H5T_STD_REF_OBJ), "create a compound type");
    h5::check(H5Tinsert(t, "dimension", at, number), "create a compound type");
    return t;
  };
  const h5::handle type = make(sizeof(user_of_scale), offsetof(user_of_scale, dimension), H5T_NATIVE_INT32);
  const hsize_t n = users.size();
  const h5::handle space(H5Screate_simple(1, &n, nullptr), "create a dataspace");
  const h5::handle attribute(H5Acreate2(object, "REFERENCE_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT),
                             "create an attribute of a scale");
  h5::check(H5Awrite(attribute, type, users.data()), "write an attribute of a scale");
}

}  // namespace

dimension_scales::dimension_scales(store_tree& tree) : tree_(tree) {
  const auto define = [&](scale s) {
    by_name_[{s.group, s.name}] = scales_.size();
    scales_.push_back(std::move(s));
    return scales_.size() - 1;
  };
  for (std::size_t g = 0; g < tree.nodes.size(); ++g) {
    if (tree.nodes[g].kind != tree_node::kind_type::group) continue;
    const store_node group = read_store_node(tree.nodes[g].folder);
    if (group.is_array) continue;  // a store that is one array
    const json& noted = group.note("dimensions");
    if (!noted.is_object()) continue;
    for (const auto& item : noted.items()) {
      const json& note = item.value();
      if (!note.is_object() || !note.value("length", json()).is_number_unsigned() || is_phony(item.key())) continue;
      scale s;
      s.name = conversion::unshown(item.key());
      s.length = note["length"].get<std::uint64_t>();
      s.group = g;
      if (note.contains("attributes") && note["attributes"].is_object()) {
        s.attributes = note["attributes"];
        if (const auto own = s.attributes.find("zarrbits"); own != s.attributes.end()) {
          s.notes = *own;
          s.attributes.erase(own);
        }
      }
      if (is_link_name(s.name)) define(std::move(s));
    }
  }
  std::multimap<std::string, std::size_t> coordinates;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const tree_node& n = tree.nodes[i];
    if (!n.dimensions.empty() && n.dimensions[0] == last_of(n.path)) coordinates.emplace(n.dimensions[0], i);
  }
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const tree_node& n = tree.nodes[i];
    if (n.kind != tree_node::kind_type::array || n.dimensions.empty()) continue;
    const store_node node = read_store_node(n.folder);
    if (node.note("null_dataspace") == true) continue;
    auto& of = of_node_[i];
    const json& limits = node.note("maxshape");
    for (std::size_t d = 0; d < n.dimensions.size(); ++d) {
      of.emplace_back();
      const std::string& name = n.dimensions[d];
      if (!is_link_name(name) || is_phony(name)) continue;
      const auto define_in = [&](std::size_t group) {
        scale s;
        s.name = name;
        s.length = n.shape[d];
        s.group = group;
        return define(std::move(s));
      };
      auto found = visible(n.parent, name, n.shape[d]);
      // HDF-EOS has scales of other lengths, and in groups beside that of the array
      if (!found && tree.convention == "netcdf") found = visible(n.parent, name, {});
      if (!found && tree.convention == "netcdf") {
        const auto [first, last] = coordinates.equal_range(name);
        if (first != last && std::next(first) == last && tree.nodes[first->second].shape[0] == n.shape[d]) {
          const std::size_t group = tree.nodes[first->second].parent;
          const auto known = by_name_.find({group, name});
          found = known != by_name_.end() ? known->second : define_in(group);
        }
      }
      if (!found && !by_name_.contains({n.parent, name})) found = define_in(n.parent);
      of.back() = found;
      if (found && limits.is_array() && d < limits.size() && limits[d].is_null()) scales_[*found].unlimited = true;
    }
  }
  name_variables();
}

std::optional<std::size_t> dimension_scales::visible(std::size_t group, const std::string& name,
                                                     std::optional<std::uint64_t> length) const {
  while (true) {
    const auto found = by_name_.find({group, name});
    if (found != by_name_.end() && (!length || scales_[found->second].length == *length)) return found->second;
    if (tree_.nodes[group].parent == group) return {};
    group = tree_.nodes[group].parent;
  }
}

void dimension_scales::name_variables() {
  for (auto& [i, of] : of_node_) {
    tree_node& n = tree_.nodes[i];
    const auto found = by_name_.find({n.parent, last_of(n.path)});
    if (found == by_name_.end()) continue;
    if (of[0] == found->second) scales_[found->second].variable = i;
    else n.path = path_below(tree_.nodes[n.parent].path, "_nc4_non_coord_" + last_of(n.path));
  }
  for (tree_node& n : tree_.nodes) {  // arrays without dimensions
    const bool bare = n.kind == tree_node::kind_type::array && n.dimensions.empty() && n.path != "/";
    if (bare && by_name_.contains({n.parent, last_of(n.path)}))
      n.path = path_below(tree_.nodes[n.parent].path, "_nc4_non_coord_" + last_of(n.path));
  }
  std::set<std::string> paths;
  for (const tree_node& n : tree_.nodes) paths.insert(n.path);
  for (scale& s : scales_) s.is_taken = !s.variable && paths.contains(path_of(s));
}

std::string dimension_scales::path_of(const scale& s) const {
  return s.variable ? tree_.nodes[*s.variable].path : path_below(tree_.nodes[s.group].path, s.name);
}

bool dimension_scales::is_made(const scale& s) const {
  return s.variable ? tree_.nodes[*s.variable].made : tree_.nodes[s.group].made && !s.is_taken;
}

void dimension_scales::create(hid_t file) const {
  for (const scale& s : scales_) {
    if (s.variable || !is_made(s)) continue;
    const hsize_t length = s.length, most = s.unlimited ? H5S_UNLIMITED : std::max<hsize_t>(s.length, 1), chunk = 1024;
    const bool chunked = s.unlimited;
    const h5::handle space(H5Screate_simple(1, &length, chunked ? &most : nullptr), "create a dataspace");
    const h5::handle properties = new_object(H5P_DATASET_CREATE);
    if (chunked) h5::check(H5Pset_chunk(properties, 1, &chunk), "set the chunks of a dimension");
    h5::check(H5Pset_attr_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
              "track the order of attributes");
    const h5::handle made(H5Dcreate2(file, path_of(s).c_str(), H5T_IEEE_F32BE, space, H5P_DEFAULT, properties, H5P_DEFAULT),
                          "create a dimension");
  }
}

void dimension_scales::attach(hid_t file) const {
  std::vector<std::vector<user_of_scale>> users(scales_.size());
  for (const auto& [i, of] : of_node_) {
    const tree_node& n = tree_.nodes[i];
    if (!n.made) continue;
    const h5::handle dataset(H5Dopen2(file, n.path.c_str(), H5P_DEFAULT), "open a dataset");
    const bool is_scale =
        std::any_of(scales_.begin(), scales_.end(), [&, node = i](const scale& s) { return s.variable == node; });
    if (is_scale) {
      if (of.size() < 2 || tree_.convention == "netcdf") continue;  // the notes have it
      std::vector<std::int32_t> ids;
      for (const auto& s : of) ids.push_back(s ? static_cast<std::int32_t>(*s) : -1);
      if (std::find(ids.begin(), ids.end(), -1) == ids.end()) write_numbers(dataset, "_Netcdf4Coordinates", ids, false);
      continue;
    }
    std::vector<hobj_ref_t> references(of.size(), 0);
    std::vector<hvl_t> list(of.size());
    hobj_ref_t self = 0;
    h5::check(H5Rcreate(&self, file, n.path.c_str(), H5R_OBJECT, -1), "refer to a dataset");
    bool any = false;
    for (std::size_t d = 0; d < of.size(); ++d) {
      list[d] = {0, nullptr};
      if (!of[d]) continue;
      const scale& s = scales_[*of[d]];
      if (!is_made(s)) continue;
      h5::check(H5Rcreate(&references[d], file, path_of(s).c_str(), H5R_OBJECT, -1), "refer to a dimension");
      list[d] = {1, &references[d]};
      users[*of[d]].push_back({self, static_cast<std::int32_t>(d)});
      any = true;
    }
    if (!any) continue;
    const h5::handle type(H5Tvlen_create(H5T_STD_REF_OBJ), "create a sequence type");
    const hsize_t rank = list.size();
    const h5::handle space(H5Screate_simple(1, &rank, nullptr), "create a dataspace");
    const h5::handle attribute(H5Acreate2(dataset, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT),
                               "create DIMENSION_LIST");
    h5::check(H5Awrite(attribute, type, list.data()), "write DIMENSION_LIST");
  }
  for (std::size_t k = 0; k < scales_.size(); ++k) {
    const scale& s = scales_[k];
    if (!is_made(s)) continue;
    const h5::handle dataset(H5Dopen2(file, path_of(s).c_str(), H5P_DEFAULT), "open a dimension");
    char bare[80];
    std::snprintf(bare, sizeof bare, "This is a netCDF dimension but not a netCDF variable.%10llu",
                  static_cast<unsigned long long>(s.length));
    write_text(dataset, "CLASS", "DIMENSION_SCALE");
    if (H5Aexists(dataset, "NAME") <= 0) write_text(dataset, "NAME", s.variable ? s.name : bare);
    if (tree_.convention != "netcdf") write_numbers(dataset, "_Netcdf4Dimid", {static_cast<std::int32_t>(k)}, true);
    if (!users[k].empty()) write_users(dataset, users[k]);
  }
}

void write_labels(hid_t dataset, const std::vector<std::string>& names) {
  if (H5Aexists(dataset, "DIMENSION_LABELS") > 0) return;
  const h5::handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  h5::check(H5Tset_size(type, H5T_VARIABLE), "create a string type");
  std::vector<const char*> labels;
  for (const std::string& name : names) labels.push_back(name.c_str());
  const hsize_t rank = labels.size();
  const h5::handle space(H5Screate_simple(1, &rank, nullptr), "create a dataspace");
  const h5::handle attribute(H5Acreate2(dataset, "DIMENSION_LABELS", type, space, H5P_DEFAULT, H5P_DEFAULT),
                             "create DIMENSION_LABELS");
  h5::check(H5Awrite(attribute, type, labels.data()), "write DIMENSION_LABELS");
}

}  // namespace zarrbits::exporting
