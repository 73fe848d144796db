// SPDX-License-Identifier: BSL-1.0
#include "text/extension.hpp"

namespace zarrbits::text {

std::string extension_name(const json& extension) {
  if (extension.is_string()) return extension.get<std::string>();
  const auto member = extension.is_object() ? extension.find("name") : extension.end();
  return member != extension.end() && member->is_string() ? member->get<std::string>() : "";
}

json extension_configuration(const json& extension) {
  const auto member = extension.is_object() ? extension.find("configuration") : extension.end();
  return member != extension.end() && member->is_object() ? *member : json::object();
}

}  // namespace zarrbits::text
