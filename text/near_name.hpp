// SPDX-License-Identifier: BSL-1.0
//
//   near_name("--overwite", {"--overwrite", "--order"})   // "--overwrite"
//
#ifndef ZARRBITS_TEXT_NEAR_NAME_HPP
#define ZARRBITS_TEXT_NEAR_NAME_HPP

#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

// The known name that was probably meant: it begins with `name`, or differs in few letters. "" if there is none.
std::string near_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace zarrbits::text

#endif
