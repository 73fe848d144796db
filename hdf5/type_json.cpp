// SPDX-License-Identifier: BSL-1.0
#include "hdf5/type_json.hpp"

#include "metadata/named_configuration.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <zarrbits/data_type.hpp>
#include <zarrbits/error.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace zarrbits::hdf5 {

text::json zarr_data_type(const type_description& t, bool inside) {
  const auto bits = std::to_string(8 * t.size);
  switch (t.kind) {
    case type_class::boolean: return "bool";
    case type_class::integer:
    case type_class::enumeration: return (t.is_signed ? "int" : "uint") + bits;
    case type_class::floating: return "float" + bits;
    case type_class::complex: return "complex" + bits;
    case type_class::text:
      if (!inside || t.variable) return nullptr;
      return metadata::sized_type("null_terminated_bytes", t.size);
    case type_class::opaque: return inside ? metadata::sized_type("raw_bytes", t.size) : text::json(nullptr);
    case type_class::array:
      // Zarr's struct has no array fields; their bytes are kept, and the attributes describe their type
      return inside && !holds_references(t) ? metadata::sized_type("raw_bytes", t.size) : text::json(nullptr);
    case type_class::compound: {
      if (t.parts.empty() || !t.memory) return nullptr;
      std::vector<std::pair<std::string, text::json>> fields;
      for (const type_description& m : t.parts) {
        text::json type = zarr_data_type(m, true);
        if (type.is_null() || !text::is_utf8(m.name)) return nullptr;
        fields.emplace_back(m.name, std::move(type));
      }
      return metadata::struct_type(fields);
    }
    default: return nullptr;
  }
}

text::json numpy_time(const type_description& t) {
  std::string_view rest = t.stored;
  constexpr std::string_view prefix = "NUMPY:<";
  if (t.kind != type_class::opaque || t.size != 8 || !rest.starts_with(prefix)) return nullptr;
  rest.remove_prefix(prefix.size());
  const bool point = rest.starts_with("M8["), span = rest.starts_with("m8[");
  if ((!point && !span) || !rest.ends_with("]")) return nullptr;
  rest = rest.substr(3, rest.size() - 4);
  unsigned scale = 1;
  if (const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), scale); error == std::errc())
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  text::json type = metadata::to_json(
      {point ? "numpy.datetime64" : "numpy.timedelta64", {{"unit", std::string(rest)}, {"scale_factor", scale}}});
  try {
    (void)data_type(text::json_text(type));
  } catch (const error&) {  // not a unit of numpy
    return nullptr;
  }
  return type;
}

text::json enumeration_members(const type_description& t) {
  text::json members = text::json::object();
  for (const auto& [name, value] : t.names) members[text::escape_name(name)] = value;
  return members;
}

namespace {

text::json compound_description(const type_description& t) {
  text::json fields = text::json::array();
  for (const type_description& m : t.parts) fields.push_back({{"name", text::escape_name(m.name)}, {"type", datatype_json(m)}});
  return {{"class", "compound"}, {"fields", std::move(fields)}};
}

}  // namespace

text::json datatype_json(const type_description& t) {
  switch (t.kind) {
    case type_class::boolean:  // a bit field has no names
      if (is_int8_boolean(t)) return "int8";
      return t.names.empty() ? text::json{{"class", "uint8"}, {"stored", t.stored}} : text::json("bool");
    case type_class::enumeration: {
      text::json d = {{"class", "enum"},
                      {"base", (t.is_signed ? "int" : "uint") + std::to_string(8 * t.size)},
                      {"members", enumeration_members(t)}};
      if (!t.stored.empty()) d["stored"] = t.stored;
      return d;
    }
    case type_class::integer:
    case type_class::floating:
    case type_class::complex: {
      if (!t.parts.empty() && t.parts[0].name != "r") return compound_description(t);
      text::json d = zarr_data_type(t);
      if (t.stored.empty() && !t.big_endian) return d;
      text::json o = {{"class", d}};
      if (t.big_endian) o["endian"] = "big";
      if (!t.stored.empty()) o["stored"] = t.stored;
      return o;
    }
    case type_class::text:
      if (t.variable) return {{"class", "string"}, {"length", "variable"}};
      return {{"class", "string"}, {"length", t.size}, {"padding", t.space_padded ? "space" : "null"}};
    case type_class::opaque: return {{"class", "opaque"}, {"length", t.size}, {"tag", text::escape_name(t.stored)}};
    case type_class::compound: return compound_description(t);
    case type_class::array: return {{"class", "array"}, {"shape", t.dims}, {"base", datatype_json(t.element())}};
    case type_class::sequence: return {{"class", "sequence"}, {"base", datatype_json(t.element())}};
    case type_class::object_reference: return {{"class", "object_reference"}};
    case type_class::region_reference: return {{"class", "region_reference"}};
    case type_class::unsupported: return {{"class", "unsupported"}, {"what", t.reason}};
  }
  return nullptr;
}

std::vector<std::string> member_nodes(const type_description& compound) {
  std::vector<std::string_view> names;
  for (const type_description& m : compound.parts) names.emplace_back(m.name);
  return text::node_names(names);
}

}  // namespace zarrbits::hdf5
