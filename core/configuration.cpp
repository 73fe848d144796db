// SPDX-License-Identifier: BSL-1.0
#include "core/configuration.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::detail {

namespace {

std::string shortened_json(const nlohmann::ordered_json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

}  // namespace

const nlohmann::ordered_json* configuration::value(const char* key, const char* synonym) {
  const nlohmann::ordered_json* match = nullptr;
  const char* found_as = nullptr;
  for (const char* k : {key, synonym}) {
    if (!k) continue;
    known_keys_.insert(k);
    const auto it = object_.find(k);
    if (it == object_.end() || it->is_null()) continue;
    if (match && *match != *it)
      throw error(errc::invalid_configuration, codec_ + ": \"" + found_as + "\" is " + shortened_json(*match) + " and \"" + k +
                                                   "\" is " + shortened_json(*it) +
                                                   ", but they are two spellings of one key; use one of them");
    match = &*it;
    found_as = k;
  }
  return match;
}

std::optional<std::string> configuration::text(const char* key) {
  const auto* v = value(key, nullptr);
  if (!v) return {};
  if (!v->is_string())
    throw error(errc::invalid_configuration, codec_ + ": \"" + key + "\" is " + shortened_json(*v) + ", but must be a string");
  return v->get<std::string>();
}

std::optional<unsigned> configuration::bit(const char* key, const char* synonym, const data_type& type) {
  const auto* v = value(key, synonym);
  if (!v) return {};
  // the parser turns an integer too large for 64 bits into a float, which is refused here
  if (!v->is_number_unsigned() || v->get<std::uint64_t>() >= 64)
    throw error(errc::invalid_configuration, codec_ + ": \"" + key + "\" is " + shortened_json(*v) + ", but " + type.name() +
                                                 " has bits 0 to " + std::to_string(type.component_bits() - 1) +
                                                 "; use one of these as an integer");
  return v->get<unsigned>();
}

void configuration::nothing_else() const {
  for (const auto& [key, value] : object_.items()) {
    if (known_keys_.contains(key)) continue;
    std::string keys;
    for (const std::string& k : known_keys_) keys += (keys.empty() ? "\"" : ", \"") + k + "\"";
    throw error(errc::invalid_configuration,
                codec_ + ": unknown configuration key " + shortened_json(nlohmann::ordered_json(key)) +
                    (known_keys_.empty() ? "; this codec has no configuration" : "; the keys are " + keys));
  }
}

}  // namespace zarrbits::detail
