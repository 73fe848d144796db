// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/netcdf3_metadata.hpp"

#include "metadata/array_metadata.hpp"
#include "metadata/missing_value.hpp"
#include "metadata/named_configuration.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::zarr {

namespace {

using io::netcdf3_type;

std::string_view type_name(netcdf3_type type) {
  switch (type) {
    case netcdf3_type::int8: return "int8";
    case netcdf3_type::int16: return "int16";
    case netcdf3_type::int32: return "int32";
    case netcdf3_type::float32: return "float32";
    case netcdf3_type::float64: return "float64";
    case netcdf3_type::uint8: return "uint8";
    case netcdf3_type::uint16: return "uint16";
    case netcdf3_type::uint32: return "uint32";
    case netcdf3_type::int64: return "int64";
    case netcdf3_type::uint64: return "uint64";
    case netcdf3_type::character: break;
  }
  return "string";
}

bool is_signed(netcdf3_type type) {
  return type == netcdf3_type::int8 || type == netcdf3_type::int16 || type == netcdf3_type::int32 || type == netcdf3_type::int64;
}
bool is_float(netcdf3_type type) { return type == netcdf3_type::float32 || type == netcdf3_type::float64; }

std::uint64_t bits_of(std::string_view big_endian) {
  std::uint64_t bits = 0;
  for (const char byte : big_endian) bits = bits << 8 | static_cast<unsigned char>(byte);
  return bits;
}

double real_of(std::uint64_t bits, netcdf3_type type) {
  return type == netcdf3_type::float64 ? std::bit_cast<double>(bits)
                                       : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

// A number as Zarr has it in a fill value: "NaN", "Infinity", "-Infinity", or the bits of another NaN.
text::json number_json(std::string_view big_endian, netcdf3_type type) {
  const std::uint64_t bits = bits_of(big_endian);
  if (is_float(type)) {
    const double v = real_of(bits, type);
    if (std::isfinite(v)) return v;
    if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
    const bool is_usual = bits == (type == netcdf3_type::float64 ? 0x7FF8000000000000 : 0x7FC00000);
    if (is_usual) return "NaN";
    char hex[24];
    std::snprintf(hex, sizeof hex, "0x%0*llx", static_cast<int>(2 * big_endian.size()), static_cast<unsigned long long>(bits));
    return hex;
  }
  if (!is_signed(type)) return bits;
  const unsigned shift = static_cast<unsigned>(64 - 8 * big_endian.size());
  const auto value = static_cast<std::int64_t>(bits << shift) >> shift;
  return value >= 0 ? text::json(static_cast<std::uint64_t>(value)) : text::json(value);
}

text::json string_type(std::uint64_t length) {
  return {{"class", "string"}, {"length", std::max<std::uint64_t>(length, 1)}, {"padding", "null"}};
}

text::json data_type_of(netcdf3_type type) {
  if (type == netcdf3_type::character) return metadata::sized_type("null_terminated_bytes", 1);
  return std::string(type_name(type));
}

text::json text_or_base64(std::string_view bytes) {
  if (text::is_utf8(bytes)) return std::string(bytes);
  return {{"base64", text::base64(bytes)}};
}

// Among the notes on the values of attributes: netCDF's number of a dimension, by which `export` keeps their order.
constexpr const char* dimension_id = "_Netcdf4Dimid";

// Attributes as JSON, with notes on what their form does not show: see hdf5/attributes.hpp.
class attribute_object {
 public:
  explicit attribute_object(std::uint64_t memory) : memory_(memory), remaining_(memory) {}

  // `array`: the variable that has the attribute; null for a global one.
  void add(const io::netcdf3_attribute& a, const io::netcdf3_variable* array) {
    constexpr std::uint64_t bytes_of_a_number = 96, bytes_of_a_character = 6;
    const bool is_text = a.type == netcdf3_type::character;
    take(500 + (is_text ? bytes_of_a_character : bytes_of_a_number) * a.count);
    std::string key = text::escape_name(a.name);
    while (used_keys_.contains(key) || key == text::annotation_key || key == text::hidden_annotation_key) key += "_";
    used_keys_.insert(key);
    if (array && a.name == "_FillValue") return add_fill(key, a, *array);
    // xarray does not accept these as attributes of an array
    const bool is_hidden = array && (a.name == "CLASS" || a.name == "NAME");
    text::json plain, visible;
    bool is_lossless = !is_hidden;
    if (is_text) {
      std::string text = a.bytes;
      std::erase(text, '\0');
      visible = text::replace_invalid_utf8(text);
      const std::string_view trimmed(a.bytes.data(), a.bytes.find_last_not_of('\0') + 1);
      plain = text_or_base64(trimmed);
      is_lossless = is_lossless && plain == visible;
      if (visible.get_ref<const std::string&>().size() != a.count || is_hidden) types_.add(key, string_type(a.count));
    } else {
      plain = visible = text::json::array();
      for (std::uint64_t i = 0; i < a.count; ++i) add_number(a, i, plain, visible, is_lossless);
      if (a.count == 1) visible = text::json(visible[0]);
      if (a.count == 0) {
        plain = nullptr;
        is_lossless = false;
      }
      note_type(key, a);
    }
    if (!is_lossless) plain_.add(key, std::move(plain));
    if (!is_hidden) visible_.add(key, std::move(visible));
  }

  void note_value(const std::string& key, text::json value) { plain_.add(key, std::move(value)); }

  // The attributes, with `notes` and those on their types and values under annotation_key.
  text::json take_all(text::json notes) {
    text::json result = visible_.take(), all_notes = text::json::object();
    if (!types_.empty()) all_notes["attribute_types"] = types_.take();
    if (!plain_.empty()) all_notes["attribute_values"] = plain_.take();
    all_notes.update(notes);
    if (!all_notes.empty()) result[text::annotation_key] = std::move(all_notes);
    return result;
  }

 private:
  void take(std::uint64_t bytes) {
    if (bytes > remaining_)
      throw store_error(
          "the attributes of a netCDF-3 file would take more than " + text::format_bytes(memory_) + " as JSON; increase `memory`",
          errc::unsupported);
    remaining_ -= bytes;
  }

  static void add_number(const io::netcdf3_attribute& a, std::uint64_t index, text::json& plain, text::json& visible,
                         bool& is_lossless) {
    const std::size_t size = io::size_of(a.type);
    const std::string_view bytes = std::string_view(a.bytes).substr(static_cast<std::size_t>(index) * size, size);
    text::json value = number_json(bytes, a.type);
    visible.push_back(value.is_string() ? text::json(real_of(bits_of(bytes), a.type)) : value);
    if (value.is_string() && value.get_ref<const std::string&>().starts_with("0x")) is_lossless = false;
    plain.push_back(std::move(value));
  }

  // `export` takes numbers without a note for int64 and float64.
  void note_type(const std::string& key, const io::netcdf3_attribute& a) {
    const bool is_implied = (a.type == netcdf3_type::int64 || a.type == netcdf3_type::float64) && a.count > 0;
    if (!is_implied) types_.add(key, std::string(type_name(a.type)));
  }

  // In the form that xarray reads or, if it has none, in the notes alone.
  void add_fill(const std::string& key, const io::netcdf3_attribute& a, const io::netcdf3_variable& array) {
    if (a.type == netcdf3_type::character) {
      if (a.count != 1 || array.type != a.type || a.bytes == std::string(1, '\0')) types_.add(key, string_type(a.count));
      plain_.add(key, text_or_base64(std::string_view(a.bytes.data(), a.bytes.find_last_not_of('\0') + 1)));
      return;
    }
    text::json plain = text::json::array(), ignored = text::json::array();
    bool is_lossless = a.type == array.type;
    for (std::uint64_t i = 0; i < a.count; ++i) add_number(a, i, plain, ignored, is_lossless);
    text::json form = a.count == 1 ? missing_value(array, plain[0]) : text::json(nullptr);
    if (form.is_null()) is_lossless = false;
    else visible_.add(key, std::move(form));
    if (!is_lossless || !is_float(a.type)) note_type(key, a);
    if (!is_lossless) plain_.add(key, a.count == 0 ? text::json(nullptr) : std::move(plain));
  }

  static text::json missing_value(const io::netcdf3_variable& array, text::json value) {
    if (value.is_string() && !is_float(array.type)) return nullptr;
    if (value.is_string() && value.get_ref<const std::string&>().starts_with("0x")) value = "NaN";
    return metadata::missing_value_of(data_type_of(array.type), value);
  }

  std::uint64_t memory_, remaining_;
  std::set<std::string> used_keys_;
  text::object_builder visible_, types_, plain_;
};

text::json fill_value_of(const io::netcdf3_variable& variable) {
  const std::string bytes = io::fill_value(variable);
  return variable.type == netcdf3_type::character ? text::json(text::base64(bytes)) : number_json(bytes, variable.type);
}

}  // namespace

std::vector<std::string> netcdf3_node_names(const io::netcdf3_header& header) {
  std::vector<std::string_view> names;
  for (const io::netcdf3_variable& v : header.variables) names.push_back(v.name);
  std::vector<std::string> nodes = text::node_names(names);
  for (std::size_t i = 0; i < names.size(); ++i) nodes[i] = text::with_reserved_prefix(names[i], std::move(nodes[i]));
  return nodes;
}

std::string netcdf3_group_text(const io::netcdf3_header& header, const std::vector<std::string>& node_names,
                               std::uint64_t memory) {
  attribute_object attributes(memory);
  for (const io::netcdf3_attribute& a : header.attributes) attributes.add(a, nullptr);
  text::json notes = {{"convention", "netcdf"}};
  std::set<std::string_view> with_variable;
  for (const io::netcdf3_variable& v : header.variables) {
    if (!v.dimensions.empty() && header.dimensions[v.dimensions[0]].name == v.name) with_variable.insert(v.name);
  }
  text::object_builder without_variable;
  for (std::size_t i = 0; i < header.dimensions.size(); ++i) {
    const io::netcdf3_dimension& d = header.dimensions[i];
    if (with_variable.contains(d.name)) continue;
    text::json note = {{"length", d.length}};
    if (d.is_record) note["unlimited"] = true;
    note["attributes"][text::annotation_key]["attribute_values"][dimension_id] = i;
    without_variable.add(text::escape_name(d.name), std::move(note));
  }
  if (!without_variable.empty()) notes["dimensions"] = without_variable.take();
  std::set<std::string_view> dimensions;
  for (const io::netcdf3_dimension& d : header.dimensions) dimensions.insert(d.name);
  text::json order = text::json::array();
  text::object_builder names;
  bool is_sorted = true;
  for (std::size_t i = 0; i < node_names.size(); ++i) {
    const std::string& name = header.variables[i].name;
    if (i > 0 && name < header.variables[i - 1].name) is_sorted = false;
    // as netCDF-C calls a variable in HDF5 that has the name of a dimension, and not its values
    const bool hides_dimension = dimensions.contains(name) && !with_variable.contains(name);
    const std::string link = hides_dimension ? "_nc4_non_coord_" + name : name;
    order.push_back(text::escape_name(link));
    if (node_names[i] != link) names.add(node_names[i], text_or_base64(link));
  }
  if (!is_sorted) notes["order"] = std::move(order);
  if (!names.empty()) notes["names"] = names.take();
  return metadata::group_text(attributes.take_all(std::move(notes)), true);
}

std::string netcdf3_array_text(const io::netcdf3_header& header, const io::netcdf3_variable& variable,
                               const std::vector<std::uint64_t>& chunk_shape, std::uint64_t memory) {
  metadata::array_metadata m;
  m.shape = variable.shape;
  m.chunk = chunk_shape;
  m.data_type = data_type_of(variable.type);
  m.fill_value = fill_value_of(variable);
  m.codecs = metadata::bytes_codecs(io::size_of(variable.type) > 1, true);
  m.keys = netcdf3_keys;
  for (const std::size_t d : variable.dimensions) m.dimension_names.push_back(text::escape_name(header.dimensions[d].name));
  attribute_object attributes(memory);
  for (const io::netcdf3_attribute& a : variable.attributes) attributes.add(a, &variable);
  if (!variable.dimensions.empty() && header.dimensions[variable.dimensions[0]].name == variable.name)
    attributes.note_value(dimension_id, variable.dimensions[0]);
  text::json notes = text::json::object();
  if (variable.type == netcdf3_type::character) notes["hdf5_type"] = string_type(1);
  if (variable.is_record) {
    notes["maxshape"] = variable.shape;
    notes["maxshape"][0] = nullptr;
  }
  m.attributes = attributes.take_all(std::move(notes));
  return metadata::array_text(m, true);
}

}  // namespace zarrbits::zarr
