// SPDX-License-Identifier: BSL-1.0
#include "verify/convention.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::verification {

convention convention_of(const nlohmann::json& root) {
  convention c;
  const nlohmann::json note = root.value(nlohmann::json::json_pointer("/attributes/zarrbits/convention"), nlohmann::json());
  c.one_element_is_scalar = note == "netCDF";
  return c;
}

}  // namespace zarrbits::verification
