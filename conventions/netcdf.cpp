// SPDX-License-Identifier: BSL-1.0
#include "conventions/netcdf.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace zarrbits::conventions {

namespace {

using kind_type = hdf5::source_object::kind_type;

// netCDF-C uses this name for a variable if another dimension has the variable's name.
constexpr std::string_view not_a_coordinate = "_nc4_non_coord_";
constexpr std::size_t max_searched_datasets = 1000;  // datasets to search for marks

// The numbers of one of netCDF's own attributes; empty if it is absent, or has more numbers than a dataset has dimensions.
std::vector<int> numbers(hid_t dataset, const char* name) {
  if (H5Aexists(dataset, name) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), "open an attribute");
  const hdf5::handle space(H5Aget_space(attribute), "get a dataspace"), type(H5Aget_type(attribute), "get a type");
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  if (n <= 0 || n > H5S_MAX_RANK || H5Tget_class(type) != H5T_INTEGER) return {};
  std::vector<int> values(static_cast<std::size_t>(n));
  hdf5::check(H5Aread(attribute, H5T_NATIVE_INT, values.data()), "read an attribute");
  return values;
}

// xarray writes booleans to netCDF, which has none, as int8 with this attribute. With attributes by which CF decodes numbers, it
// decodes first.
bool is_marked_boolean(hid_t dataset) {
  if (H5Aexists(dataset, "dtype") <= 0 || hdf5::text_attribute(dataset, "dtype") != std::vector<std::string>{"bool"})
    return false;
  for (const char* name : {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"}) {
    if (H5Aexists(dataset, name) > 0) return false;
  }
  return true;
}

// A dimension; HDF5 has it as a dataset, its scale.
struct dimension {
  std::string name;
  bool unlimited = false;
  std::uint64_t length = 0;  // unlimited: the largest length of a variable
};

// A variable, and the scales of its dimensions; no_object if a dimension has none.
struct netcdf_variable {
  std::size_t object = 0;
  array::extents extent;
  std::vector<std::size_t> scales;
};

// True if the attribute "Conventions" names CF, or one of its relatives: "CF-1.8, ACDD-1.3", "COARDS".
bool names_cf(hid_t root) {
  if (H5Aexists(root, "Conventions") <= 0) return false;
  for (std::string text : hdf5::text_attribute(root, "Conventions")) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == ',' || c == ';' || c == '/'; }, ' ');
    std::istringstream words(text::case_fold(text));
    for (std::string word; words >> word;) {
      const std::string_view stem = std::string_view(word).substr(0, word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
      if (stem == "cf" || stem == "acdd" || stem == "coards") return true;
    }
  }
  return false;
}

// True if the function is, for one of the first datasets.
template <class Test>
bool any_dataset(const hdf5::source_file& file, const Test& test) {
  std::size_t looked_at = 0;
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != kind_type::dataset) continue;
    if (++looked_at > max_searched_datasets) return false;
    try {
      if (test(file.open(o))) return true;
    } catch (const hdf5::failure&) {
      H5Eclear2(H5E_DEFAULT);
    }
  }
  return false;
}

class netcdf_file {
 public:
  explicit netcdf_file(hdf5::source_file& file) : file_(file) {
    const std::vector<hdf5::source_object>& objects = file.objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].kind == kind_type::dataset) try_to([&] { find_dimension(i); });
    }
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].kind == kind_type::dataset) try_to([&] { find_variable(i); });
    }
  }

  void override_schema() {
    for (const auto& [object, d] : dimensions_) {
      if (file_.objects()[object].kind == kind_type::dimension) file_.objects()[object].overrides.shape = {d.length};
    }
    for (const netcdf_variable& v : variables_) {
      hdf5::source_object& o = file_.objects()[v.object];
      o.overrides.characters = true;
      o.overrides.shape = v.extent;
      o.overrides.dimension_names.resize(v.extent.size());
      for (std::size_t d = 0; d < v.extent.size(); ++d) {
        const auto entry = dimensions_.find(v.scales[d]);
        if (entry == dimensions_.end()) continue;
        o.overrides.dimension_names[d] = entry->second.name;
        o.overrides.shape[d] = std::max(v.extent[d], entry->second.length);
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
    } catch (const hdf5::failure&) {
      H5Eclear2(H5E_DEFAULT);
    }
  }

  void find_dimension(std::size_t index) {
    hdf5::source_object& o = file_.objects()[index];
    const hdf5::handle dataset = file_.open(o);
    if (!hdf5::is_dimension_scale(dataset)) return;
    const hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
    const array::extents extent = hdf5::extent(space), max_extent = hdf5::maximum_extent(space);
    if (extent.empty()) return;
    dimensions_[index] = {text::base_name(o.path), max_extent[0] == H5S_UNLIMITED, extent[0]};
    if (const std::vector<int> id = numbers(dataset, "_Netcdf4Dimid"); !id.empty())
      by_id_.emplace(std::pair(o.place.file, id[0]), index);
    if (hdf5::is_dimension_without_variable(dataset) && index > 0) o.kind = kind_type::dimension;
  }

  void find_variable(std::size_t index) {
    const hdf5::handle dataset = file_.open(file_.objects()[index]);
    const hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return;
    try_to([&] { file_.objects()[index].overrides.int8_is_boolean = is_marked_boolean(dataset); });
    netcdf_variable v{index, hdf5::extent(space), {}};
    v.scales.assign(v.extent.size(), hdf5::no_object);
    if (!v.extent.empty()) try_to([&] { find_scales(v, dataset); });
    for (std::size_t d = 0; d < v.scales.size(); ++d) {
      const auto entry = dimensions_.find(v.scales[d]);
      if (entry != dimensions_.end() && entry->second.unlimited)
        entry->second.length = std::max(entry->second.length, v.extent[d]);
    }
    variables_.push_back(std::move(v));
  }

  void find_scales(netcdf_variable& v, hid_t dataset) const {
    if (dimensions_.contains(v.object)) v.scales[0] = index_of(file_.find_object(dataset));  // the scale of its first dimension
    const auto lists = hdf5::dimension_scales(dataset, v.extent.size());
    for (std::size_t d = 0; d < lists.size(); ++d) {
      if (lists[d].empty()) continue;
      // libnetcdf takes the last one
      const hdf5::source_object* scale = file_.target(dataset, &lists[d].back(), H5R_OBJECT);
      if (scale) v.scales[d] = index_of(scale);
    }
    // for several dimensions, HDF5 does not record the other ones
    const std::vector<int> ids = numbers(dataset, "_Netcdf4Coordinates");
    if (ids.size() != v.extent.size()) return;
    for (std::size_t d = 0; d < ids.size(); ++d) {
      if (const auto entry = by_id_.find({file_.objects()[v.object].place.file, ids[d]});
          entry != by_id_.end() && v.scales[d] == hdf5::no_object)
        v.scales[d] = entry->second;
    }
  }

  // If there are several copies, the first one counts.
  std::size_t index_of(const hdf5::source_object* o) const {
    return o ? static_cast<std::size_t>(o - file_.objects().data()) : hdf5::no_object;
  }

  // Renames a variable to the name that it could not have in HDF5: in the store, dimensions are not arrays.
  void rename(hdf5::source_object& o) {
    if (!o.link_name.starts_with(not_a_coordinate) || o.parent == hdf5::no_object) return;
    const std::string name = text::node_name(std::string_view(o.link_name).substr(not_a_coordinate.size()));
    const hdf5::source_object& parent = file_.objects()[o.parent];
    const std::string path = text::join_path(parent.store_path, name);
    auto& used_paths = used_paths_[o.parent];
    if (used_paths.empty()) {
      for (const std::size_t child : parent.children) {
        const hdf5::source_object& c = file_.objects()[child];
        if (c.kind != kind_type::dimension) used_paths.insert(text::case_fold(c.store_path));
      }
    }
    if (used_paths.insert(text::case_fold(path)).second) o.store_path = path;
  }

  hdf5::source_file& file_;
  std::map<std::size_t, dimension> dimensions_;                        // by the object of their scale
  std::map<std::pair<std::size_t, int>, std::size_t> by_id_;           // per file
  std::map<std::size_t, std::unordered_set<std::string>> used_paths_;  // paths in a group
  std::vector<netcdf_variable> variables_;
};

}  // namespace

bool is_netcdf(const hdf5::source_file& file) {
  const hdf5::handle root(H5Gopen2(file.file(), "/", H5P_DEFAULT));
  if (!root) return false;
  try {
    if (H5Aexists(root, "_NCProperties") > 0 || names_cf(root)) return true;
    for (const char* group : {"HDFEOS", "HDFEOS INFORMATION"}) {
      if (H5Lexists(root, group, H5P_DEFAULT) > 0) return true;
    }
  } catch (const hdf5::failure&) {
    H5Eclear2(H5E_DEFAULT);
  }
  return any_dataset(file, [](hid_t dataset) {
    return H5Aexists(dataset, "_Netcdf4Dimid") > 0 || H5Aexists(dataset, "DIMENSION_LIST") > 0 ||
           hdf5::is_dimension_scale(dataset);
  });
}

std::string cf_attribute(const hdf5::source_file& file) {
  std::string result;
  any_dataset(file, [&](hid_t dataset) {
    for (const char* name : {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "standard_name",
                             "coordinates", "calendar", "cell_methods", "grid_mapping", "flag_values", "flag_masks"}) {
      if (H5Aexists(dataset, name) > 0) result = name;
    }
    return !result.empty();
  });
  return result;
}

void override_netcdf_schema(hdf5::source_file& file) { netcdf_file(file).override_schema(); }

}  // namespace zarrbits::conventions
