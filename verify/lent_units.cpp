// SPDX-License-Identifier: BSL-1.0
#include "verify/lent_units.hpp"

#include "text/shown.hpp"
#include "verify/cf_time.hpp"
#include "verify/compare_metadata.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace zarrbits::verification {

namespace {

constexpr const char* naming_attributes[] = {"bounds", "climatology"};
const lent_units no_units;

// "": there is no such text, or it cannot be read, which is reported where attributes are compared.
std::string text_of(hid_t dataset, const char* name) {
  try {
    const std::vector<std::string> all = text_attribute(dataset, name);
    return all.size() == 1 ? all[0] : "";
  } catch (const source_error&) {
  } catch (const zarr::not_supported&) {
  }
  return "";
}

lent_units units_of(hid_t dataset, const std::string& path) {
  return {text_of(dataset, "units"), text_of(dataset, "calendar"), path};
}

std::string group_above(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The paths that a name may mean, best first: next to the variable that has it, or in a group above.
std::vector<std::string> places_of(const std::string& from, const std::string& name) {
  if (name.empty()) return {};
  if (name.front() == '/') return {name};
  std::vector<std::string> paths;
  for (std::string group = from; !group.empty();) {
    group = group_above(group);
    paths.push_back(group + "/" + name);
  }
  return paths;
}

}  // namespace

source_lenders::source_lenders(const source_tree& tree) {
  for (const auto& [address, o] : tree.objects()) {
    if (o.type != H5O_TYPE_DATASET) continue;
    const handle dataset = tree.open(address);
    if (!dataset) continue;  // reported where it is compared
    for (const char* attribute : naming_attributes) {
      for (const std::string& path : places_of(o.path, text::shown(text_of(dataset.get(), attribute)))) {
        const auto named = tree.address_of(path);
        if (!named) continue;
        const lent_units units = units_of(dataset.get(), o.path);
        if (*named != address && is_time_units(units.units)) lent_.try_emplace(*named, units);
        break;
      }
    }
  }
}

lent_units source_lenders::units_at(const source_tree& tree, const std::string& path) {
  const auto address = tree.address_of(path);
  const handle dataset = address ? tree.open(*address) : handle();
  return dataset && H5Iget_type(dataset.get()) == H5I_DATASET ? units_of(dataset.get(), path) : no_units;
}

const lent_units& source_lenders::to(haddr_t dataset) const {
  const auto found = lent_.find(dataset);
  return found == lent_.end() ? no_units : found->second;
}

void store_lenders::look_at(const zarr::store_folder& root, const std::string& group) {
  const auto [here, fresh] = by_group_.try_emplace(group);
  if (!fresh) return;
  for (const zarr::store_folder& node : (group.empty() ? root : root / group.substr(1)).nodes()) {
    const nlohmann::json all = zarr::read_node(node);
    const auto found = all.find("attributes");
    if (found == all.end() || !found->is_object()) continue;
    const auto text = [&](const char* name) {
      const auto value = found->find(name);
      return value != found->end() && value->is_string() ? value->get<std::string>() : "";
    };
    const std::string own = "/" + node.path();
    if (!is_time_units(text("units"))) continue;
    for (const char* attribute : naming_attributes) {
      for (const std::string& path : places_of(own, text(attribute))) {
        if (zarr::kind_of(root / path.substr(1)) != zarr::node_kind::array) continue;
        if (path != own) here->second.try_emplace(path, lent_units{text("units"), text("calendar"), own});
        break;
      }
    }
  }
}

const lent_units& store_lenders::to(const zarr::store_folder& root, const std::string& path) {
  // where CF files have the variable that names it: next to it
  const std::string group = group_above(path);
  look_at(root, group);
  const auto& lent = by_group_.at(group);
  const auto found = lent.find(path);
  return found == lent.end() ? no_units : found->second;
}

}  // namespace zarrbits::verification
