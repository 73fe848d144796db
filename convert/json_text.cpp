// SPDX-License-Identifier: BSL-1.0
#include "convert/json_text.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::conversion {

using json = nlohmann::ordered_json;

json parse_json(std::string_view text, bool may_be_anything) { return json::parse(text, nullptr, !may_be_anything); }

std::string json_text(const json& j, int indent) { return j.dump(indent, ' ', false, json::error_handler_t::replace); }

std::string strict_json_text(const json& j, int indent) { return j.dump(indent); }

}  // namespace zarrbits::conversion
