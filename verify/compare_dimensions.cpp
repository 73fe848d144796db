// SPDX-License-Identifier: BSL-1.0
//
// A dimension has the name of one of its scales, else its label, else no name in the source: the store may then name it
// phony_dim_<n>, one name for each length in a group.
//
#include "hdf5/h5.hpp"
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/exported_forms.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr const char* dimension_names_kind = "dimension names";
constexpr std::string_view phony = "phony_dim_";

bool is_phony(const std::string& name) {
  return name.starts_with(phony) && name.size() > phony.size() &&
         name.find_first_not_of("0123456789", phony.size()) == std::string::npos;
}

// The possible names of each dimension in the source, best first: those of its scales, then its label.
using alternatives = std::vector<std::vector<std::string>>;

std::vector<std::string> escape_names(std::vector<std::string> names) {
  for (std::string& name : names) name = text::escape_name(name);
  return names;
}

}  // namespace

dimension_names_of names_of_dimensions(hid_t dataset, std::size_t rank, const source_objects& objects) {
  std::vector<alternatives> out(rank);
  if (H5Aexists(dataset, "DIMENSION_LIST") > 0) {
    const attribute_values lists = read_attribute(dataset, "DIMENSION_LIST");
    const bool scales = lists.type.kind == source_kind::sequence && lists.type.members[0].type.kind == source_kind::reference &&
                        lists.dims == std::vector<std::uint64_t>{rank};
    for (std::size_t d = 0; scales && d < rank; ++d) {
      hvl_t list;
      std::memcpy(&list, lists.values->data() + d * sizeof list, sizeof list);
      for (std::size_t i = 0; list.p && i < list.len; ++i) {
        const auto address = static_cast<const hobj_ref_t*>(list.p)[i];
        if (std::vector<std::string> names = escape_names(objects.names_of(address)); !names.empty())
          out[d].push_back(std::move(names));
      }
    }
  }
  if (rank == 1 && out[0].empty() && is_dimension_scale(dataset)) {
    H5O_info_t info;
    check(H5Oget_info2(dataset, &info, H5O_INFO_BASIC), "cannot look at the dataset");
    if (std::vector<std::string> names = escape_names(objects.names_of(info.addr)); !names.empty())
      out[0].push_back(std::move(names));
  }
  const std::vector<std::string> labels = escape_names(text_attribute(dataset, "DIMENSION_LABELS"));
  for (std::size_t d = 0; d < std::min(rank, labels.size()); ++d) {
    if (!labels[d].empty()) out[d].push_back({labels[d]});
  }
  return out;
}

// The error in the name of dimension `d`, or "". `right`: the names that it may have.
std::string metadata_comparison::dimension_difference(const node_pair& n, std::size_t d,
                                                      const std::vector<std::vector<std::string>>& right) {
  const json& names = metadata::dimension_names_of(n.node);
  const auto used_elsewhere = [&](const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i != d && names[i] == name) return true;
    }
    return false;
  };
  const json& name = names[d];
  const std::string dimension = "dimension " + std::to_string(d);
  const bool may_be_twice = rules_.netcdf && !right.empty();  // netCDF allows this
  if (name.is_string() && !may_be_twice && used_elsewhere(name.get<std::string>()))
    return dimension + " has the name of a different dimension";
  for (const std::vector<std::string>& candidates : right) {  // an array never has equal names, so the next best may be right
    if (std::any_of(candidates.begin(), candidates.end(), [&](const std::string& one) { return name == one; })) return "";
    if (std::any_of(candidates.begin(), candidates.end(), used_elsewhere)) continue;
    return dimension + ": source " + format_text(candidates[0]) + ", store " +
           (name.is_string() ? format_text(name.get<std::string>()) : "none");
  }
  if (name.is_null()) return "";
  if (!is_phony(name.get<std::string>())) return dimension + ": source none, store " + format_text(name.get<std::string>());
  const std::uint64_t length = metadata::extent_of(n.node, d);
  const std::pair<std::string, std::uint64_t> place{n.store_path.substr(0, n.store_path.rfind('/')), length};
  const auto [entry, is_new] = phony_.try_emplace(name.get<std::string>(), place);
  if (is_new || entry->second == place) return "";
  return dimension + ": the store has " + name.get<std::string>() + " for dimensions of different lengths or groups";
}

void metadata_comparison::dimension_names(hid_t dataset, std::size_t rank, const node_pair& n) {
  const std::size_t stored_rank = metadata::rank_of(n.node);
  const json names = metadata::dimension_names_of(n.node);
  std::vector<alternatives> right(stored_rank);
  const bool of_netcdf = rules_.netcdf && dataset >= 0;
  try {
    if (of_netcdf) {
      H5O_info_t info;
      check(H5Oget_info2(dataset, &info, H5O_INFO_BASIC), "cannot look at the dataset");
      for (const netcdf_dimensions::dimension* d : rules_.netcdf->dimensions_of(info.addr))
        right.push_back(d ? alternatives{{d->name}} : alternatives());
      right.erase(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(stored_rank));
      // what netCDF does not have: labels
      const std::vector<alternatives> labels = names_of_dimensions(dataset, rank, objects_);
      for (std::size_t d = 0; d < std::min(right.size(), labels.size()); ++d) {
        if (right[d].empty()) right[d] = labels[d];
      }
    } else if (dataset >= 0) {
      right = names_of_dimensions(dataset, rank, objects_);
      if (rules_.exported) {  // a coordinate variable of several dimensions lists no scales
        H5O_info_t info;
        check(H5Oget_info2(dataset, &info, H5O_INFO_BASIC), "cannot look at the dataset");
        const auto dimensions = rules_.exported->dimensions_of(info.addr);
        for (std::size_t d = 0; d < std::min(right.size(), dimensions.size()); ++d) {
          if (right[d].empty() && dimensions[d]) right[d] = {{dimensions[d]->name}};
        }
      }
    }
  } catch (const std::runtime_error& e) {  // an error of libhdf5, or a type that no scale has
    return report_finding(n, dimension_names_kind, "", verdict::unreadable,
                          std::string("has dimension names that cannot be read from the source: ") + e.what());
  }
  if (!added_dimension_.empty() && dataset >= 0) right.insert(right.begin(), alternatives{{added_dimension_}});
  right.resize(stored_rank);
  for (std::size_t d = 0; rules_.exported && d < stored_rank; ++d) {  // netCDF has no dimensions without names
    const bool named = names.is_array() && d < names.size() && names[d].is_string() && !is_phony(names[d].get<std::string>());
    const bool is_made = right[d] == alternatives{{exported_dimension(n.store_path, d)}};
    if (!named && is_made) right[d].clear();
    if (!named || right[d].size() != 1 || right[d][0].size() != 1) continue;
    const std::string name = names[d].get<std::string>();
    if ((is_made && name.find('/') != std::string::npos) ||
        is_exported_dimension(right[d][0][0], name, metadata::extent_of(n.node, d)))
      right[d] = {{name}};
  }
  if (names.is_null()) {
    const bool all_unnamed = std::all_of(right.begin(), right.end(), [](const alternatives& a) { return a.empty(); });
    if (stored_rank == 0) return;
    return all_unnamed
               ? report_finding(n, dimension_names_kind, "", verdict::equal, "")
               : report_finding(n, dimension_names_kind, "", verdict::missing, "has dimension names that are not in the store");
  }
  const auto is_name = [](const json& name) { return name.is_string() || name.is_null(); };
  if (!names.is_array() || names.size() != stored_rank || !std::all_of(names.begin(), names.end(), is_name))
    return report_finding(n, dimension_names_kind, "", verdict::differs, "has invalid dimension names in the store");
  if (stored_rank == 0) return;
  for (std::size_t d = 0; d < stored_rank; ++d) {
    if (const std::string reason = dimension_difference(n, d, right[d]); !reason.empty())
      return report_finding(n, dimension_names_kind, "", verdict::differs, "has different dimension names: " + reason);
  }
  report_finding(n, dimension_names_kind, "", verdict::equal, "");
}

}  // namespace zarrbits::verification
