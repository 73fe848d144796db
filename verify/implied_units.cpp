// SPDX-License-Identifier: BSL-1.0
#include "verify/implied_units.hpp"

#include "metadata/node.hpp"
#include "text/name_escaping.hpp"
#include "verify/cf_time.hpp"
#include "verify/compare_metadata.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace zarrbits::verification {

namespace {

constexpr const char* naming_attributes[] = {"bounds", "climatology"};
const inherited_units no_units;

// "": there is no such text, or it cannot be read, which is reported where attributes are compared.
std::string text_of(hid_t dataset, const char* name) {
  try {
    const std::vector<std::string> texts = text_attribute(dataset, name);
    return texts.size() == 1 ? texts[0] : "";
  } catch (const source_error&) {
  } catch (const zarr::not_supported&) {
  }
  return "";
}

inherited_units units_of(hid_t dataset, const std::string& path) {
  return {text_of(dataset, "units"), text_of(dataset, "calendar"), path};
}

std::string parent_group(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The paths that a name may mean, best first: next to the variable that has it, or in a group above.
std::vector<std::string> candidate_paths(const std::string& variable_path, const std::string& name) {
  if (name.empty()) return {};
  if (name.front() == '/') return {name};
  std::vector<std::string> paths;
  for (std::string group = variable_path; !group.empty();) {
    group = parent_group(group);
    paths.push_back(group + "/" + name);
  }
  return paths;
}

}  // namespace

source_inherited_units::source_inherited_units(const source_tree& tree) {
  for (const auto& [address, o] : tree.objects()) {
    if (o.type != H5O_TYPE_DATASET) continue;
    const hdf5::handle dataset = tree.open(address);
    if (!dataset) continue;  // reported where it is compared
    for (const char* attribute : naming_attributes) {
      for (const std::string& path : candidate_paths(o.path, text::escape_name(text_of(dataset.get(), attribute)))) {
        const auto named = tree.address_of(path);
        if (!named) continue;
        const inherited_units units = units_of(dataset.get(), o.path);
        if (*named != address && is_time_units(units.units)) units_.try_emplace(*named, units);
        break;
      }
    }
  }
}

inherited_units source_inherited_units::units_at(const source_tree& tree, const std::string& path) {
  const auto address = tree.address_of(path);
  const hdf5::handle dataset = address ? tree.open(*address) : hdf5::handle();
  return dataset && H5Iget_type(dataset.get()) == H5I_DATASET ? units_of(dataset.get(), path) : no_units;
}

const inherited_units& source_inherited_units::units_for(haddr_t dataset) const {
  const auto entry = units_.find(dataset);
  return entry == units_.end() ? no_units : entry->second;
}

void store_inherited_units::scan_group(const zarr::store_folder& root, const std::string& group) {
  const auto [entry, fresh] = by_group_.try_emplace(group);
  if (!fresh) return;
  for (const zarr::store_folder& node : (group.empty() ? root : root / group.substr(1)).nodes()) {
    const nlohmann::json document = zarr::read_node(node);
    const auto text = [&](const char* name) {
      const nlohmann::json& value = metadata::member(metadata::attributes_of(document), name);
      return value.is_string() ? value.get<std::string>() : "";
    };
    const std::string node_path = "/" + node.path();
    if (!is_time_units(text("units"))) continue;
    for (const char* attribute : naming_attributes) {
      for (const std::string& path : candidate_paths(node_path, text(attribute))) {
        if (zarr::kind_of(root / path.substr(1)) != metadata::node_kind::array) continue;
        if (path != node_path) entry->second.try_emplace(path, inherited_units{text("units"), text("calendar"), node_path});
        break;
      }
    }
  }
}

const inherited_units& store_inherited_units::units_for(const zarr::store_folder& root, const std::string& path) {
  // where CF files have the variable that names it: next to it
  const std::string group = parent_group(path);
  scan_group(root, group);
  const auto& lent = by_group_.at(group);
  const auto entry = lent.find(path);
  return entry == lent.end() ? no_units : entry->second;
}

}  // namespace zarrbits::verification
