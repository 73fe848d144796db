// SPDX-License-Identifier: BSL-1.0
#include "reader/object_paths.hpp"

#include "hdf5/file_references.hpp"

#include <cstring>
#include <utility>

namespace zarrbits::reader {

namespace {

const std::string no_path;

herr_t add_path(hid_t, const char* name, const H5O_info_t* info, void* data) {
  auto& paths = *static_cast<std::map<haddr_t, std::string>*>(data);
  try {
    paths.try_emplace(info->addr, std::strcmp(name, ".") == 0 ? "/" : std::string("/") + name);
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
  return 0;
}

}  // namespace

const std::string& object_paths::path_of(haddr_t address) {
  if (!paths_) {
    paths_.emplace();
    // of a damaged file, some objects are listed
    if (H5Ovisit2(file_, H5_INDEX_NAME, H5_ITER_NATIVE, add_path, &*paths_, H5O_INFO_BASIC) < 0) H5Eclear2(H5E_DEFAULT);
  }
  const auto entry = paths_->find(address);
  return entry == paths_->end() ? no_path : entry->second;
}

text::json reference_paths::object(const void* reference) {
  hobj_ref_t address = 0;
  std::memcpy(&address, reference, sizeof address);
  if (address == 0 || address == HADDR_UNDEF) return nullptr;
  const std::string& path = paths_.path_of(address);
  if (path.empty()) return nullptr;
  return {{"path", hdf5::text_or_base64(path)}};
}

text::json reference_paths::region(const void* reference) {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  const hdf5::handle target(H5Rdereference2(holder_, H5P_DEFAULT, H5R_DATASET_REGION, reference));
  if (!target || H5Oget_info2(target, &info, H5O_INFO_BASIC) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return nullptr;
  }
  const std::string& path = paths_.path_of(info.addr);
  if (path.empty()) return nullptr;
  text::json result = {{"path", hdf5::text_or_base64(path)}};
  if (!hdf5::add_selection(result, holder_, reference)) return nullptr;
  return result;
}

}  // namespace zarrbits::reader
