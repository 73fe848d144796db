// SPDX-License-Identifier: BSL-1.0
#include "convert/text/json_text.hpp"

#include "core/json.hpp"

#include <nlohmann/json.hpp>

#include <unordered_set>
#include <utility>

namespace zarrbits::conversion {

json parse_json(std::string_view text, bool may_be_anything) { return json::parse(text, nullptr, !may_be_anything); }

json parse_foreign_json(std::string_view text) {
  try {
    return detail::parse_json(text, errc::invalid_configuration, "");
  } catch (const error&) {
    return json(json::value_t::discarded);
  }
}

struct object_builder::content {
  std::unordered_set<std::string> keys;
  json object = json::object();
};

object_builder::object_builder() : content_(std::make_unique<content>()) {}
object_builder::object_builder(object_builder&&) noexcept = default;
object_builder& object_builder::operator=(object_builder&&) noexcept = default;
object_builder::~object_builder() = default;

bool object_builder::add(const std::string& key, json value) {
  if (!content_->keys.insert(key).second) return false;
  static_cast<json::object_t::Container&>(content_->object.get_ref<json::object_t&>()).emplace_back(key, std::move(value));
  return true;
}

bool object_builder::empty() const { return content_->keys.empty(); }

json object_builder::take() {
  content_->keys.clear();
  return std::exchange(content_->object, json::object());
}

std::string strict_json_text(const json& j, int indent) { return j.dump(indent); }

namespace {

bool is_text_of(const nlohmann::ordered_json& j, const char* key) {
  return j.is_object() && j.contains(key) && j[key].is_string();
}

}  // namespace

bool is_zarr_node(std::string_view text) {
  const nlohmann::ordered_json j = parse_foreign_json(text);
  return is_text_of(j, "node_type") && (j["node_type"] == "group" || j["node_type"] == "array") && j.contains("zarr_format") &&
         j["zarr_format"] == 3;
}

bool is_own_plan(std::string_view text) {
  const nlohmann::ordered_json j = parse_foreign_json(text);
  return is_text_of(j, "zarrbits") && is_text_of(j, "source") && j.contains("options") && j["options"].is_object();
}

}  // namespace zarrbits::conversion
