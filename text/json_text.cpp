// SPDX-License-Identifier: BSL-1.0
#include "text/json_text.hpp"

#include "core/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace zarrbits::conversion {

json parse_json(std::string_view text, bool may_be_anything) { return json::parse(text, nullptr, !may_be_anything); }

json parse_foreign_json(std::string_view text) {
  try {
    return detail::parse_python_json(text, errc::invalid_configuration, "");
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

bool is_word(const json& j) { return j.is_number_float() && !std::isfinite(j.get<double>()); }

bool has_words(const json& j) { return is_word(j) || (j.is_structured() && std::any_of(j.begin(), j.end(), has_words)); }

// Puts texts for numbers that are not finite: a mark, and their word.
void mark_words(json& j, const std::string& mark) {
  if (j.is_structured()) {
    for (json& each : j) mark_words(each, mark);
  } else if (is_word(j)) {
    const double v = j.get<double>();
    j = mark + (std::isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity") + mark;
  }
}

}  // namespace

json without_numbers_of_python(json j) {
  mark_words(j, "");
  return j;
}

std::string python_json_text(const json& j, int indent) {
  if (!has_words(j)) return strict_json_text(j, indent);
  std::string mark = "<word>";  // one that the text does not have
  for (const std::string plain = strict_json_text(j); plain.find(mark) != std::string::npos;) mark += '>';
  json marked = j;
  mark_words(marked, mark);
  std::string text = strict_json_text(marked, indent);
  for (const std::string& quoted : {"\"" + mark, mark + "\""}) {
    for (std::size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;) text.erase(at, quoted.size());
  }
  return text;
}

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
