// SPDX-License-Identifier: BSL-1.0
#include "hdf5/file_references.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {

text::json file_references::object(const void* reference) {
  hobj_ref_t address = 0;
  std::memcpy(&address, reference, sizeof address);
  if (address == 0 || address == HADDR_UNDEF) return "";
  const std::string path = source_.target_of(object_, reference, H5R_OBJECT);
  return path.empty() ? text::json(nullptr) : text::json(path);
}

text::json file_references::region(const void* reference) {
  const auto* bytes = static_cast<const unsigned char*>(reference);
  if (std::all_of(bytes, bytes + sizeof(hdset_reg_ref_t), [](unsigned char b) { return b == 0; })) return "";
  const std::string path = source_.target_of(object_, reference, H5R_DATASET_REGION);
  if (path.empty()) return nullptr;
  text::json result = {{"path", path}};
  if (!add_selection(result, object_, reference)) return nullptr;
  return result;
}

bool add_selection(text::json& target, hid_t holder, const void* reference) {
  const handle space(H5Rget_region(holder, H5R_DATASET_REGION, reference));
  if (!space) {
    H5Eclear2(H5E_DEFAULT);
    return false;
  }
  const int rank = H5Sget_simple_extent_ndims(space);
  const H5S_sel_type kind = H5Sget_select_type(space);
  const auto lists = [&](const std::vector<hsize_t>& numbers, std::size_t group_size) {
    text::json groups = text::json::array();
    for (std::size_t i = 0; i + group_size <= numbers.size(); i += group_size) {
      groups.push_back(std::vector<hsize_t>(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                            numbers.begin() + static_cast<std::ptrdiff_t>(i + group_size)));
    }
    return groups;
  };
  constexpr hssize_t max_entries = 1 << 20;
  const auto r = static_cast<std::size_t>(std::max(rank, 0));
  if (kind == H5S_SEL_POINTS) {
    const hssize_t n = H5Sget_select_elem_npoints(space);
    if (n < 0 || n > max_entries) return false;
    std::vector<hsize_t> points(static_cast<std::size_t>(n) * r);
    if (n > 0 && H5Sget_select_elem_pointlist(space, 0, static_cast<hsize_t>(n), points.data()) < 0) return false;
    target["points"] = lists(points, r);
  } else if (kind == H5S_SEL_HYPERSLABS) {
    const hssize_t n = H5Sget_select_hyper_nblocks(space);
    if (n < 0 || n > max_entries) return false;
    std::vector<hsize_t> blocks(static_cast<std::size_t>(n) * 2 * r);
    if (n > 0 && H5Sget_select_hyper_blocklist(space, 0, static_cast<hsize_t>(n), blocks.data()) < 0) return false;
    target["blocks"] = lists(blocks, 2 * r);  // first corner, then the opposite one, both inclusive
  } else {
    target["selection"] = kind == H5S_SEL_ALL ? "all" : "none";
  }
  return true;
}

}  // namespace zarrbits::hdf5
