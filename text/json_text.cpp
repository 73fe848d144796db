// SPDX-License-Identifier: BSL-1.0
#include "text/json_text.hpp"

#include "core/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace zarrbits::text {

json parse_json(std::string_view text, bool may_be_anything) { return json::parse(text, nullptr, !may_be_anything); }

json parse_untrusted_json(std::string_view text) {
  try {
    return detail::parse_python_json(text, errc::invalid_configuration, "");
  } catch (const error&) {
    return json(json::value_t::discarded);
  }
}

json parse_untrusted_node(std::string_view text, const std::string& context, std::vector<detail::attribute_remark>& remarks,
                          bool attributes_alone) {
  return detail::parse_node_json(text, attributes_alone, errc::damaged_store, context, remarks);
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

namespace {

bool has_binary(const nlohmann::json& j) {
  return j.is_binary() || (j.is_structured() && std::any_of(j.begin(), j.end(), has_binary));
}

}  // namespace

std::string sorted_json_text(const nlohmann::json& j) {
  if (has_binary(j)) return json_text(j);
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string strict_json_text(const json& j, int indent) { return j.dump(indent); }

namespace {

// Python's word for a number that is not finite; "" for all others.
std::string python_word(const json& j) {
  if (!j.is_number_float() || std::isfinite(j.get<double>())) return {};
  const double v = j.get<double>();
  return std::isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity";
}

}  // namespace

json nonfinite_to_strings(json j) {
  if (j.is_structured()) {
    for (json& element : j) element = nonfinite_to_strings(std::move(element));
  } else if (const std::string word = python_word(j); !word.empty()) {
    j = word;
  }
  return j;
}

std::string python_json_text(const json& j, int indent) {
  return json_text_with_words(j, python_word, [&](const json& value) { return strict_json_text(value, indent); });
}

std::string text_member(const json& object, const char* name) {
  const auto entry = object.is_object() ? object.find(name) : object.end();
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : "";
}

namespace {

bool is_text_of(const nlohmann::ordered_json& j, const char* key) {
  return j.is_object() && j.contains(key) && j[key].is_string();
}

}  // namespace

bool is_zarrbits_plan(std::string_view text) {
  const nlohmann::ordered_json j = parse_untrusted_json(text);
  return is_text_of(j, "zarrbits") && is_text_of(j, "source") && j.contains("options") && j["options"].is_object();
}

}  // namespace zarrbits::text
