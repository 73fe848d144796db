// SPDX-License-Identifier: BSL-1.0
#include "check/leftovers.hpp"

#include "text/reserved_names.hpp"

#include <string_view>

namespace zarrbits::checking {

std::string leftover_reason(const std::string& key) {
  for (std::size_t begin = 0; begin < key.size();) {
    const std::string_view part = std::string_view(key).substr(begin, key.find('/', begin) - begin);
    begin += part.size() + 1;
    if (part == text::append_folder) return "it is of an append that is not complete; run the append again, which completes it";
    if (part == text::unfinished_folder) return "it is of a conversion that is not complete; run it again with `resume`";
    if (part.starts_with(text::internal_prefix))
      return "a run of zarrbits that was killed left it; remove it if no run is writing here";
  }
  return {};
}

}  // namespace zarrbits::checking
