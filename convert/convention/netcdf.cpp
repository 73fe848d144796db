// SPDX-License-Identifier: BSL-1.0
#include "convert/convention/netcdf.hpp"

#include "convert/hdf5/dimensions.hpp"
#include "convert/text/names.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

using kind_type = source_object::kind_type;

// netCDF-C uses this name for a variable if another dimension has the variable's name.
constexpr std::string_view not_a_coordinate = "_nc4_non_coord_";
constexpr std::size_t most_looked_at = 1000;  // datasets to search for marks of older versions

// The numbers of one of netCDF's own attributes; empty if there is none, or it has more numbers than a dataset has dimensions.
std::vector<int> numbers(hid_t dataset, const char* name) {
  if (H5Aexists(dataset, name) <= 0) return {};
  const h5::handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), "open an attribute");
  const h5::handle space(H5Aget_space(attribute), "tell a dataspace"), type(H5Aget_type(attribute), "tell a type");
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  if (n <= 0 || n > H5S_MAX_RANK || H5Tget_class(type) != H5T_INTEGER) return {};
  std::vector<int> all(static_cast<std::size_t>(n));
  h5::check(H5Aread(attribute, H5T_NATIVE_INT, all.data()), "read an attribute");
  return all;
}

// A dimension; HDF5 has it as a dataset, its scale.
struct dimension {
  std::string name;
  bool unlimited = false;
  hsize_t length = 0;  // unlimited: the largest length of a variable
};

// A variable, and the scales of its dimensions; no_object if a dimension has none.
struct netcdf_variable {
  std::size_t object = 0;
  std::vector<hsize_t> extent;
  std::vector<std::size_t> scales;
};

class netcdf_file {
 public:
  explicit netcdf_file(source_file& file) : file_(file) {
    const std::vector<source_object>& objects = file.objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].kind == kind_type::dataset) try_to([&] { find_dimension(i); });
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].kind == kind_type::dataset) try_to([&] { find_variable(i); });
    }
  }

  void arrange() {
    for (const auto& [object, d] : dimensions_) {
      if (file_.objects()[object].kind == kind_type::dimension) file_.objects()[object].arranged.shape = {d.length};
    }
    for (const netcdf_variable& v : variables_) {
      source_object& o = file_.objects()[v.object];
      o.arranged.characters = true;
      o.arranged.shape = v.extent;
      o.arranged.dimension_names.resize(v.extent.size());
      for (std::size_t d = 0; d < v.extent.size(); ++d) {
        const auto found = dimensions_.find(v.scales[d]);
        if (found == dimensions_.end()) continue;
        o.arranged.dimension_names[d] = found->second.name;
        o.arranged.shape[d] = std::max(v.extent[d], found->second.length);
      }
      rename(o);
    }
  }

 private:
  // Damage is reported when the dataset is converted.
  template <class Action>
  static void try_to(const Action& act) {
    try {
      act();
    } catch (const h5::failure&) {
      H5Eclear2(H5E_DEFAULT);
    }
  }

  void find_dimension(std::size_t index) {
    source_object& o = file_.objects()[index];
    const h5::handle dataset = file_.open(o);
    if (!is_dimension_scale(dataset)) return;
    const h5::handle space(H5Dget_space(dataset), "tell the dataspace");
    const std::vector<hsize_t> extent = h5::extent(space), most = h5::maximum_extent(space);
    if (extent.empty()) return;
    dimensions_[index] = {leaf_of(o.path), most[0] == H5S_UNLIMITED, extent[0]};
    if (const std::vector<int> id = numbers(dataset, "_Netcdf4Dimid"); !id.empty())
      by_id_.emplace(std::pair(o.place.file, id[0]), index);
    if (is_dimension_without_variable(dataset) && index > 0) o.kind = kind_type::dimension;
  }

  void find_variable(std::size_t index) {
    const h5::handle dataset = file_.open(file_.objects()[index]);
    const h5::handle space(H5Dget_space(dataset), "tell the dataspace");
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return;
    netcdf_variable v{index, h5::extent(space), {}};
    v.scales.assign(v.extent.size(), no_object);
    if (!v.extent.empty()) try_to([&] { find_scales(v, dataset); });
    for (std::size_t d = 0; d < v.scales.size(); ++d) {
      const auto found = dimensions_.find(v.scales[d]);
      if (found != dimensions_.end() && found->second.unlimited)
        found->second.length = std::max(found->second.length, v.extent[d]);
    }
    variables_.push_back(std::move(v));
  }

  void find_scales(netcdf_variable& v, hid_t dataset) const {
    if (dimensions_.contains(v.object)) v.scales[0] = index_of(file_.at(dataset));  // the scale of its first dimension
    const auto lists = dimension_scales(dataset, v.extent.size());
    for (std::size_t d = 0; d < lists.size(); ++d) {
      if (lists[d].empty()) continue;
      const source_object* scale = file_.target(dataset, &lists[d].front(), H5R_OBJECT);
      if (scale) v.scales[d] = index_of(scale);
    }
    // for several dimensions, HDF5 does not know the other ones
    const std::vector<int> ids = numbers(dataset, "_Netcdf4Coordinates");
    if (ids.size() != v.extent.size()) return;
    for (std::size_t d = 0; d < ids.size(); ++d) {
      if (const auto found = by_id_.find({file_.objects()[v.object].place.file, ids[d]});
          found != by_id_.end() && v.scales[d] == no_object)
        v.scales[d] = found->second;
    }
  }

  // If there are several copies, the first one counts.
  std::size_t index_of(const source_object* o) const {
    return o ? static_cast<std::size_t>(o - file_.objects().data()) : no_object;
  }

  // Renames a variable to the name that it could not have in HDF5: in the store, dimensions are no arrays.
  void rename(source_object& o) {
    if (!o.link_name.starts_with(not_a_coordinate) || o.parent == no_object) return;
    const std::string name = node_name(std::string_view(o.link_name).substr(not_a_coordinate.size()));
    const source_object& above = file_.objects()[o.parent];
    const std::string path = join_path(above.store_path, name);
    auto& taken = taken_[o.parent];
    if (taken.empty()) {
      for (const std::size_t child : above.children) {
        const source_object& c = file_.objects()[child];
        if (c.kind != kind_type::dimension) taken.insert(folded(c.store_path));
      }
    }
    if (taken.insert(folded(path)).second) o.store_path = path;
  }

  source_file& file_;
  std::map<std::size_t, dimension> dimensions_;                   // by the object of their scale
  std::map<std::pair<std::size_t, int>, std::size_t> by_id_;      // per file
  std::map<std::size_t, std::unordered_set<std::string>> taken_;  // paths in a group
  std::vector<netcdf_variable> variables_;
};

}  // namespace

bool is_netcdf(const source_file& file) {
  const h5::handle root(H5Gopen2(file.file(), "/", H5P_DEFAULT));
  if (!root) return false;
  if (H5Aexists(root, "_NCProperties") > 0) return true;
  // older versions, where each dimension has a variable, leave only these two marks together
  const h5::handle properties(H5Gget_create_plist(root));
  unsigned order = 0;
  const bool in_order = properties && H5Pget_link_creation_order(properties, &order) >= 0 && (order & H5P_CRT_ORDER_TRACKED) != 0;
  std::size_t looked_at = 0;
  for (const source_object& o : file.objects()) {
    if (o.kind != kind_type::dataset) continue;
    if (++looked_at > most_looked_at) return false;
    try {
      const h5::handle dataset = file.open(o);
      if (H5Aexists(dataset, "_Netcdf4Dimid") > 0 || is_dimension_without_variable(dataset)) return true;
      if (in_order && is_dimension_scale(dataset)) return true;
    } catch (const h5::failure&) {
      H5Eclear2(H5E_DEFAULT);
    }
  }
  return false;
}

void arrange_netcdf(source_file& file) { netcdf_file(file).arrange(); }

void netcdf_attributes(const source_file&, const source_object&, hid_t, const type_tree* leaf, json& attributes) {
  // a netCDF scalar is an array of one element, and vice versa
  for (auto& [name, value] : attributes.items()) {
    if (name != own_key && value.is_array() && value.size() == 1 && !value[0].is_structured()) value = json(value[0]);
  }
  const auto source = attributes.find("_FillValue_source");
  if (source == attributes.end() || !leaf) return;
  // inserting and removing moves other attributes, so no reference to one is kept
  json fill = std::move(*source);
  attributes.erase(source);
  if (const auto notes = attributes.find(own_key); notes != attributes.end() && notes->contains("attribute_types")) {
    json& types = (*notes)["attribute_types"];
    if (const auto type = types.find("_FillValue_source"); type != types.end()) {
      json description = std::move(*type);
      types.erase(type);
      types["_FillValue"] = std::move(description);
    }
  }
  if (leaf->kind != type_class::text) return;
  // xarray does not know this attribute for arrays of bytes, and refuses to open an array that has it; the fill value of the
  // array says the same
  if (!leaf->variable) attributes[own_key]["_FillValue"] = std::move(fill);
  else if (fill.is_string()) attributes["_FillValue"] = std::move(fill);
}

}  // namespace zarrbits::conversion
