// SPDX-License-Identifier: BSL-1.0
#include "metadata/v2_metadata.hpp"

#include "metadata/codec_id.hpp"
#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace zarrbits::metadata {

using ordered = text::json;

namespace {

std::uint64_t length_in(const ordered& type) {
  const ordered configuration = configuration_of(type);
  if (!configuration.contains("length_bytes") || !configuration["length_bytes"].is_number_unsigned())
    throw not_representable_in_v2("its data type has no length");
  return configuration["length_bytes"].get<std::uint64_t>();
}

// "<i4", or a list of the fields of a struct. `order`: "<" or ">".
ordered dtype_of(const ordered& type, const std::string& order) {
  const std::string name = name_of(type);
  if (name == "bool") return "|b1";
  if (name == "string" || name == "variable_length_bytes") return "|O";
  static constexpr std::array<std::pair<std::string_view, char>, 4> kinds = {
      {{"int", 'i'}, {"uint", 'u'}, {"float", 'f'}, {"complex", 'c'}}};
  for (const auto& [word, kind] : kinds) {
    if (!name.starts_with(word)) continue;
    const std::string bits = name.substr(word.size());
    if (bits == "8" && (kind == 'i' || kind == 'u')) return std::string("|") + kind + "1";
    for (const char* supported : {"16", "32", "64", "128"}) {
      const bool possible = kind == 'c' ? bits == "64" || bits == "128" : bits != "128" && (kind != 'f' || bits != "8");
      if (bits == supported && possible) return order + kind + std::to_string(std::stoi(bits) / 8);
    }
  }
  if (name == "null_terminated_bytes") return "|S" + std::to_string(length_in(type));
  if (name == "raw_bytes") return "|V" + std::to_string(length_in(type));
  if (name == "fixed_length_utf32") return order + "U" + std::to_string(length_in(type) / 4);
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
    const ordered configuration = configuration_of(type);
    const std::uint64_t scale = configuration.value("scale_factor", std::uint64_t{1});
    return order + (name == "numpy.datetime64" ? "M8[" : "m8[") + (scale == 1 ? "" : std::to_string(scale)) +
           configuration.value("unit", "") + "]";
  }
  if (name == "struct") {
    ordered fields = ordered::array();
    for (const ordered& f : configuration_of(type).value("fields", ordered::array())) {
      fields.push_back(ordered::array({f.at("name"), dtype_of(f.at("data_type"), order)}));
    }
    return fields;
  }
  throw not_representable_in_v2("Zarr v2 has no data type " + name);
}

std::uint64_t elements_in(const ordered& chunk) {
  std::uint64_t n = 1;
  for (const ordered& length : chunk) {
    if (__builtin_mul_overflow(n, length.get<std::uint64_t>(), &n)) throw not_representable_in_v2("its chunks are too large");
  }
  return n;
}

// The filter of the codec `packbits`, as the Python package has it for numcodecs (numcodecs_codec.py).
ordered packbits_filter(const ordered& codec, const ordered& dtype, const ordered& chunk) {
  if (!dtype.is_string()) throw not_representable_in_v2("structs are not packed in Zarr v2");
  const std::string type = dtype.get<std::string>();
  if (type.find_first_of("biufc") != 1) throw not_representable_in_v2("numcodecs has no packbits for its data type");
  const ordered configuration = configuration_of(codec);
  const auto number = [&](const char* key, std::uint64_t otherwise) {
    return configuration.contains(key) && configuration[key].is_number_unsigned() ? configuration[key].get<std::uint64_t>()
                                                                                  : otherwise;
  };
  const unsigned width = type[1] == 'b' ? 1U : 8U * static_cast<unsigned>(std::stoi(type.substr(2))) / (type[1] == 'c' ? 2U : 1U);
  const std::uint64_t first = number("first_bit", 0), last = number("last_bit", width - 1);
  if (first > last || last >= width)
    throw not_representable_in_v2("its codec packbits keeps bits that its data type does not have");
  return {{"id", "zarrbits.packbits"},
          {"dtype", type},
          {"bits", last - first + 1},
          {"first_bit", first},
          {"padding_encoding", configuration.value("padding_encoding", "none")},
          {"elements", elements_in(chunk)}};
}

// As numcodecs has it.
ordered filter_of(const ordered& codec) {
  const std::string name = name_of(codec);
  ordered configuration = configuration_of(codec), result = {{"id", name}};
  const codec_id id = codec_id_of(name);
  if (name.starts_with(numcodecs_prefix)) {
    result["id"] = name.substr(numcodecs_prefix.size());
  } else if (id == codec_id::crc32c) {
    result["location"] = "end";
  } else if (id == codec_id::blosc) {
    const std::string shuffle = configuration.value("shuffle", "noshuffle");
    configuration["shuffle"] = shuffle == "shuffle" ? 1 : shuffle == "bitshuffle" ? 2 : 0;
    configuration.erase("typesize");
  } else if (id == codec_id::zstd) {
    if (configuration.value("checksum", ordered(false)) == false)
      configuration.erase("checksum");  // older readers do not know it
  } else if (id != codec_id::gzip) {
    throw not_representable_in_v2("numcodecs has no codec " + name);
  }
  result.update(configuration);
  return result;
}

// The last one, if it compresses: some readers expect it there.
ordered take_compressor(ordered& filters) {
  if (filters.empty()) return nullptr;
  const std::string last = filters.back()["id"].get<std::string>();
  for (const char* id : {"zlib", "gzip", "zstd", "blosc", "lz4", "bz2"}) {
    if (last != id) continue;
    ordered compressor = std::move(filters.back());
    filters.erase(filters.size() - 1);
    return compressor;
  }
  return nullptr;
}

bool is_zero(const ordered& type, const ordered& fill) {
  const std::string name = name_of(type);
  if (name.starts_with("numpy.")) return false;  // without a fill value, readers take NaT
  if (fill.is_number_float()) return fill.get<double>() == 0 && !std::signbit(fill.get<double>());
  if (fill.is_number()) return fill == 0;
  if (fill.is_boolean()) return !fill.get<bool>();
  if (fill.is_array()) {
    for (const ordered& part : fill) {
      if (!is_zero(type, part)) return false;
    }
    return true;
  }
  if (fill.is_string()) {
    const auto& text = fill.get_ref<const std::string&>();
    return text.empty() || (name == "raw_bytes" && text.find_first_not_of("A=") == text.npos);
  }
  if (!fill.is_object()) return false;
  for (const ordered& f : configuration_of(type).value("fields", ordered::array())) {
    const auto value = fill.find(f.at("name").get<std::string>());
    if (value == fill.end() || !is_zero(f.at("data_type"), *value)) return false;
  }
  return true;
}

std::optional<double> double_in(const ordered& text) {
  const auto bytes = text.is_string() ? text::decode_base64(text.get<std::string>()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return {};
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  return std::bit_cast<double>(bits);
}

ordered number_or_word(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// "_FillValue" as a fill value of Zarr v2. xarray has that of floats in base64 (hdf5/attribute_form.cpp), but not in Zarr v2.
// Null if the attribute has another form, which no reader decodes.
ordered missing_value_in(const ordered& type, const ordered& attribute) {
  const std::string name = name_of(type);
  if (name.starts_with("float")) {
    const auto value = double_in(attribute);
    return value ? number_or_word(*value) : ordered(nullptr);
  }
  if (name.starts_with("complex") && attribute.is_array() && attribute.size() == 2) {
    const auto real = double_in(attribute[0]), imaginary = double_in(attribute[1]);
    return real && imaginary ? ordered::array({number_or_word(*real), number_or_word(*imaginary)}) : ordered(nullptr);
  }
  const bool fits = name == "bool"                                        ? attribute.is_boolean()
                    : name.starts_with("int") || name.starts_with("uint") ? attribute.is_number_integer()
                    : name == "string"                                    ? attribute.is_string()
                                                                          : false;
  return fits ? attribute : ordered(nullptr);
}

double as_double(const ordered& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text == "Infinity") return HUGE_VAL;
  return text == "-Infinity" ? -HUGE_VAL : NAN;  // "NaN", or one whose bits are in hexadecimal
}

// Whether two fill values are the same value of the type: a float is written in the fewest digits that its type needs.
bool same_value(const ordered& type, const ordered& a, const ordered& b) {
  const std::string name = name_of(type);
  if (a.is_array() && b.is_array() && a.size() == 2 && b.size() == 2)
    return same_value("float64", a[0], b[0]) && same_value("float64", a[1], b[1]);
  if (!name.starts_with("float")) return a == b;
  const double x = as_double(a), y = as_double(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return name == "float32" ? static_cast<float>(x) == static_cast<float>(y) : x == y;
}

// Sets the fill value, and removes the attribute that says the same.
ordered take_fill(const ordered& type, const ordered& fill, bool gaps, ordered& attributes) {
  const auto attribute = attributes.find("_FillValue");
  ordered missing = attribute == attributes.end() ? ordered(nullptr) : missing_value_in(type, *attribute);
  if (missing.is_null()) {
    if (!gaps || is_zero(type, fill)) return nullptr;
    throw not_representable_in_v2("chunks that were never written read as " + text::json_text(fill) +
                                  ", and xarray would take the fill value of Zarr v2 for a missing value");
  }
  if (gaps && !same_value(type, fill, missing))
    throw not_representable_in_v2("chunks that were never written read as " + text::json_text(fill) +
                                  ", and Zarr v2 has one place for that and " + "for _FillValue, which is " +
                                  text::json_text(missing));
  attributes.erase(attribute);
  return missing;
}

ordered attributes_in(const ordered& node) {
  const ordered& attributes = attributes_of(node);
  return attributes.is_object() ? attributes : ordered::object();
}

// The fill value itself; null if Zarr v2 has no form of it.
ordered plain_fill(const ordered& type, const ordered& fill) {
  const std::string name = name_of(type);
  const auto is_bits = [](const ordered& value) {  // a NaN with a payload
    return value.is_string() && value.get_ref<const std::string&>().starts_with("0x");
  };
  if (name.starts_with("numpy.")) return fill == "NaT" ? ordered(std::numeric_limits<std::int64_t>::min()) : fill;
  if (name == "variable_length_bytes" || fill.is_object()) return nullptr;
  if (name.starts_with("float") && is_bits(fill)) return nullptr;
  if (name.starts_with("complex") && std::any_of(fill.begin(), fill.end(), is_bits)) return nullptr;
  return fill;
}

// Whether an array is one that xarray opens.
bool has_dimension_names(const ordered& node) {
  const ordered names = node.value("dimension_names", ordered::array());
  return names.is_array() && names.size() == node.at("shape").size() &&
         std::all_of(names.begin(), names.end(), [](const ordered& name) { return name.is_string(); });
}

ordered fill_of_copy(const ordered& node, bool gaps, ordered& attributes) {
  const ordered &type = node.at("data_type"), &fill = node.at("fill_value");
  ordered result = has_dimension_names(node) ? take_fill(type, fill, gaps, attributes) : plain_fill(type, fill);
  if (gaps && result.is_null())
    throw not_representable_in_v2("chunks that are missing read as " + text::json_text(fill) +
                                  ", and no fill value of Zarr v2 says that to all of its readers");
  return result;
}

// The filters of Zarr v2 that replace values by others, and the byte order of the values that they make again.
std::string take_array_filters(const ordered& codecs, std::size_t& next, ordered& filters) {
  std::string order;
  for (; next < codecs.size() && is_array_filter(codec_id_of(name_of(codecs[next]))); ++next) {
    ordered filter = {{"id", name_of(codecs[next]).substr(numcodecs_prefix.size())}};
    filter.update(configuration_of(codecs[next]));
    const std::string decoded = filter.value("decode_dtype", filter.value("dtype", ""));
    if (next == 0 || order.empty()) order = decoded.substr(0, decoded.find_first_not_of("<>"));
    filters.push_back(std::move(filter));
  }
  return order;
}

// True if the codec makes Fortran's order of C's: Zarr v2 says so beside its filters.
bool reverses_dimensions(const ordered& codec, std::size_t rank) {
  if (codec_id_of(name_of(codec)) != codec_id::transpose) return false;
  const ordered order = configuration_of(codec).value("order", ordered());
  if (!order.is_array() || order.size() != rank) return false;
  for (std::size_t d = 0; d < rank; ++d) {
    if (order[d] != rank - 1 - d) return false;
  }
  return true;
}

v2_array translate_array(const ordered& node, bool gaps, bool is_copy) {
  const ordered &grid = node.at("chunk_grid"), &codecs = node.at("codecs"), &type = node.at("data_type");
  if (name_of(grid) != "regular") throw not_representable_in_v2("Zarr v2 has no chunks of different lengths");
  const ordered chunk = configuration_of(grid).at("chunk_shape");
  std::size_t next = 0;
  const bool reversed = reverses_dimensions(codecs.at(0), chunk.size());
  if (reversed) ++next;
  ordered filters = ordered::array();
  const std::string filtered_order = take_array_filters(codecs, next, filters);
  const ordered& serializer = codecs.at(next++);
  const std::string first = name_of(serializer);
  const bool big = configuration_of(serializer).value("endian", "little") == "big";
  const std::string order = !filtered_order.empty() ? filtered_order : big ? ">" : "<";
  const ordered dtype = dtype_of(type, order);
  const codec_id id = codec_id_of(first);
  if (id == codec_id::packbits) filters.push_back(packbits_filter(serializer, dtype, chunk));
  else if (id == codec_id::vlen_utf8 || id == codec_id::vlen_bytes) filters.push_back({{"id", first}});
  else if (id != codec_id::bytes) throw not_representable_in_v2("Zarr v2 has no counterpart of its codec " + first);
  for (; next < codecs.size(); ++next) filters.push_back(filter_of(codecs[next]));
  ordered compressor = take_compressor(filters);
  v2_array result;
  result.zattrs = attributes_in(node);
  ordered fill = is_copy ? fill_of_copy(node, gaps, result.zattrs) : take_fill(type, node.at("fill_value"), gaps, result.zattrs);
  result.zarray = {{"zarr_format", 2},
                   {"shape", node.at("shape")},
                   {"chunks", chunk},
                   {"dtype", dtype},
                   {"compressor", std::move(compressor)},
                   {"fill_value", std::move(fill)},
                   {"order", reversed ? "F" : "C"},
                   {"filters", filters.empty() ? ordered(nullptr) : std::move(filters)},
                   {"dimension_separator", "."}};
  if (const auto notes = node.find(text::annotation_key); notes != node.end() && notes->is_object()) {
    ordered annotation = *notes;
    annotation.erase("must_understand");
    result.zattrs[text::hidden_annotation_key] = std::move(annotation);
  }
  if (has_dimension_names(node)) result.zattrs["_ARRAY_DIMENSIONS"] = node.value("dimension_names", ordered::array());
  return result;
}

v2_array checked_array(const ordered& node, bool gaps, bool is_copy) {
  try {
    return translate_array(node, gaps, is_copy);
  } catch (const ordered::exception&) {
    throw not_representable_in_v2("its metadata are not those of an array of Zarr v3");
  }
}

}  // namespace

v2_array to_v2_array(const ordered& node, bool gaps) { return checked_array(node, gaps, false); }

v2_array to_v2_copy(const ordered& node, bool gaps) { return checked_array(node, gaps, true); }

bool allows_gaps_in_v2(const ordered& node) {
  try {
    ordered attributes = attributes_in(node);
    fill_of_copy(node, true, attributes);
    return true;
  } catch (const not_representable_in_v2&) {
    return false;
  }
}

ordered v2_group_attributes(const ordered& node) { return attributes_in(node); }

ordered v2_group() { return {{"zarr_format", 2}}; }

ordered v2_consolidated(const std::map<std::string, ordered>& documents) {
  text::object_builder nodes;
  for (const auto& [key, document] : documents) nodes.add(key, document);
  return {{"zarr_consolidated_format", 1}, {"metadata", nodes.take()}};
}

ordered v2_grid_alone(const ordered& node) {
  if (!is_rectilinear(node)) return {{"shape", shape_of(node)}, {"chunks", longest_chunk(node)}};
  const std::vector<std::uint64_t> counts = chunks_along(node).value_or(std::vector<std::uint64_t>());
  return {{"shape", counts}, {"chunks", std::vector<std::uint64_t>(counts.size(), 1)}};
}

bool is_v2_grid_alone(const ordered& zarray) {
  return zarray.size() == 2 && zarray.contains("shape") && zarray.contains("chunks");
}

bool completes_store(std::string_view key) {
  return key != ".zmetadata" && std::find(root_keys.begin(), root_keys.end(), key) != root_keys.end();
}

bool is_store_root(const std::function<std::string(const char*)>& text_of) {
  return std::any_of(root_keys.begin(), root_keys.end(), [&](const char* key) {
    if (!completes_store(key)) return false;
    const std::string text = text_of(key);
    if (text::is_node_key(key)) return is_zarr_node(text);
    return member(text::parse_untrusted_json(text), "zarr_format") == 2;
  });
}

bool is_metadata_key(std::string_view key) { return text::is_node_key(key) || is_v2_metadata_key(key); }

bool is_v2_metadata_key(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return name == ".zgroup" || name == ".zarray" || name == ".zattrs" || name == ".zmetadata";
}

}  // namespace zarrbits::metadata
