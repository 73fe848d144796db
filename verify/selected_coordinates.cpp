// SPDX-License-Identifier: BSL-1.0
#include "verify/selected_coordinates.hpp"

#include "text/coordinates.hpp"
#include "text/name_escaping.hpp"
#include "text/selection.hpp"
#include "verify/compare_metadata.hpp"

#include <cstring>
#include <map>

namespace zarrbits::verification {

namespace {

// The scales of a dataset, of all its dimensions. Throws source_error, not_supported.
std::vector<haddr_t> attached_scales(hid_t dataset) {
  std::vector<haddr_t> scales;
  if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) return scales;
  const attribute_values lists = read_attribute(dataset, "DIMENSION_LIST");
  if (lists.type.kind != source_kind::sequence || lists.type.members[0].type.kind != source_kind::reference ||
      lists.dims.size() != 1)
    return scales;
  for (std::uint64_t d = 0; d < lists.dims[0]; ++d) {
    hvl_t list;
    std::memcpy(&list, lists.values->data() + d * sizeof list, sizeof list);
    for (std::size_t i = 0; list.p && i < list.len; ++i) scales.push_back(static_cast<const hobj_ref_t*>(list.p)[i]);
  }
  return scales;
}

template <class Read>
void skip_unreadable(const Read& read) {
  try {
    read();
  } catch (const source_error&) {
  } catch (const zarr::not_supported&) {
  }
}

}  // namespace

std::vector<std::string> selected_coordinates(const verify_options& options, const source_tree& tree, const convention& rules) {
  if (!options.with_coordinates || options.include.empty()) return {};
  text::selection requested(options.include, options.exclude);
  std::map<std::string, bool> is_selected;
  std::map<std::string, haddr_t> addresses;
  std::map<haddr_t, std::string> paths;
  for (const auto& [address, group] : tree.objects()) {
    for (const source_link& link : group.links) {
      const auto target = tree.objects().find(link.target);
      if (target == tree.objects().end() || target->second.type != H5O_TYPE_DATASET) continue;
      if (rules.netcdf && rules.netcdf->has_no_variable(link.target)) continue;
      const std::string path = text::escape_name(child_path(group.path, link.name));
      if (requested.excludes(path)) continue;
      is_selected[path] = requested.matches(path);
      addresses[path] = link.target;
      paths[link.target] = path;
    }
  }
  return text::unselected_coordinates(is_selected, [&](const std::string& path) {
    std::vector<std::string> references;
    const hdf5::handle dataset = tree.open(addresses.at(path));
    if (!dataset) return references;
    skip_unreadable([&] {
      for (const haddr_t scale : attached_scales(dataset.get())) {
        if (const auto entry = paths.find(scale); entry != paths.end()) references.push_back(entry->second);
      }
    });
    for (const char* attribute : text::coordinate_attributes) {
      skip_unreadable([&] {
        for (const std::string& value : text_attribute(dataset.get(), attribute)) {
          for (const std::string& name : text::names_in_attribute(value)) references.push_back(text::escape_name(name));
        }
      });
    }
    return references;
  });
}

}  // namespace zarrbits::verification
