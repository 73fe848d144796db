// SPDX-License-Identifier: BSL-1.0
#include "verify/netcdf_dimensions.hpp"

#include "hdf5/h5.hpp"
#include "text/name_escaping.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace zarrbits::verification {

namespace {

constexpr std::string_view hidden_name = "_nc4_non_coord_";

// The one-dimensional list of integers in one of netCDF's attributes; empty if it has none.
std::vector<std::int64_t> read_integers(hid_t dataset, const char* name) {
  std::vector<std::int64_t> out;
  if (H5Aexists(dataset, name) <= 0) return out;
  const attribute_values a = read_attribute(dataset, name);
  if (a.null || a.type.kind != source_kind::integer || a.dims.size() > 1) return out;
  for (std::uint64_t i = 0; i < (a.dims.empty() ? 1 : a.dims[0]) && i < H5S_MAX_RANK; ++i)
    out.push_back(load_source_signed(a.type, a.values->data() + i * a.type.size));
  return out;
}

// The last scale of each dimension that has one: libnetcdf takes that.
std::vector<haddr_t> listed_scales(hid_t dataset, std::size_t rank) {
  std::vector<haddr_t> out(rank, HADDR_UNDEF);
  if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) return out;
  const attribute_values lists = read_attribute(dataset, "DIMENSION_LIST");
  if (lists.type.kind != source_kind::sequence || lists.type.members[0].type.kind != source_kind::reference ||
      lists.dims != std::vector<std::uint64_t>{rank})
    return out;
  for (std::size_t d = 0; d < rank; ++d) {
    hvl_t list;
    std::memcpy(&list, lists.values->data() + d * sizeof list, sizeof list);
    if (list.p && list.len > 0) out[d] = static_cast<const hobj_ref_t*>(list.p)[list.len - 1];
  }
  return out;
}

std::vector<std::uint64_t> dataset_extent(hid_t dataset) {
  const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
  return H5Sget_simple_extent_type(space.get()) == H5S_NULL ? std::vector<std::uint64_t>() : extent_of(space.get());
}

}  // namespace

bool is_dimension_only(hid_t dataset) {
  if (!is_dimension_scale(dataset)) return false;
  const std::vector<std::string> text = text_attribute(dataset, "NAME");
  return text.size() == 1 && text[0].starts_with("This is a netCDF dimension but not a netCDF variable");
}

std::string only_dataset(hid_t file) {
  const auto is_bookkeeping = [](hid_t, const char* name, const H5A_info_t*, void*) {
    return static_cast<herr_t>(std::strcmp(name, "_NCProperties") != 0);
  };
  const auto collect = [](hid_t, const char* name, const H5L_info_t* info, void* names) {
    static_cast<std::vector<std::string>*>(names)->push_back(info->type == H5L_TYPE_HARD ? name : "");
    return static_cast<herr_t>(0);
  };
  std::string only;
  std::vector<std::string> names;
  hsize_t position = 0;
  bool is_one = H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, &position, is_bookkeeping, nullptr) == 0;
  position = 0;
  is_one = is_one && H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, &position, collect, &names) >= 0;
  for (auto name = names.begin(); is_one && name != names.end(); ++name) {
    const hdf5::handle object(name->empty() ? H5I_INVALID_HID : H5Oopen(file, name->c_str(), H5P_DEFAULT));
    is_one = object && H5Iget_type(object.get()) == H5I_DATASET;
    if (!is_one || is_dimension_only(object.get())) continue;
    is_one = only.empty();
    only = "/" + *name;
  }
  H5Eclear2(H5E_DEFAULT);
  return is_one ? only : "";
}

bool has_netcdf_name(source_tree& tree) {
  std::string name(static_cast<std::size_t>(std::max<ssize_t>(H5Fget_name(tree.file(), nullptr, 0), 0)) + 1, '\0');
  H5Fget_name(tree.file(), name.data(), name.size());
  return std::string_view(name.c_str()).ends_with(".nc");
}

bool has_netcdf_dimensions(source_tree& tree) {
  const bool has_id = std::any_of(tree.objects().begin(), tree.objects().end(), [&](const auto& entry) {
    if (entry.second.type != H5O_TYPE_DATASET || !entry.second.has_attributes) return false;
    const hdf5::handle dataset = tree.open(entry.first);
    return dataset && H5Aexists(dataset.get(), "_Netcdf4Dimid") > 0;
  });
  H5Eclear2(H5E_DEFAULT);
  return has_id;
}

netcdf_dimensions::netcdf_dimensions(source_tree& tree) {
  std::map<std::int64_t, haddr_t> by_id;
  const auto for_each_dataset = [&](const auto& look) {
    for (auto& [address, o] : tree.objects()) {
      if (o.type != H5O_TYPE_DATASET) continue;
      try {
        if (const hdf5::handle dataset = tree.open(address); dataset) look(address, o, dataset.get());
      } catch (const std::runtime_error&) {  // reported when the dataset is compared
        H5Eclear2(H5E_DEFAULT);
      }
    }
  };
  for_each_dataset([&](haddr_t address, const source_object& o, hid_t dataset) {
    const std::vector<std::uint64_t> dims = dataset_extent(dataset);
    if (dims.empty() || !is_dimension_scale(dataset)) return;
    const std::string name = o.path.substr(o.path.rfind('/') + 1);
    dimensions_[address] = {dims[0], !is_dimension_only(dataset) || address == tree.root(), text::escape_name(name)};
    if (const auto id = read_integers(dataset, "_Netcdf4Dimid"); !id.empty()) by_id[id[0]] = address;
  });
  for_each_dataset([&](haddr_t address, const source_object&, hid_t dataset) {
    const std::vector<std::uint64_t> dims = dataset_extent(dataset);
    std::vector<haddr_t> scales = listed_scales(dataset, dims.size());
    if (!dims.empty() && dimensions_.contains(address) && scales[0] == HADDR_UNDEF) scales[0] = address;
    if (const auto ids = read_integers(dataset, "_Netcdf4Coordinates"); ids.size() == dims.size()) {
      for (std::size_t d = 0; d < dims.size(); ++d) {
        if (scales[d] == HADDR_UNDEF && by_id.contains(ids[d])) scales[d] = by_id[ids[d]];
      }
    }
    const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const auto entry = dimensions_.find(scales[d]);
      if (entry == dimensions_.end()) continue;
      const hdf5::handle scale = tree.open(entry->first);
      const hdf5::handle scale_space = checked(H5Dget_space(scale.get()), "cannot read the dataspace");
      hsize_t max_dims[H5S_MAX_RANK];
      const bool unlimited = H5Sget_simple_extent_dims(scale_space.get(), nullptr, max_dims) > 0 &&
                             max_dims[0] == H5S_UNLIMITED;  // as long as its longest variable
      if (unlimited) entry->second.length = std::max(entry->second.length, dims[d]);
    }
    scales_[address] = std::move(scales);
  });
}

const netcdf_dimensions::dimension* netcdf_dimensions::find(haddr_t address) const {
  const auto entry = dimensions_.find(address);
  return entry == dimensions_.end() ? nullptr : &entry->second;
}

std::vector<const netcdf_dimensions::dimension*> netcdf_dimensions::dimensions_of(haddr_t dataset) const {
  std::vector<const dimension*> out;
  if (const auto entry = scales_.find(dataset); entry != scales_.end()) {
    for (const haddr_t scale : entry->second) out.push_back(find(scale));
  }
  return out;
}

bool netcdf_dimensions::has_hidden(const source_object& group, const source_link& link) const {
  return std::any_of(group.links.begin(), group.links.end(),
                     [&](const source_link& l) { return l.name == std::string(hidden_name) + link.name; });
}

std::string netcdf_dimensions::name_of(const source_object& group, const source_link& link) const {
  if (!link.name.starts_with(hidden_name)) return link.name;
  const std::string name = link.name.substr(hidden_name.size());
  const auto is_taken = [&](const source_link& l) { return l.name == name && !has_no_variable(l.target); };
  return std::any_of(group.links.begin(), group.links.end(), is_taken) ? link.name : name;
}

}  // namespace zarrbits::verification
