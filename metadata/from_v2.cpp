// SPDX-License-Identifier: BSL-1.0
#include "metadata/from_v2.hpp"

#include "metadata/array_metadata.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/missing_value.hpp"
#include "metadata/named_configuration.hpp"
#include "metadata/node.hpp"
#include "metadata/parse_error.hpp"
#include "text/base64.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace zarrbits::metadata {

using ordered = text::json;  // its members stay in their order

namespace {

using remark_list = std::vector<detail::attribute_remark>;

constexpr unsigned max_struct_depth = 32;

// What has no counterpart keeps its own name, which the reader of v3 refuses: so each reader treats it as it treats other arrays
// that it cannot read.
struct no_v3_type {};

bool is_array_filter_name(std::string_view id) { return is_array_filter(codec_id_of(std::string(numcodecs_prefix).append(id))); }

struct translated_type {
  ordered type;
  std::string order;       // byte order of all numbers; "": none, or irrelevant
  std::uint64_t size = 0;  // bytes of an element; 0: of any length
};

std::uint64_t number_in(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failed != std::errc() || end != text.data() + text.size() || n > (1U << 30)) throw no_v3_type();
  return n;
}

// "[ns]", "[10us]".
ordered time_type(const char* name, std::string_view unit) {
  if (unit.size() < 3 || unit.front() != '[' || unit.back() != ']') throw no_v3_type();
  unit = unit.substr(1, unit.size() - 2);
  const std::size_t digits = std::min(unit.find_first_not_of("0123456789"), unit.size());
  const std::uint64_t scale = digits == 0 ? 1 : number_in(unit.substr(0, digits));
  return to_json({name, {{"unit", std::string(unit.substr(digits))}, {"scale_factor", scale}}});
}

translated_type type_of(const ordered& dtype, unsigned depth = 0);

translated_type struct_of(const ordered& dtype, unsigned depth) {
  translated_type result;
  std::vector<std::pair<std::string, ordered>> fields;
  for (const ordered& f : dtype) {
    if (!f.is_array() || f.size() < 2 || !f[0].is_string()) throw parse_error("a field of \"dtype\" is not [name, type]");
    if (f.size() > 2) throw no_v3_type();  // it is an array
    translated_type one = type_of(f[1], depth + 1);
    const bool other_order = !result.order.empty() && !one.order.empty() && result.order != one.order;
    if (one.size == 0 || other_order) throw no_v3_type();
    if (!one.order.empty()) result.order = one.order;
    result.size += one.size;
    fields.emplace_back(f[0].get<std::string>(), std::move(one.type));
  }
  result.type = struct_type(fields);
  return result;
}

translated_type type_of(const ordered& dtype, unsigned depth) {
  if (depth > max_struct_depth) throw no_v3_type();
  if (dtype.is_array()) return struct_of(dtype, depth);
  if (!dtype.is_string()) throw parse_error("\"dtype\" is neither a data type nor a list of fields");
  const std::string dtype_text = dtype.get<std::string>();
  if (dtype_text.size() < 2 || std::string_view("<>|").find(dtype_text[0]) == std::string_view::npos) throw no_v3_type();
  const std::string order = dtype_text[0] == '>' ? "big" : "little";
  const char kind = dtype_text[1];
  const std::string_view suffix = std::string_view(dtype_text).substr(2);
  if (kind == 'O') return {"string", "", 0};
  if ((kind == 'M' || kind == 'm') && suffix.starts_with('8'))
    return {time_type(kind == 'M' ? "numpy.datetime64" : "numpy.timedelta64", suffix.substr(1)), order, 8};
  const std::uint64_t n = number_in(suffix);
  if (kind == 'b' && n == 1) return {"bool", "", 1};
  if (kind == 'S' && n > 0) return {sized_type("null_terminated_bytes", n), "", n};
  if (kind == 'V' && n > 0) return {sized_type("raw_bytes", n), "", n};
  if (kind == 'U' && n > 0) return {sized_type("fixed_length_utf32", 4 * n), order, 4 * n};
  static constexpr std::array<std::pair<char, std::string_view>, 4> numbers = {
      {{'i', "int"}, {'u', "uint"}, {'f', "float"}, {'c', "complex"}}};
  for (const auto& [letter, name] : numbers) {
    if (kind != letter) continue;
    const bool is_valid = letter == 'c'   ? n == 8 || n == 16
                          : letter == 'f' ? n == 2 || n == 4 || n == 8
                                          : n == 1 || n == 2 || n == 4 || n == 8;
    if (is_valid) return {std::string(name) + std::to_string(8 * n), n == 1 ? "" : order, n};
  }
  throw no_v3_type();
}

translated_type type_or_name(const ordered& dtype) {
  try {
    return type_of(dtype);
  } catch (const no_v3_type&) {
    return {dtype.is_string() ? dtype.get<std::string>() : text::json_text(dtype), "", 1};
  }
}

// numcodecs' settings of a codec without "id".
ordered settings_of(const ordered& codec) {
  ordered configuration = codec;
  configuration.erase("id");
  return configuration;
}

// A codec from bytes to bytes.
ordered bytes_codec_of(const ordered& codec, std::uint64_t typesize) {
  const std::string id = codec.value("id", "");
  ordered configuration = settings_of(codec);
  if (id == "gzip" || id == "zstd") {
    if (id == "zstd" && !configuration.contains("checksum")) configuration["checksum"] = false;
    return to_json({id, std::move(configuration)});
  }
  if (id == "crc32c") {
    if (configuration.value("location", ordered("end")) == "end") return codec_json(codec_id::crc32c);
    return codec_json(codec_id::numcodecs_crc32c, std::move(configuration));  // at the beginning of chunks
  }
  if (id == "blosc") {
    const ordered shuffle = configuration.value("shuffle", ordered(1));
    const bool bits = shuffle == 2 || (shuffle == -1 && typesize == 1);
    configuration["shuffle"] = shuffle == 0 ? "noshuffle" : bits ? "bitshuffle" : "shuffle";
    configuration["typesize"] = std::max<std::uint64_t>(1, std::min<std::uint64_t>(typesize, 255));
    for (const auto& [key, usual] : {std::pair<const char*, ordered>{"cname", "lz4"}, {"clevel", 5}, {"blocksize", 0}}) {
      if (!configuration.contains(key)) configuration[key] = usual;
    }
    return codec_json(codec_id::blosc, std::move(configuration));
  }
  return to_json({std::string(numcodecs_prefix) + id, std::move(configuration)});
}

// The codec from array to bytes that stands first among the filters of Zarr v2, if one does.
std::optional<ordered> array_codec_of(const ordered& filter, translated_type& type) {
  const std::string id = filter.value("id", "");
  if (id == "vlen-utf8" || id == "vlen-bytes") {
    const bool is_text = id == "vlen-utf8" && name_of(type.type) == "fixed_length_utf32";  // of zarr-python 3.0
    if (type.size != 0 && !is_text) throw parse_error("the filter " + id + " is for objects, which the array does not have");
    if (is_text) type = {"string", "", 0};
    if (id == "vlen-bytes") type.type = "variable_length_bytes";
    return to_json({id, nullptr});
  }
  if (id != "zarrbits.packbits") return {};
  ordered configuration = ordered::object();
  const ordered bits = filter.value("bits", ordered()), first = filter.value("first_bit", ordered(0));
  if (!bits.is_number_unsigned() || !first.is_number_unsigned() || bits.get<std::uint64_t>() < 1 ||
      bits.get<std::uint64_t>() > 64 || first.get<std::uint64_t>() > 63)
    throw parse_error("the filter zarrbits.packbits has no valid \"bits\" or \"first_bit\"");
  if (type.type != "bool") {
    configuration["first_bit"] = first;
    configuration["last_bit"] = first.get<std::uint64_t>() + bits.get<std::uint64_t>() - 1;
  }
  configuration["padding_encoding"] = filter.value("padding_encoding", ordered("none"));
  return codec_json(codec_id::packbits, std::move(configuration));
}

ordered v3_codecs_of(const ordered& zarray, translated_type& type, std::size_t rank) {
  ordered filters = zarray.value("filters", ordered());
  if (filters.is_null()) filters = ordered::array();
  if (!filters.is_array()) throw parse_error("\"filters\" is not a list");
  if (const ordered compressor = zarray.value("compressor", ordered()); !compressor.is_null()) filters.push_back(compressor);
  for (const ordered& f : filters) {
    if (!f.is_object() || !f.contains("id") || !f["id"].is_string()) throw parse_error("a filter or compressor has no \"id\"");
  }
  ordered codecs = ordered::array();
  const ordered memory_order = zarray.value("order", ordered("C"));
  if (memory_order != "C" && memory_order != "F") throw parse_error("the \"order\" of a .zarray is neither \"C\" nor \"F\"");
  if (memory_order == "F" && rank > 1) {
    ordered order = ordered::array();
    for (std::size_t d = rank; d-- > 0;) order.push_back(d);
    codecs.push_back(codec_json(codec_id::transpose, {{"order", std::move(order)}}));
  }
  std::size_t i = 0;
  translated_type encoded = type;  // after the filters that make other values of values
  for (; i < filters.size() && is_array_filter_name(filters[i]["id"].get<std::string>()); ++i) {
    const std::string name = std::string(numcodecs_prefix) + filters[i]["id"].get<std::string>();
    const codec_id id = codec_id_of(name);
    const bool casts = id == codec_id::as_type;
    const ordered encoded_type = filters[i].value(casts ? "encode_dtype" : "astype", filters[i].value("dtype", ordered()));
    if (id != codec_id::bit_round)
      encoded = type_or_name(id == codec_id::categorize && encoded_type.is_null() ? ordered("|u1") : encoded_type);
    codecs.push_back(to_json({name, settings_of(filters[i])}));
  }
  const auto first = i < filters.size() ? array_codec_of(filters[i], i > 0 ? encoded : type) : std::nullopt;
  if (i == 0) encoded = type;
  if (!first && encoded.size == 0) type.type = encoded.type = "|O";  // objects in a form of Python
  if (first) codecs.push_back(*first);
  else if (encoded.order.empty()) codecs.push_back(to_json({"bytes", nullptr}));
  else codecs.push_back(to_json({"bytes", {{"endian", encoded.order}}}));
  const bool complex = encoded.type.is_string() && encoded.type.get_ref<const std::string&>().starts_with("complex");
  for (i += first ? 1U : 0U; i < filters.size(); ++i)
    codecs.push_back(bytes_codec_of(filters[i], first ? 1 : complex ? encoded.size / 2 : encoded.size));
  return codecs;
}

// What chunks that do not exist read as, if Zarr v2 does not say it.
ordered default_fill(const ordered& type, std::uint64_t size) {
  const std::string name = name_of(type);
  if (name == "bool") return false;
  if (name.starts_with("numpy.")) return "NaT";
  if (name.starts_with("complex")) return ordered::array({0.0, 0.0});
  if (name.starts_with("float")) return 0.0;
  if (name == "string" || name == "fixed_length_utf32" || name == "null_terminated_bytes" || name == "variable_length_bytes")
    return "";
  if (name == "raw_bytes" || name == "struct")
    return text::base64(std::string_view(std::string(static_cast<std::size_t>(size), '\0')));
  return 0;
}

// Bytes of a number in an element of a type with one byte order; 1: nothing to turn around.
std::size_t number_size(const std::string& name, std::uint64_t size) {
  if (name.starts_with("complex")) return static_cast<std::size_t>(size / 2);
  if (name == "fixed_length_utf32") return 4;
  const bool bytes = name == "bool" || name == "null_terminated_bytes" || name == "raw_bytes";
  return bytes ? 1 : static_cast<std::size_t>(size);
}

// Reverses the numbers of a big-endian element, field by field. `type`: as type_of() made it of `dtype`.
void swap_byte_order(const ordered& dtype, std::vector<std::byte>& bytes, std::size_t& offset) {
  if (dtype.is_array()) {
    for (const ordered& f : dtype) swap_byte_order(f[1], bytes, offset);
    return;
  }
  const translated_type type = type_of(dtype);
  const std::size_t number = type.order == "big" ? number_size(name_of(type.type), type.size) : 1;
  for (std::size_t end = offset + static_cast<std::size_t>(type.size); offset < end; offset += number)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                 bytes.begin() + static_cast<std::ptrdiff_t>(offset + number));
}

// A struct's fill value is its bytes in base64: in the order of `dtype` in Zarr v2, and in little-endian order in Zarr v3.
ordered struct_fill(const ordered& fill, const translated_type& type, const ordered& dtype) {
  auto bytes = fill.is_string() ? text::decode_base64(fill.get<std::string>()) : std::nullopt;
  if (!bytes || bytes->size() != type.size || type.order != "big") return fill;
  std::size_t offset = 0;
  swap_byte_order(dtype, *bytes, offset);
  return text::base64(std::span<const std::byte>(*bytes));
}

ordered fill_of(const ordered& fill, const translated_type& type, const ordered& dtype) {
  const std::string name = name_of(type.type);
  if (fill.is_null()) return default_fill(type.type, type.size);
  if (name == "struct") return fill == 0 ? default_fill(type.type, type.size) : struct_fill(fill, type, dtype);
  const bool text = name == "string" || name == "fixed_length_utf32" || name == "null_terminated_bytes" || name == "raw_bytes";
  if (text && fill == 0) return default_fill(type.type, type.size);  // zarr-python writes 0 for objects, and for zeros
  if (name == "variable_length_bytes" && (fill == 0 || fill == "")) return "";
  const bool integer = name.starts_with("int") || name.starts_with("uint") || name.starts_with("numpy.");
  if (integer && fill.is_number_float()) {
    const double value = fill.get<double>();
    if (value == std::floor(value) && std::fabs(value) < 9e15) return static_cast<std::int64_t>(value);
  }
  if (name == "bool" && fill.is_number()) return fill != 0;
  return fill;
}

bool is_float_type(const ordered& dtype) { return dtype.is_string() && dtype.get<std::string>().find('f') != std::string::npos; }

ordered parse_number_word(const ordered& value) {
  if (value.is_array()) {
    ordered list = ordered::array();
    for (const ordered& item : value) list.push_back(parse_number_word(item));
    return list;
  }
  if (value == "NaN") return NAN;
  if (value == "Infinity") return HUGE_VAL;
  return value == "-Infinity" ? ordered(-HUGE_VAL) : value;
}

// netCDF-C writes numbers that JSON does not have as texts, and notes the types of attributes.
void restore_netcdf_numbers(ordered& attributes) {
  for (const char* note : {"_NCZARR_ATTR", "_nczarr_attr", "_nczarr_attrs"}) {
    const auto entry = attributes.find(note);
    if (entry == attributes.end() || !entry->is_object()) continue;
    const ordered types = entry->value("types", ordered::object());  // items() refers to it
    for (const auto& [name, type] : types.items()) {
      if (const auto value = attributes.find(name); value != attributes.end() && is_float_type(type))
        *value = parse_number_word(*value);
    }
  }
}

// Whether two fill values are the same one of the type: a float is written in the fewest digits that its type needs.
bool is_same_fill(const ordered& type, const ordered& a, const ordered& b) {
  const ordered x = missing_value_of(type, a), y = missing_value_of(type, b);
  if (x == y || type != "float32" || !a.is_number() || !b.is_number()) return x == y;
  return static_cast<float>(a.get<double>()) == static_cast<float>(b.get<double>());
}

// xarray takes the fill value of Zarr v2 for the missing value of CF. In Zarr v3 an attribute says it.
void add_missing_value(const ordered& fill, const ordered& type, ordered& attributes, remark_list& remarks) {
  if (fill.is_null()) return;
  const auto entry = attributes.find("_FillValue");
  if (entry == attributes.end()) {
    if (ordered missing = missing_value_of(type, fill); !missing.is_null()) attributes["_FillValue"] = std::move(missing);
  } else if (!is_same_fill(type, fill, *entry)) {
    remarks.push_back({"_FillValue", false, reason_code::changed_form,
                       "it stays " + text::json_text(*entry) + ", which xarray takes for missing values in Zarr v3; in Zarr " +
                           "v2 it takes the fill value " + text::json_text(fill) +
                           ", which chunks that were never written still have"});
  }
}

}  // namespace

ordered v3_group_of(const ordered& zgroup, const ordered& zattrs) {
  if (!zgroup.is_object() || zgroup.value("zarr_format", ordered()) != 2)
    throw parse_error("a .zgroup does not say that it is of Zarr v2");
  ordered attributes = zattrs.is_object() ? zattrs : ordered::object();
  restore_netcdf_numbers(attributes);
  return group_json(std::move(attributes));
}

ordered v3_array_of(const ordered& zarray, const ordered& zattrs, remark_list& remarks) {
  if (zarray.value("zarr_format", ordered()) != 2) throw parse_error("a .zarray does not say that it is of Zarr v2");
  const ordered shape = zarray.value("shape", ordered()), chunks = zarray.value("chunks", ordered());
  if (!shape.is_array() || !chunks.is_array() || shape.size() != chunks.size())
    throw parse_error("\"shape\" and \"chunks\" of a .zarray are not lists of one length");
  translated_type type = type_or_name(zarray.value("dtype", ordered()));
  ordered codecs = v3_codecs_of(zarray, type, shape.size());
  ordered attributes = zattrs.is_object() ? zattrs : ordered::object();
  restore_netcdf_numbers(attributes);
  const ordered fill = zarray.value("fill_value", ordered());
  const ordered separator = zarray.value("dimension_separator", ordered("."));
  ordered document = {{"zarr_format", 3},
                      {"node_type", "array"},
                      {"shape", shape},
                      {"data_type", type.type},
                      {"chunk_grid", to_json({"regular", {{"chunk_shape", chunks}}})},
                      {"chunk_key_encoding", to_json({"v2", {{"separator", separator}}})},
                      {"fill_value", fill_of(fill, type, zarray.value("dtype", ordered()))},
                      {"codecs", std::move(codecs)}};
  const auto names = attributes.find("_ARRAY_DIMENSIONS");
  const bool named = names != attributes.end() && names->is_array() && names->size() == shape.size() &&
                     std::all_of(names->begin(), names->end(), [](const ordered& name) { return name.is_string(); });
  if (named) {
    document["dimension_names"] = *names;
    attributes.erase(names);
    add_missing_value(fill, type.type, attributes, remarks);
  }
  document["attributes"] = std::move(attributes);
  return document;
}

ordered v3_nodes_of(const ordered& zmetadata) {
  ordered nodes = ordered::object();
  remark_list ignored;
  const ordered documents = zmetadata.value("metadata", ordered::object());
  for (const auto& [key, value] : documents.items()) {
    const std::size_t slash = key.rfind('/');
    if (slash == key.npos) continue;  // the root
    const std::string node = key.substr(0, slash), name = key.substr(slash + 1);
    const ordered zattrs = documents.value(node + "/.zattrs", ordered());
    if (name == ".zarray") nodes[node] = v3_array_of(value, zattrs, ignored);
    else if (name == ".zgroup") nodes[node] = v3_group_of(value, zattrs);
  }
  return nodes;
}

}  // namespace zarrbits::metadata
