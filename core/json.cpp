// SPDX-License-Identifier: BSL-1.0
#include "core/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace zarrbits::detail {

namespace {

using json = nlohmann::ordered_json;

// What the text has that the JSON library does not take. A number or a string keeps its place in the text.
struct json_extensions {
  std::vector<std::string> large;       // numbers beyond float64, in their order
  std::vector<std::size_t> surrogates;  // which strings, counted from 0 with keys, have half of a surrogate pair
};

// Stand for Python's words, and for the numbers in json_extensions::large. Nobody writes such numbers, which are zero.
constexpr std::string_view number_for_nan = "0.00e-7770", number_for_infinity = "0.00e-7771", exponent_of_large = "e-7772";

constexpr std::size_t max_remarks = 1000;

// Builds the value. The JSON library's own builder searches all members of an object for each new one, and accepts repeated keys.
class builder final : public nlohmann::json_sax<json> {
 public:
  // `extensions`: null for JSON in the strict sense. `remarks`: null if repeated keys are wrong.
  builder(const json_extensions* extensions, std::vector<attribute_remark>* remarks, bool attributes_alone)
      : extensions_(extensions), remarks_(remarks), above_attributes_(attributes_alone ? 1 : 2) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool b) override { return add(b); }
  bool number_integer(json::number_integer_t n) override { return add(n); }
  bool number_unsigned(json::number_unsigned_t n) override { return add(n); }
  bool number_float(json::number_float_t n, const json::string_t& text) override {
    if (!extensions_) return add(n);
    if (text == number_for_nan) return add(std::numeric_limits<double>::quiet_NaN());
    if (text.ends_with(number_for_infinity)) return add((text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity());
    if (text.ends_with(exponent_of_large) && large_ < extensions_->large.size())
      return add(as_text(extensions_->large[large_++]));
    return add(text.find_first_of(".eE") == text.npos ? as_text(text) : json(n));
  }
  bool string(json::string_t& s) override {
    const bool complete = is_complete();
    if (!complete && !in_attributes()) return fail("a text has half of a surrogate pair, which is not a character");
    if (!complete && !drop_attribute(attribute_)) return false;
    return add(std::move(s));
  }
  bool binary(json::binary_t&) override { return false; }  // cannot occur in text
  bool start_object(std::size_t) override { return down(json::object()); }
  bool start_array(std::size_t) override { return down(json::array()); }
  bool end_object() override { return up(); }
  bool end_array() override { return up(); }
  bool key(json::string_t& name) override {
    const bool complete = is_complete();
    if (open_.size() == 1) {
      in_copies_ = above_attributes_ == 2 && name == "consolidated_metadata";
      in_attributes_ = above_attributes_ == 1 || in_copies_ || name == "attributes";
    }
    const bool lenient = in_attributes();
    if (!complete && !lenient) return fail("a key has half of a surrogate pair, which is not a character");
    if (open_.size() == above_attributes_) attribute_ = name;
    if (!complete && !drop_attribute(attribute_)) return false;
    if (!open_.back().keys.insert(name).second) {
      if (!lenient) return fail("the key " + in_quotes(name) + " is given twice; remove one");
      if (!remark({attribute_, false, reason_code::damaged,
                   "the key " + in_quotes(name) + " is given twice; its last value is kept"}))
        return false;
      open_.back().value->erase(name);
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

  json root;
  std::string wrong;  // the error; "": not JSON

 private:
  // A list or an object that is still open. Its children may move when it grows, but they are closed then.
  struct level {
    json* value;
    std::unordered_set<std::string> keys = {};
  };

  static json as_text(const std::string& number) { return json::binary({number.begin(), number.end()}); }

  bool fail(std::string reason) {
    wrong = std::move(reason);
    return false;
  }
  // Whether the current string has everything that the text has.
  bool is_complete() {
    const std::size_t number = strings_++;
    return !extensions_ || !std::binary_search(extensions_->surrogates.begin(), extensions_->surrogates.end(), number);
  }
  bool in_attributes() const { return remarks_ && in_attributes_ && open_.size() >= above_attributes_; }
  bool remark(attribute_remark note) {
    if (++remark_count_ > max_remarks) return fail("more than " + std::to_string(max_remarks) + " repeated keys");
    if (!in_copies_) remarks_->push_back(std::move(note));
    return true;
  }
  bool drop_attribute(const std::string& attribute) {
    return remark({attribute, true, reason_code::unsupported_type, "it has half of a surrogate pair, which is not a character"});
  }

  json* put(json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
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
    if (open_.size() == deepest_json) return fail("more than " + std::to_string(deepest_json) + " nested lists and objects");
    open_.push_back({put(std::move(value))});
    return true;
  }
  bool up() {
    open_.pop_back();
    return true;
  }

  const json_extensions* extensions_;
  std::vector<attribute_remark>* remarks_;
  const std::size_t above_attributes_;  // objects that are open where the names of attributes are
  std::vector<level> open_;
  std::string key_, attribute_;
  bool in_attributes_ = false, in_copies_ = false;
  std::size_t strings_ = 0, large_ = 0, remark_count_ = 0;
};

// The number at the front, as far as its characters go.
std::string_view number_at(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789+-.eE"), text.size()));
}

// Beyond the largest float64; one that is too small is 0.
bool is_beyond_float64(std::string_view number) {
  double value = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (failed != std::errc::result_out_of_range || end != number.data() + number.size()) return false;
  const std::size_t first = number.find_first_of("123456789"), point = std::min(number.find_first_of(".eE"), number.size()),
                    e = number.find_first_of("eE");
  long exponent = 0;
  if (e != number.npos) {
    const std::string_view digits = number.substr(e + (number[e + 1] == '+' ? 2 : 1));
    const auto [stop, too_long] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (too_long != std::errc()) return digits[0] != '-';
  }
  return static_cast<long>(point) - static_cast<long>(first) + exponent > 0;
}

// Four hexadecimal digits of an escape \uXXXX at the front; -1 if absent.
int code_of_escape(std::string_view text) {
  unsigned code = 0;
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  const auto [end, failed] = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  return failed == std::errc() && end == text.data() + 6 ? static_cast<int>(code) : -1;
}

// What the JSON library takes in place of what it does not take.
std::string replace_extensions(std::string_view text, json_extensions& extensions) {
  std::string out;
  bool quoted = false;
  char previous = ' ';
  std::size_t strings = 0;
  const auto half = [&] {
    if (extensions.surrogates.empty() || extensions.surrogates.back() != strings) extensions.surrogates.push_back(strings);
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (quoted) {
      const int code = code_of_escape(rest);
      const bool high = code >= 0xD800 && code < 0xDC00, low = code >= 0xDC00 && code < 0xE000;
      const int next = high ? code_of_escape(rest.substr(6)) : -1;
      std::size_t n = rest[0] == '\\' ? 2 : 1;
      if (high && next >= 0xDC00 && next < 0xE000) n = 12;
      if (low || (high && n != 12)) {
        half();
        out += "\\uFFFD";
        i += 6;
        continue;
      }
      if (rest[0] == '"') quoted = false, previous = '"', ++strings;
      out += rest.substr(0, n);
      i += std::min(n, rest.size());
      continue;
    }
    const bool begins = std::string_view(" \t\r\n[,:").find(previous) != std::string_view::npos;
    if (begins && rest.starts_with("NaN")) {
      out += number_for_nan;
      i += 3;
      previous = '0';
    } else if ((begins || previous == '-') && rest.starts_with("Infinity")) {
      out += number_for_infinity;
      i += 8;
      previous = '0';
    } else if (const std::string_view number = begins ? number_at(rest) : ""; number.size() > 1 && is_beyond_float64(number)) {
      extensions.large.emplace_back(number);
      out += number.substr(0, number.find_first_of("eE"));
      out += exponent_of_large;
      i += number.size();
      previous = '0';
    } else {
      quoted = rest[0] == '"';
      out += previous = rest[0];
      ++i;
    }
  }
  return out;
}

struct read_options {
  bool as_python = false;
  std::vector<attribute_remark>* remarks = nullptr;
  bool attributes_alone = false;
};

// Takes the attributes out that remarks are about.
void drop_attributes(json& root, const read_options& options) {
  if (!options.remarks || !root.is_object()) return;
  json* const attributes = options.attributes_alone ? &root : root.contains("attributes") ? &root["attributes"] : nullptr;
  if (!attributes || !attributes->is_object()) return;
  for (const attribute_remark& r : *options.remarks) {
    if (r.left_out) attributes->erase(r.attribute);
  }
}

nlohmann::ordered_json build(std::string_view text, errc code, const std::string& subject, const read_options& options) {
  const auto parsed = [&](std::string_view source, const json_extensions* extensions, std::string& wrong) -> std::optional<json> {
    if (options.remarks) options.remarks->clear();
    builder b(extensions, options.remarks, options.attributes_alone);
    if (json::sax_parse(source, &b)) return std::move(b.root);
    wrong = std::move(b.wrong);
    return {};
  };
  std::string wrong;
  json_extensions extensions;
  auto root = parsed(text, options.as_python ? &extensions : nullptr, wrong);
  if (!root && wrong.empty() && options.as_python) {
    const std::string plain = replace_extensions(text, extensions);
    root = parsed(plain, &extensions, wrong);
  }
  if (!root) throw error(code, subject + (wrong.empty() ? " is not valid JSON: " + in_quotes(text) : ": " + wrong));
  drop_attributes(*root, options);
  return std::move(*root);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t max_size = 80;
  return '"' + std::string(text.substr(0, max_size)) + (text.size() > max_size ? "...\"" : "\"");
}

json parse_json(std::string_view text, errc code, const std::string& subject) { return build(text, code, subject, {}); }

json parse_python_json(std::string_view text, errc code, const std::string& subject) {
  return build(text, code, subject, {.as_python = true});
}

json parse_node_json(std::string_view text, bool attributes_alone, errc code, const std::string& subject,
                     std::vector<attribute_remark>& remarks) {
  return build(text, code, subject, {.as_python = true, .remarks = &remarks, .attributes_alone = attributes_alone});
}

}  // namespace zarrbits::detail
