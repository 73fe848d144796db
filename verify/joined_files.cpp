// SPDX-License-Identifier: BSL-1.0
#include "verify/joined_files.hpp"

#include "verify/compare_metadata.hpp"

#include <algorithm>
#include <charconv>

namespace zarrbits::verification {

std::optional<axis_pattern> axis_pattern_of(const std::string& dimension) {
  const auto colon = dimension.rfind(':');
  if (colon == std::string::npos) return {};
  axis_pattern p{text::selection({dimension.substr(0, colon)}, {}), 0};
  std::from_chars(dimension.data() + colon + 1, dimension.data() + dimension.size(), p.axis);
  return p;
}

std::optional<joined_place> joined_arrays::place(hid_t dataset, haddr_t address, const std::string& path,
                                                 const std::string& store_path, const source_tree& tree,
                                                 const convention& rules) {
  const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
  if (const auto kind = H5Sget_simple_extent_type(space.get()); kind != H5S_SIMPLE && !(is_new_ && kind == H5S_SCALAR)) return {};
  const std::vector<std::uint64_t> dims = extent_of(space.get());
  if (is_new_) {
    if (is_dimension_scale(dataset)) return {};
    const std::string new_dimension = "/" + dimension_;
    lengths_[new_dimension] = 1;
    arrays_[store_path].path = path;
    arrays_[store_path].dimension = new_dimension;
    return joined_place{0, begin_of(new_dimension), true};
  }
  std::optional<std::size_t> axis;
  if (auto pattern = axis_pattern_of(dimension_)) {
    if (pattern->axis < dims.size() && pattern->paths.matches(store_path)) axis = pattern->axis;
  } else if (rules.netcdf) {
    const auto dimensions = rules.netcdf->dimensions_of(address);
    for (std::size_t d = 0; d < std::min(dimensions.size(), dims.size()) && !axis; ++d) {
      if (dimensions[d] && dimensions[d]->name == dimension_) axis = d;
    }
  } else {
    const auto names = names_of_dimensions(dataset, dims.size(), tree);
    for (std::size_t d = 0; d < dims.size() && !axis; ++d) {
      if (!names[d].empty() && std::find(names[d][0].begin(), names[d][0].end(), dimension_) != names[d][0].end()) axis = d;
    }
  }
  if (!axis) return {};
  std::string dimension = store_path;
  for (std::string group = path; !group.empty();) {
    group.resize(group.rfind('/'));
    if (tree.address_of(group + "/" + dimension_)) {
      dimension = group + "/" + dimension_;
      break;
    }
  }
  std::uint64_t length = dims[*axis];
  if (rules.netcdf) {
    if (const auto dimensions = rules.netcdf->dimensions_of(address); *axis < dimensions.size() && dimensions[*axis])
      length = std::max(length, dimensions[*axis]->length);
  }
  lengths_[dimension] = std::max(lengths_[dimension], length);
  arrays_[store_path].path = path;
  arrays_[store_path].dimension = dimension;
  return joined_place{*axis, begin_of(dimension)};
}

void joined_arrays::find_units(joined_place& place, haddr_t address, const zarr::store_folder& store,
                               const std::string& store_path, const source_tree& tree) {
  if (!source_units_) source_units_.emplace(tree);
  place.inherited_in_source = source_units_->units_for(address);
  place.inherited_in_store = store_units_.units_for(store, store_path);
  if (place.inherited_in_source.units.empty() &&
      !place.inherited_in_store.units.empty())  // the store has the first file's attributes
    place.inherited_in_source = source_inherited_units::units_at(tree, place.inherited_in_store.path);
}

std::vector<std::string> joined_arrays::common_coordinates(std::vector<std::string> coordinates) {
  if (!coordinates_) coordinates_.emplace(coordinates.begin(), coordinates.end());
  std::erase_if(coordinates, [&](const std::string& path) { return !coordinates_->contains(path); });
  return coordinates;
}

void joined_arrays::next_file() {
  source_units_.reset();
  for (const auto& [dimension, length] : lengths_) ends_[dimension] += length;
  lengths_.clear();
}

std::vector<finding> joined_arrays::longer_arrays() const {
  std::vector<finding> findings;
  for (const auto& [store_path, a] : arrays_) {
    const std::uint64_t sum = ends_.at(a.dimension);
    if (a.length == sum) continue;
    finding f;
    f.path = a.path;
    f.store_path = store_path;
    f.kind = "dataset";
    f.outcome = verdict::differs;
    f.reason = "has " + std::to_string(a.length) + " elements along the dimension in the store, and " + std::to_string(sum) +
               " in all files together";
    findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace zarrbits::verification
