// SPDX-License-Identifier: BSL-1.0
#include "text/extension.hpp"

namespace zarrbits::text {

std::string name_in(const json& extension) {
  if (extension.is_string()) return extension.get<std::string>();
  const auto found = extension.is_object() ? extension.find("name") : extension.end();
  return found != extension.end() && found->is_string() ? found->get<std::string>() : "";
}

json configuration_in(const json& extension) {
  const auto found = extension.is_object() ? extension.find("configuration") : extension.end();
  return found != extension.end() && found->is_object() ? *found : json::object();
}

}  // namespace zarrbits::text
