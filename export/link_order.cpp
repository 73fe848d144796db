// SPDX-License-Identifier: BSL-1.0
#include "export/link_order.hpp"

#include "hdf5/h5.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace zarrbits::exporting {

namespace {

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* data) {
  static_cast<std::vector<std::string>*>(data)->emplace_back(name);
  return 0;
}

}  // namespace

link_order::link_order(const store_node& group) {
  const text::json& order = group.note("order");
  if (!order.is_array()) return;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!order[i].is_string()) continue;
    const std::string name = text::unescape_name(order[i].get<std::string>());
    ranks_.emplace(name, i);
    ranks_.emplace(text::to_nfc(name), i);  // in files for netCDF
  }
}

std::size_t link_order::rank(const std::string& name) const {
  const auto entry = ranks_.find(name);
  return entry == ranks_.end() ? SIZE_MAX : entry->second;
}

void link_order::apply(hid_t group) const {
  std::vector<std::string> names;
  hsize_t position = 0;
  hdf5::check(H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, collect_name, &names), "list a group");
  const auto precedes = [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); };
  if (std::is_sorted(names.begin(), names.end(), precedes)) return;
  std::string unused = "moved";
  for (const std::set<std::string> used(names.begin(), names.end()); used.contains(unused);) unused += '_';
  std::stable_sort(names.begin(), names.end(), precedes);
  for (const std::string& name : names) {  // a link that moves is the newest one
    hdf5::check(H5Lmove(group, name.c_str(), group, unused.c_str(), H5P_DEFAULT, H5P_DEFAULT), "order the links of a group");
    const hdf5::handle links(H5Pcreate(H5P_LINK_CREATE), "create properties");
    hdf5::check(H5Pset_char_encoding(links, H5T_CSET_UTF8), "set the encoding of names");
    hdf5::check(H5Lmove(group, unused.c_str(), group, name.c_str(), links, H5P_DEFAULT), "order the links of a group");
  }
}

}  // namespace zarrbits::exporting
