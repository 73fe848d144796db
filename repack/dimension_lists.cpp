// SPDX-License-Identifier: BSL-1.0
#include "repack/dimension_lists.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/scale_attributes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace zarrbits::repacking {

namespace {

constexpr const char* dimension_number = "_Netcdf4Dimid";  // netCDF's, of a scale

void write_labels(hid_t dataset, const std::vector<std::string>& labels) {
  const hdf5::handle type(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(type, H5T_VARIABLE), "create a string type");
  const hsize_t n = labels.size();
  const hdf5::handle space(H5Screate_simple(1, &n, nullptr), "create a dataspace");
  const hdf5::handle attribute(H5Acreate2(dataset, "DIMENSION_LABELS", type, space, H5P_DEFAULT, H5P_DEFAULT),
                               "create DIMENSION_LABELS");
  std::vector<const char*> texts;
  for (const std::string& label : labels) texts.push_back(label.c_str());
  hdf5::check(H5Awrite(attribute, type, texts.data()), "write DIMENSION_LABELS");
}

std::optional<std::int32_t> number_of_dimension(hid_t scale) {
  if (H5Aexists(scale, dimension_number) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(scale, dimension_number, H5P_DEFAULT), "open an attribute of a scale");
  const hdf5::handle space(H5Aget_space(attribute), "get a dataspace");
  std::int32_t number = 0;
  if (H5Sget_simple_extent_npoints(space) != 1 || H5Aread(attribute, H5T_NATIVE_INT32, &number) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  return number;
}

}  // namespace

std::vector<std::vector<std::string>> scale_paths(const opened_file& source, hid_t dataset, std::size_t rank) {
  std::vector<std::vector<std::string>> paths(rank);
  const auto scales = hdf5::dimension_scales(dataset, rank);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    for (const hobj_ref_t& reference : scales[i]) {
      const hdf5::handle scale(H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, &reference));
      H5O_info_t info;
      std::memset(&info, 0, sizeof info);
      const bool is_object = scale && H5Oget_info2(scale, &info, H5O_INFO_BASIC) >= 0;
      H5Eclear2(H5E_DEFAULT);
      const auto object = is_object ? source.tree.index.find(info.addr) : source.tree.index.end();
      if (object != source.tree.index.end()) paths[i].push_back(source.tree.objects[object->second].path);
    }
  }
  return paths;
}

std::set<std::string> dimension_lists::attributes(bool are_others) {
  if (!are_others) return {"DIMENSION_LIST", "REFERENCE_LIST"};
  return {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Coordinates", dimension_number};
}

void dimension_lists::add(const opened_file& source, const tree_object& o, const std::string& first) {
  const hdf5::handle dataset = open_object(source.file.file(), o);
  const std::size_t rank = source.contents.datasets.at(o.address).dims.size();
  dataset_dimensions d{scale_paths(source, dataset, rank)};
  if (!first.empty()) {
    d.scales.insert(d.scales.begin(), {"/" + first});
    if (H5Aexists(dataset, "DIMENSION_LABELS") > 0) d.labels = hdf5::text_attribute(dataset, "DIMENSION_LABELS");
    d.labels.resize(d.labels.empty() ? 0 : rank);
    if (!d.labels.empty()) d.labels.insert(d.labels.begin(), first);
  }
  datasets_.emplace(o.path, std::move(d));
}

void dimension_lists::add_user(const std::string& path, const std::vector<std::string>& dimensions) {
  dataset_dimensions d;
  for (const std::string& name : dimensions) d.scales.push_back({"/" + name});
  datasets_.emplace(path, std::move(d));
}

// As netCDF has dimensions without a variable.
void dimension_lists::write_dimensions(hid_t target) const {
  std::optional<std::int32_t> last;
  for (const auto& [path, d] : datasets_) {
    const hdf5::handle dataset(H5Dopen2(target, path.c_str(), H5P_DEFAULT), "open a dataset");
    if (hdf5::is_dimension_scale(dataset)) last = std::max(last, number_of_dimension(dataset));
  }
  const hdf5::handle properties(H5Pcreate(H5P_DATASET_CREATE), "create properties");
  hdf5::check(H5Pset_obj_track_times(properties, false), "leave out times");
  for (const auto& [name, n] : dimensions_) {
    const hsize_t length = n;
    const hdf5::handle space(H5Screate_simple(1, &length, nullptr), "create a dataspace");
    const hdf5::handle scale(
        H5Dcreate2(target, ("/" + name).c_str(), H5T_IEEE_F32BE, space, H5P_DEFAULT, properties, H5P_DEFAULT),
        "create a new dimension");
    hdf5::write_text_attribute(scale, "CLASS", "DIMENSION_SCALE");
    hdf5::write_text_attribute(scale, "NAME", hdf5::name_without_variable(n));
    if (last) hdf5::write_number_attribute(scale, dimension_number, {++*last}, true);
  }
}

void dimension_lists::write(hid_t target) const {
  write_dimensions(target);
  std::map<std::string, std::vector<hdf5::scale_user>> users;
  for (const auto& [path, d] : datasets_) {
    const hdf5::handle dataset(H5Dopen2(target, path.c_str(), H5P_DEFAULT), "open a dataset");
    if (!d.labels.empty()) write_labels(dataset, d.labels);
    std::vector<std::vector<hobj_ref_t>> list(d.scales.size());
    bool has_scale = false;
    for (std::size_t i = 0; i < d.scales.size(); ++i) {
      for (const std::string& scale : d.scales[i]) {
        list[i].push_back(hdf5::reference_to(target, scale));
        users[scale].push_back({hdf5::reference_to(target, path), static_cast<std::int32_t>(i)});
        has_scale = true;
      }
    }
    if (has_scale) hdf5::write_scale_list(dataset, std::move(list));
  }
  for (const auto& [path, list] : users)
    hdf5::write_scale_users(hdf5::handle(H5Dopen2(target, path.c_str(), H5P_DEFAULT), "open a dimension"), list);
}

}  // namespace zarrbits::repacking
