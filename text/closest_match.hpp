// SPDX-License-Identifier: BSL-1.0
//
//   closest_match("--overwite", {"--overwrite", "--order"})   // "--overwrite"
//
#ifndef ZARRBITS_TEXT_CLOSEST_MATCH_HPP
#define ZARRBITS_TEXT_CLOSEST_MATCH_HPP

#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

// The known name that was probably meant: it begins with `name`, or differs in few letters. "" if none does.
std::string closest_match(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace zarrbits::text

#endif
