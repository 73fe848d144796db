// SPDX-License-Identifier: BSL-1.0
#include "core/json.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace zarrbits::detail {

namespace {

using json = nlohmann::ordered_json;

// Builds the value. The JSON library's own builder searches all members of an object for each new one, and accepts repeated keys.
class builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool b) override { return add(b); }
  bool number_integer(json::number_integer_t n) override { return add(n); }
  bool number_unsigned(json::number_unsigned_t n) override { return add(n); }
  bool number_float(json::number_float_t n, const json::string_t& text) override {
    if (words_are_numbers) {
      if (text == number_for_nan) n = std::numeric_limits<double>::quiet_NaN();
      else if (text.ends_with(number_for_infinity)) n = (text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    }
    return add(n);
  }
  bool string(json::string_t& s) override { return add(std::move(s)); }
  bool binary(json::binary_t&) override { return false; }  // cannot occur in text
  bool start_object(std::size_t) override { return down(json::object()); }
  bool start_array(std::size_t) override { return down(json::array()); }
  bool end_object() override { return up(); }
  bool end_array() override { return up(); }
  bool key(json::string_t& name) override {
    if (open_.back().keys.insert(name).second) {
      key_ = std::move(name);
      return true;
    }
    wrong = "the key " + in_quotes(name) + " is given twice; give it once";
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

  // Stand for Python's words. Nobody writes such numbers, which are zero.
  static constexpr std::string_view number_for_nan = "0.00e-7770", number_for_infinity = "0.00e-7771";

  json whole;
  bool words_are_numbers = false;
  std::string wrong;  // what is wrong; "": not JSON

 private:
  // A list or an object that is still open. Its children may move when it grows, but they are closed then.
  struct level {
    json* value;
    std::unordered_set<std::string> keys = {};
  };

  json* put(json value) {
    if (open_.empty()) {
      whole = std::move(value);
      return &whole;
    }
    json& around = *open_.back().value;
    if (around.is_array()) {
      around.push_back(std::move(value));
      return &around.back();
    }
    auto& members = static_cast<json::object_t::Container&>(around.get_ref<json::object_t&>());
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  bool add(json value) {
    put(std::move(value));
    return true;
  }
  bool down(json value) {
    if (open_.size() == deepest_json) {
      wrong = "more than " + std::to_string(deepest_json) + " nested lists and objects";
      return false;
    }
    open_.push_back({put(std::move(value))});
    return true;
  }
  bool up() {
    open_.pop_back();
    return true;
  }

  std::vector<level> open_;
  std::string key_;
};

// The words NaN and Infinity outside of strings as numbers: the JSON library has no such words.
std::string without_words(std::string_view text) {
  std::string out;
  bool quoted = false;
  char before = ' ';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) out += text[i++];
    else if (c == '"') quoted = !quoted;
    const bool begins = !quoted && std::string_view(" \t\r\n[,:").find(before) != std::string_view::npos;
    std::string_view word, number;
    if (begins && text.substr(i).starts_with("NaN")) word = "NaN", number = builder::number_for_nan;
    if ((begins || before == '-') && !quoted && text.substr(i).starts_with("Infinity"))
      word = "Infinity", number = builder::number_for_infinity;
    if (word.empty()) out += before = text[i++];
    else out += number, i += word.size(), before = '0';
  }
  return out;
}

nlohmann::ordered_json build(std::string_view text, errc code, const std::string& what, bool words_are_numbers) {
  builder b;
  b.words_are_numbers = words_are_numbers;
  if (!json::sax_parse(text, &b))
    throw error(code, what + (b.wrong.empty() ? " is not valid JSON: " + in_quotes(text) : ": " + b.wrong));
  return std::move(b.whole);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 80;
  return '"' + std::string(text.substr(0, most)) + (text.size() > most ? "...\"" : "\"");
}

json parse_json(std::string_view text, errc code, const std::string& what) { return build(text, code, what, false); }

json parse_python_json(std::string_view text, errc code, const std::string& what) {
  if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos)
    return parse_json(text, code, what);
  return build(without_words(text), code, what, true);
}

}  // namespace zarrbits::detail
