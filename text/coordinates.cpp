// SPDX-License-Identifier: BSL-1.0
#include "text/coordinates.hpp"

#include "text/format.hpp"
#include "text/selection.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace zarrbits::text {

std::vector<std::string> names_in_attribute(std::string_view value) {
  constexpr std::string_view blanks = " \t\r\n";
  std::vector<std::string> names;
  while (true) {
    value.remove_prefix(std::min(value.find_first_not_of(blanks), value.size()));
    if (value.empty()) return names;
    std::string_view word = value.substr(0, value.find_first_of(blanks));
    value.remove_prefix(word.size());
    if (word.ends_with(':')) word.remove_suffix(1);
    if (!word.empty()) names.emplace_back(word);
  }
}

std::vector<std::string> unselected_coordinates(const std::map<std::string, bool>& is_selected,
                                                const references_function& references_of) {
  std::set<std::string> result;
  std::vector<std::string> todo;
  for (const auto& [path, selected] : is_selected) {
    if (selected) todo.push_back(path);
  }
  while (!todo.empty()) {
    const std::string path = todo.back();
    todo.pop_back();
    for (const std::string& name : references_of(path)) {
      auto entry = name.starts_with('/') ? is_selected.find(name) : is_selected.end();
      for (std::string group = path; entry == is_selected.end() && !name.starts_with('/') && !group.empty();) {
        group.resize(group.rfind('/'));
        entry = is_selected.find(group + "/" + name);
      }
      if (entry != is_selected.end() && !entry->second && result.insert(entry->first).second) todo.push_back(entry->first);
    }
  }
  return {result.begin(), result.end()};
}

std::vector<std::string> include_patterns(std::vector<std::string> include, bool with_coordinates,
                                          const std::vector<std::string>& coordinates) {
  if (!with_coordinates) return include;
  for (const std::string& path : coordinates) include.push_back(pattern_of_path(path));
  return include;
}

std::string coordinates_note(const std::vector<std::string>& paths, bool are_taken) {
  constexpr std::size_t max_names = 10;
  if (paths.empty()) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(paths.size(), max_names); ++i) names += (i == 0 ? "\"" : ", \"") + paths[i] + "\"";
  if (paths.size() > max_names) names += " and " + std::to_string(paths.size() - max_names) + " more";
  const std::string subject = pluralize(paths.size(), "coordinate variable") + " of what `include` selects";
  return are_taken ? subject + " " + (paths.size() == 1 ? "is" : "are") + " converted, too: " + names
                   : subject + " " + (paths.size() == 1 ? "is" : "are") + " left out: " + names +
                         "; `with_coordinates` converts them, too";
}

}  // namespace zarrbits::text
