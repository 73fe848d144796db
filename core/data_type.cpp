// SPDX-License-Identifier: BSL-1.0
#include "core/data_type.hpp"

#include "core/json.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace zarrbits {

namespace {

using detail::data_type_info;
using detail::in_quotes;
using detail::type_kind;
using json_value = nlohmann::ordered_json;

struct number {
  const char* name;
  unsigned bits;
  unsigned size;  // bytes in memory
  bool is_signed;
};

// Integers, bool, and the component types of complex numbers.
constexpr number numbers[] = {
    {"bool", 1, 1, false},    {"int2", 2, 1, true},     {"int4", 4, 1, true},     {"int8", 8, 1, true},   {"int16", 16, 2, true},
    {"int32", 32, 4, true},   {"int64", 64, 8, true},   {"uint2", 2, 1, false},   {"uint4", 4, 1, false}, {"uint8", 8, 1, false},
    {"uint16", 16, 2, false}, {"uint32", 32, 4, false}, {"uint64", 64, 8, false},
};

constexpr number floats[] = {
    {"float4_e2m1fn", 4, 1, false},   {"float6_e2m3fn", 6, 1, false}, {"float6_e3m2fn", 6, 1, false},
    {"float8_e3m4", 8, 1, false},     {"float8_e4m3", 8, 1, false},   {"float8_e4m3b11fnuz", 8, 1, false},
    {"float8_e4m3fnuz", 8, 1, false}, {"float8_e5m2", 8, 1, false},   {"float8_e5m2fnuz", 8, 1, false},
    {"float8_e8m0fnu", 8, 1, false},  {"bfloat16", 16, 2, false},     {"float16", 16, 2, false},
    {"float32", 32, 4, false},        {"float64", 64, 8, false},
};

// Larger sizes cannot be intended: a name like r99999999999 is refused before anything is computed with it.
constexpr std::uint64_t largest_element = std::uint64_t{1} << 31;

[[noreturn]] void refuse(const std::string& message) { throw error(errc::invalid_data_type, message); }

data_type_info number_info(const number& n, unsigned components) {
  data_type_info i;
  i.bits = n.bits;
  i.size = n.size;
  i.is_signed = n.is_signed;
  i.is_bool = n.bits == 1;
  i.components = components;
  i.element_size = std::size_t{n.size} * components;
  return i;
}

data_type_info opaque_info(type_kind kind, std::uint64_t bytes) {
  data_type_info i;
  i.kind = kind;
  i.components = 0;
  i.bits = i.size = 0;
  i.element_size = static_cast<std::size_t>(bytes);
  return i;
}

std::optional<data_type_info> by_name(const std::string& name) {
  for (const number& n : numbers)
    if (name == n.name) return number_info(n, 1);
  for (const number& n : floats) {
    if (name == n.name) return number_info(n, 1);
    if (name == std::string("complex_") + n.name) return number_info(n, 2);
  }
  if (name == "complex64") return number_info({"", 32, 4, false}, 2);
  if (name == "complex128") return number_info({"", 64, 8, false}, 2);
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") return number_info({"", 64, 8, true}, 1);
  if (name.size() >= 2 && name[0] == 'r' && name.find_first_not_of("0123456789", 1) == std::string::npos) {
    if (name.size() > 12 || std::stoull(name.substr(1)) / 8 > largest_element)
      refuse("data type " + in_quotes(name) + " is too large; elements take at most 2 GiB, which is r" +
             std::to_string(8 * largest_element));
    const std::uint64_t bits = std::stoull(name.substr(1));
    if (bits == 0 || bits % 8 != 0)
      refuse("data type " + in_quotes(name) + ": the number of bits must be a multiple of 8, from 8 on (r8, r16, r24, ...)");
    return opaque_info(type_kind::raw, bits / 8);
  }
  return {};
}

std::uint64_t length_bytes(const std::string& name, const json_value& configuration, std::uint64_t unit) {
  const auto it = configuration.find("length_bytes");
  const bool ok = it != configuration.end() && it->is_number_unsigned() && it->get<std::uint64_t>() > 0 &&
                  it->get<std::uint64_t>() % unit == 0 && it->get<std::uint64_t>() <= largest_element;
  if (!ok)
    refuse("data type " + name + ": \"configuration\" needs \"length_bytes\", a positive " +
           (unit == 1 ? std::string("integer") : "multiple of " + std::to_string(unit)));
  return it->get<std::uint64_t>();
}

// The time unit of numpy.datetime64 and numpy.timedelta64. It does not affect any bit.
void set_time(data_type_info& i, const std::string& name, const json_value& configuration) {
  constexpr std::string_view units[] = {"Y",  "M",       "W",  "D",  "h",  "m",  "s",      "ms",
                                        "us", "\u03bcs", "ns", "ps", "fs", "as", "generic"};
  const auto unit = configuration.find("unit"), scale = configuration.find("scale_factor");
  if (unit == configuration.end() || !unit->is_string() ||
      std::find(std::begin(units), std::end(units), unit->get<std::string>()) == std::end(units))
    refuse("data type " + name +
           ": \"configuration\" needs \"unit\", one of Y, M, W, D, h, m, s, ms, us, ns, ps, fs, as and generic");
  if (scale == configuration.end() || !scale->is_number_unsigned() || scale->get<std::uint64_t>() == 0 ||
      scale->get<std::uint64_t>() > 2147483647)
    refuse("data type " + name + ": \"configuration\" needs \"scale_factor\", an integer from 1 to 2147483647");
  for (const auto& [key, value] : configuration.items())
    if (key != "unit" && key != "scale_factor")
      refuse("data type " + name + ": unknown configuration key " + in_quotes(key) +
             "; the keys are \"unit\" and \"scale_factor\"");
  i.unit = unit->get<std::string>();
  if (i.unit == "\u03bcs") i.unit = "us";  // numpy treats both as equal
  i.scale_factor = scale->get<std::uint64_t>();
}

std::string family_of(const std::string& name, type_kind kind) {
  if (name == "complex_float32") return "complex64";
  if (name == "complex_float64") return "complex128";
  if (name == "structured") return "struct";
  return kind == type_kind::raw && name[0] == 'r' && name != "raw_bytes" ? "r" : name;
}

// The last step of parse(): sets the name and the text as given.
std::shared_ptr<const data_type_info> named(data_type_info i, const std::string& name, const json_value& j) {
  i.family = family_of(name, i.kind);
  i.name = name;
  i.json = j.dump();
  return std::make_shared<const data_type_info>(std::move(i));
}

data_type_info struct_info(const std::string& name, const json_value& configuration);

std::shared_ptr<const data_type_info> parse(const json_value& j) {
  data_type_info i;
  if (j.is_string()) {
    const auto name = j.get<std::string>();
    auto match = by_name(name);
    if (!match) {
      if (name == "string" || name == "bytes" || name == "variable_length_bytes")
        refuse("data type " + in_quotes(name) + ": its elements have no fixed size, and zarrbits' codecs need one");
      if (name == "raw_bytes" || name == "null_terminated_bytes" || name == "fixed_length_utf32" || name == "struct" ||
          name == "structured")
        refuse("data type " + in_quotes(name) + " needs a configuration; use its JSON object");
      refuse("data type " + in_quotes(name) +
             " does not exist; use a Zarr name such as bool, uint16, int4, float32 or complex64");
    }
    return named(std::move(*match), name, j);
  }
  if (!j.is_object())
    refuse("data type " + in_quotes(j.dump(-1, ' ', false, json_value::error_handler_t::replace)) +
           " is neither a name nor an object");
  const auto name_it = j.find("name");
  if (name_it == j.end() || !name_it->is_string()) refuse("a data type given as an object needs \"name\", a string");
  const auto name = name_it->get<std::string>();
  for (const auto& [key, value] : j.items())
    if (key != "name" && key != "configuration" && key != "must_understand")
      refuse("data type " + in_quotes(name) + ": unknown key " + in_quotes(key) +
             "; the keys are \"name\" and \"configuration\"");
  json_value configuration = json_value::object();
  if (const auto it = j.find("configuration"); it != j.end() && !it->is_null()) configuration = *it;
  if (!configuration.is_object()) refuse("data type " + in_quotes(name) + ": \"configuration\" must be an object");

  if (name == "raw_bytes" || name == "null_terminated_bytes") {
    i = opaque_info(type_kind::raw, length_bytes(name, configuration, 1));
  } else if (name == "fixed_length_utf32") {
    i = opaque_info(type_kind::text32, length_bytes(name, configuration, 4));
  } else if (name == "struct" || name == "structured") {
    i = struct_info(name, configuration);
  } else {
    auto match = by_name(name);
    if (!match) return parse(json_value(name));  // for the sentence
    if (name.rfind("numpy.", 0) == 0) {
      if (!configuration.empty()) set_time(*match, name, configuration);
    } else if (!configuration.empty()) {
      refuse("data type " + in_quotes(name) + " takes no configuration");
    }
    i = std::move(*match);
  }
  return named(std::move(i), name, j);
}

// A field's name and data type. "structured", the older name, has pairs of them.
std::pair<json_value, json_value> field_of(const std::string& kind, const json_value& f) {
  if (kind == "structured" && f.is_array() && f.size() == 2 && f[0].is_string()) return {f[0], f[1]};
  if (f.is_object() && f.contains("name") && f["name"].is_string() && f.contains("data_type")) return {f["name"], f["data_type"]};
  refuse("data type " + in_quotes(kind) + ": each field is " +
         (kind == "structured" ? "a pair of its name, a string, and its data type"
                               : "an object with \"name\", a string, and \"data_type\""));
}

// How deep structs nest is bounded by how deep JSON does.
data_type_info struct_info(const std::string& kind, const json_value& configuration) {
  const auto fields = configuration.find("fields");
  if (fields == configuration.end() || !fields->is_array() || fields->empty())
    refuse("data type " + in_quotes(kind) + ": \"configuration\" needs \"fields\", a list of " +
           (kind == "structured" ? "[name, data type]" : "{\"name\", \"data_type\"}"));
  data_type_info i = opaque_info(type_kind::fields, 0);
  std::uint64_t size = 0;
  std::set<std::string> names;
  for (const json_value& f : *fields) {
    const auto [field, field_type] = field_of(kind, f);
    const auto name = field.get<std::string>();
    if (!names.insert(name).second)
      refuse("data type " + in_quotes(kind) + ": two fields have the name " + in_quotes(name) + "; rename one of them");
    const data_type type(field_type.dump());
    size += type.element_size();
    if (size > largest_element) refuse("data type " + in_quotes(kind) + ": larger than 2 GiB");
    i.fields.push_back(type);
    i.field_names.push_back(name);
  }
  i.element_size = static_cast<std::size_t>(size);
  return i;
}

}  // namespace

data_type::data_type(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && (text[first] == '{' || text[first] == '"' || text[first] == '[');
  json_value j = std::string(text);
  if (is_json) {
    j = detail::parse_json(text, errc::invalid_data_type, "the data type");
  } else if (text.empty()) {
    refuse("the data type is empty; use a Zarr name such as uint16");
  }
  try {
    info_ = parse(j);
  } catch (const json_value::exception&) {  // a name that is not UTF-8
    refuse("data type: the text is not valid UTF-8");
  }
}

const std::string& data_type::name() const noexcept { return info_->name; }
const std::string& data_type::json() const noexcept { return info_->json; }
std::size_t data_type::element_size() const noexcept { return info_->element_size; }
unsigned data_type::components() const noexcept { return info_->components; }
unsigned data_type::component_bits() const noexcept { return info_->bits; }
unsigned data_type::component_size() const noexcept { return info_->size; }
bool data_type::is_signed() const noexcept { return info_->is_signed; }
bool data_type::is_bool() const noexcept { return info_->is_bool; }

bool operator==(const data_type& a, const data_type& b) noexcept {
  const data_type_info &x = detail::access::info(a), &y = detail::access::info(b);
  return &x == &y || (x.family == y.family && x.element_size == y.element_size && x.unit == y.unit &&
                      x.scale_factor == y.scale_factor && x.field_names == y.field_names && x.fields == y.fields);
}

bool data_type::has_byte_order() const noexcept {
  switch (info_->kind) {
    case type_kind::number: return info_->size > 1;
    case type_kind::raw: return false;
    case type_kind::text32: return true;
    case type_kind::fields: break;
  }
  for (const data_type& f : info_->fields)
    if (f.has_byte_order()) return true;
  return false;
}

}  // namespace zarrbits
