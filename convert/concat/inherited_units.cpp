// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/inherited_units.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/source_dataset.hpp"
#include "metadata/node.hpp"
#include "text/cf_calendar.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace zarrbits::conversion {

namespace {

constexpr const char* naming_attributes[] = {"bounds", "climatology"};

// As CF looks for a name: in the group of the variable that has it, then in those above. "" if absent.
std::string find_variable(const std::string& origin, const std::string& name, const std::set<std::string>& variables) {
  if (name.empty()) return "";
  if (name.front() == '/') return variables.contains(name) ? name : "";
  for (std::string group = origin; !group.empty();) {
    group.resize(group.rfind('/'));
    const std::string path = group + "/" + text::node_name(name);
    if (variables.contains(path)) return path;
  }
  return "";
}

}  // namespace

inherited_units find_inherited_units(const std::set<std::string>& variables,
                                     const std::function<std::string(const std::string& path, const char* name)>& text) {
  inherited_units result;
  for (const std::string& path : variables) {
    for (const char* attribute : naming_attributes) {
      const std::string named = find_variable(path, text(path, attribute), variables);
      if (!named.empty() && named != path && text::is_time_units(text(path, "units"))) result.emplace(named, path);
    }
  }
  return result;
}

inherited_units find_inherited_units(const hdf5::source_file& file) {
  std::set<std::string> variables;
  std::map<std::string, const hdf5::source_object*> objects;
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    variables.insert(o.store_path);
    objects[o.store_path] = &o;
  }
  std::string open_path;
  hdf5::handle open;
  return find_inherited_units(variables, [&](const std::string& path, const char* name) -> std::string {
    std::vector<std::string> text;
    hdf5::skip_reason([&] {  // what cannot be read is reported where the variable is
      if (open_path != path) open = file.open(*objects.at(path));
      open_path = path;
      if (H5Aexists(open, name) > 0) text = hdf5::text_attribute(open, name);
    });
    return text.size() == 1 ? text[0] : "";
  });
}

inherited_units find_inherited_units(const std::map<std::string, text::json>& nodes) {
  std::set<std::string> variables;
  for (const auto& [path, node] : nodes) {
    if (metadata::is_array(node)) variables.insert(path);
  }
  return find_inherited_units(variables, [&](const std::string& path, const char* name) -> std::string {
    return text::text_member(metadata::attributes_of(nodes.at(path)), name);
  });
}

}  // namespace zarrbits::conversion
