// SPDX-License-Identifier: BSL-1.0
#include "inspect/repack.hpp"

namespace zarrbits::inspection {

namespace {

// In h5repack's order.
void find_first_names(hid_t file, std::map<haddr_t, std::string>& names) {
  const auto add = [](hid_t, const char* name, const H5O_info_t* info, void* data) -> herr_t {
    static_cast<std::map<haddr_t, std::string>*>(data)->emplace(info->addr, std::string("/") + name);
    return 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add, &names, H5O_INFO_BASIC);
}

}  // namespace

std::string repack_names::name_of(const hdf5::source_object& o, hid_t dataset) {
  H5O_info_t info;
  if (first_.empty() && H5Oget_info2(dataset, &info, H5O_INFO_BASIC) >= 0 && info.rc > 1) find_first_names(file_.file(), first_);
  if (const auto first = first_.find(o.place.address); first != first_.end()) return first->second;
  std::string name;
  for (const hdf5::source_object* current = &o; current->parent != hdf5::no_object; current = &file_.objects()[current->parent])
    name = "/" + current->link_name + name;
  return name;
}

bool can_repack(const std::string& name) { return name.find_first_of(",:") == std::string::npos && name.size() <= 250; }

std::vector<std::string> repack_filter(const std::string& name, int id, const std::string& values) {
  if (!can_repack(name)) return {};
  return {"-f", name + ":UD=" + std::to_string(id) + ",1," + values};
}

}  // namespace zarrbits::inspection
