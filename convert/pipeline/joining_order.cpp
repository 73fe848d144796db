// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/joining_order.hpp"

#include "text/natural_order.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::conversion {

std::vector<std::string> given_sources(const std::string& first, const std::optional<concatenation>& concat) {
  std::vector<std::string> names{first};
  if (concat) names.insert(names.end(), concat->sources.begin(), concat->sources.end());
  return names;
}

std::vector<std::string> ordered_sources(const convert_options& options,
                                         const std::function<long double(const std::string& source)>& first_value) {
  using order = concatenation::order_type;
  std::vector<std::string> names = given_sources(options.source.name, options.source.concat);
  if (options.source.concat->order == order::name) std::stable_sort(names.begin(), names.end(), text::natural_less);
  if (options.source.concat->order != order::value) return names;
  std::vector<std::pair<long double, std::string>> keyed_names;
  for (std::string& name : names) {
    const long double value = first_value(name);
    keyed_names.emplace_back(value, std::move(name));
  }
  std::stable_sort(keyed_names.begin(), keyed_names.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed_names.begin(), keyed_names.end(), names.begin(), [](auto& each) { return std::move(each.second); });
  return names;
}

}  // namespace zarrbits::conversion
