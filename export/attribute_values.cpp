// SPDX-License-Identifier: BSL-1.0
#include "export/attribute_values.hpp"

#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::exporting {

using zarr::zarr_kind;

namespace {

constexpr std::size_t max_list_depth = 40;

// Levels of lists in one value of the type.
std::size_t lists_in(const type_spec& t) {
  switch (t.kind) {
    case type_kind::complex: return 1;
    case type_kind::array: return t.dims.size() + lists_in(t.base());
    case type_kind::sequence: return 1 + lists_in(t.base());
    default: return 0;
  }
}

std::size_t nesting(const text::json& value) {
  std::size_t max_depth = 0;
  if (!value.is_array()) return 0;
  for (const text::json& element : value) max_depth = std::max(max_depth, nesting(element));
  return 1 + max_depth;
}

// The extents of a list of lists of equal length, up to `levels` deep. Throws unsupported_in_hdf5.
array::extents extents_of(const text::json& value, std::size_t levels) {
  array::extents dims;
  const text::json* current = &value;
  for (std::size_t i = 0; i < levels && current->is_array(); ++i) {
    dims.push_back(current->size());
    if (current->empty()) break;
    current = &current->front();
  }
  return dims;
}

void each_leaf(const text::json& value, std::size_t levels, const std::function<void(const text::json&)>& call) {
  if (levels == 0) return call(value);
  for (const text::json& element : value) each_leaf(element, levels - 1, call);
}

bool is_regular(const text::json& value, const array::extents& dims, std::size_t level = 0) {
  if (level == dims.size()) return !value.is_array();
  if (!value.is_array() || value.size() != dims[level]) return false;
  return std::all_of(value.begin(), value.end(), [&](const text::json& v) { return is_regular(v, dims, level + 1); });
}

bool is_base64(const text::json& v) { return v.is_object() && v.size() == 1 && v.contains("base64") && v["base64"].is_string(); }

std::size_t text_length(const text::json& v) {
  if (v.is_string()) return v.get_ref<const std::string&>().size();
  const auto bytes = text::decode_base64(v["base64"].get_ref<const std::string&>());
  return bytes ? bytes->size() : 0;
}

bool has_nul(const text::json& v) { return v.is_string() && v.get_ref<const std::string&>().find('\0') != std::string::npos; }

// A number that float64 holds, if it is an integer.
bool is_exact(const text::json& v) {
  constexpr std::uint64_t exact_limit = std::uint64_t{1} << 53;
  if (!v.is_number_integer()) return true;
  const bool negative = !v.is_number_unsigned() && v.get<std::int64_t>() < 0;
  std::uint64_t n = negative ? 0 - static_cast<std::uint64_t>(v.get<std::int64_t>()) : v.get<std::uint64_t>();
  return n <= exact_limit || n % (std::uint64_t{1} << (std::bit_width(n) - 53)) == 0;
}

// What the leaves of a value are.
struct leaf_summary {
  bool integers = true, unsigned_only = false, numbers = true, texts = true, booleans = true, has_values = false, nul = false;
  bool exact = true;  // float64 holds the numbers
  std::size_t longest = 0;
};
leaf_summary summarize_leaves(const text::json& value, std::size_t levels) {
  leaf_summary result;
  each_leaf(value, levels, [&](const text::json& v) {
    result.has_values = true;
    result.booleans = result.booleans && v.is_boolean();
    result.integers = result.integers && v.is_number_integer();
    result.numbers = result.numbers && v.is_number();
    result.exact = result.exact && is_exact(v);
    if (v.is_number_unsigned() && v.get<std::uint64_t>() > INT64_MAX) result.unsigned_only = true;
    const bool text = v.is_string() || is_base64(v);
    result.texts = result.texts && text;
    if (text) {
      result.longest = std::max(result.longest, text_length(v));
      result.nul = result.nul || has_nul(v);
    }
  });
  return result;
}

// JSON that the format cannot have, as text.
attribute_spec as_text(const text::json& value, const std::string& format = "HDF5") {
  attribute_spec f;
  f.type = variable_text_spec();
  f.value = text::python_json_text(value);
  f.remark = {reason_code::changed_form, format + " has no attributes of this kind; the file has it as JSON text"};
  return f;
}

// netCDF-C has texts as strings of fixed length, and numbers as lists.
attribute_spec netcdf_text(text::json value, std::size_t length) {
  attribute_spec f;
  f.type = text_spec(std::max<std::size_t>(length, 1), false, {!has_nul(value)});
  const bool ascii =
      value.is_string() && std::all_of(value.get_ref<const std::string&>().begin(), value.get_ref<const std::string&>().end(),
                                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) hdf5::check(H5Tset_cset(f.type.file, H5T_CSET_UTF8), "create a string type");
  f.type.memory = hdf5::handle(H5Tcopy(f.type.file), "copy a type");
  f.null = length == 0;
  f.value = std::move(value);
  return f;
}

// The type of a value that the notes say nothing about.
attribute_spec inferred(text::json value, const attribute_rules& rules, bool noted) {
  attribute_spec f;
  if (value.is_null()) {
    f.type = integer_spec(1, true, false);
    f.null = true;
    return f;
  }
  const std::size_t levels = nesting(value);
  if (levels > H5S_MAX_RANK) return as_text(value);
  f.dims = extents_of(value, levels);
  f.scalar = f.dims.empty();
  if (f.dims.size() != levels || !is_regular(value, f.dims)) return as_text(value);
  const leaf_summary summary = summarize_leaves(value, levels);
  if (summary.has_values && summary.booleans) {
    f.type = rules.forms.netcdf ? integer_spec(1, true, false) : boolean_spec();
  } else if (summary.integers) {
    bool fits = true;
    if (summary.unsigned_only) each_leaf(value, levels, [&](const text::json& v) { fits = fits && v.is_number_unsigned(); });
    if (!fits) return as_text(value);
    f.type = !summary.has_values ? float_spec(8, false) : integer_spec(8, !summary.unsigned_only, false);
  } else if (summary.numbers) {
    if (!summary.exact) return as_text(value);
    f.type = float_spec(8, false);
  } else if (summary.texts) {
    if (rules.forms.netcdf && f.scalar) return netcdf_text(std::move(value), summary.longest);
    f.type = summary.nul ? text_spec(std::max<std::size_t>(summary.longest, 1), false, {}) : variable_text_spec();
    if (summary.nul) {
      hdf5::check(H5Tset_cset(f.type.file, H5T_CSET_UTF8), "create a string type");
      f.type.memory = hdf5::handle(H5Tcopy(f.type.file), "copy a type");
    }
  } else {
    return as_text(value);
  }
  if (rules.forms.netcdf && !noted && f.scalar && !summary.texts) {
    f.dims = {1};
    f.scalar = false;
    value = text::json::array({std::move(value)});
  }
  f.value = std::move(value);
  return f;
}

// A little-endian float64 in base64, as xarray has fill values of floats.
text::json number_of_base64(const text::json& text) {
  const auto bytes = text.is_string() ? text::decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return text;
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  return std::bit_cast<double>(bits);
}

// "_FillValue" of an array, in the form of hdf5/attribute_form.hpp: it has the type of the array.
bool take_fill(text::json& value, attribute_spec& f, const attribute_rules& rules) {
  const zarr::zarr_type& array = *rules.array;
  if (value.is_structured() && array.kind != zarr_kind::complex) return false;
  switch (array.kind) {
    case zarr_kind::floating:
      if (value.is_string()) value = number_of_base64(value);
      if (!value.is_number()) return false;
      break;
    case zarr_kind::complex:
      if (!value.is_array() || value.size() != 2) return false;
      if (rules.forms.netcdf_types)
        throw unsupported_in_hdf5(reason_code::unsupported_type,
                                  "a fill value of complex numbers, with which xarray opens no file");
      for (text::json& part : value) part = number_of_base64(part);
      break;
    case zarr_kind::signed_integer:
    case zarr_kind::unsigned_integer:
      if (!value.is_number_integer() || array.name.starts_with("numpy.")) return false;
      break;
    case zarr_kind::boolean:
      if (!value.is_boolean()) return false;
      break;
    default: return false;
  }
  if (array.kind == zarr_kind::boolean && rules.forms.netcdf) f.type = integer_spec(1, true, false);
  else f.type = spec_of_array(array, rules.big_endian, nullptr, rules.forms);
  if (rules.forms.netcdf_types) f.type = netcdf_spec(std::move(f.type));
  if (rules.forms.netcdf) {
    f.scalar = false;
    f.dims = {1};
    value = text::json::array({std::move(value)});
  }
  return true;
}

// Those that, by netCDF's and CF's conventions, have the type of the values in the file.
bool has_type_of_variable(const std::string& attribute) {
  static constexpr std::array<std::string_view, 6> names = {"flag_values", "flag_masks", "valid_range",
                                                            "valid_min",   "valid_max",  "missing_value"};
  return std::find(names.begin(), names.end(), attribute) != names.end();
}

bool fits(const text::json& v, const type_spec& t) {
  if (t.kind == type_kind::floating) {
    if (!v.is_number()) return false;
    const double number = v.get<double>();
    return t.size == 8 || static_cast<double>(static_cast<float>(number)) == number;
  }
  if (!v.is_number_integer()) return false;
  const unsigned bits = static_cast<unsigned>(8 * t.size) - (t.is_signed ? 1 : 0);
  if (v.is_number_unsigned()) return bits >= 64 || v.get<std::uint64_t>() >> bits == 0;
  return t.is_signed && v.get<std::int64_t>() >> bits == -1;
}

// JSON does not say the type of numbers. If all of them fit, they get that of the array.
void take_type_of_variable(attribute_spec& f, const attribute_rules& rules) {
  const zarr_kind kind = rules.array->kind;
  const bool number = kind == zarr_kind::floating || kind == zarr_kind::signed_integer || kind == zarr_kind::unsigned_integer;
  if (!number || f.null || rules.array->name.starts_with("numpy.")) return;
  if (f.type.kind != type_kind::integer && f.type.kind != type_kind::floating) return;
  type_spec t = spec_of_array(*rules.array, rules.big_endian, nullptr, rules.forms);
  if (rules.forms.netcdf_types) t = netcdf_spec(std::move(t));
  if (t.kind == type_kind::floating && t.size == 2) t = float_spec(4, false);
  bool all_fit = true;
  each_leaf(f.value, f.dims.size(), [&](const text::json& v) { all_fit = all_fit && fits(v, t); });
  if (all_fit) f.type = std::move(t);
}

void count_lists(const attribute_spec& f, const text::json& value, std::size_t level) {
  if (level == f.dims.size()) return;
  if (!value.is_array() || value.size() != f.dims[level])
    throw unsupported_in_hdf5(reason_code::damaged, "lists of different lengths");
  for (const text::json& element : value) count_lists(f, element, level + 1);
}

}  // namespace

attribute_spec attribute_spec_of(const std::string& name, text::json value, const text::json& note, bool noted,
                                 const attribute_rules& rules) {
  attribute_spec f;
  // hdmf-zarr has references as objects
  if (value.is_object() && value.size() == 1 && value.contains("_REFERENCE") && value["_REFERENCE"].is_object()) {
    text::json path = value["_REFERENCE"].value("path", text::json());
    if (path.is_string()) {
      f.type = reference_spec(false);
      f.value = std::move(path);
      return f;
    }
  }
  if (name == "_FillValue" && rules.array && note.is_null() && !noted && take_fill(value, f, rules)) {
    f.value = std::move(value);
    return f;
  }
  if (note.is_null()) {
    f = inferred(std::move(value), rules, noted);
    if (rules.array && rules.forms.netcdf && !noted && !rules.has_notes && has_type_of_variable(name))
      take_type_of_variable(f, rules);
    return f;
  }
  f.type = spec_of_note(note, rules.forms);
  if (rules.forms.netcdf_types) {
    f.type = netcdf_spec(std::move(f.type));
    if (f.type.kind == type_kind::array)
      throw unsupported_in_hdf5(reason_code::unsupported_type, "an array type, which attributes of netCDF do not have");
  }
  if (value.is_null()) {
    f.null = f.type.kind != type_kind::object_reference && f.type.kind != type_kind::region_reference;
    f.value = std::move(value);
    return f;
  }
  const std::size_t inside = lists_in(f.type), depth = nesting(value);
  if (depth > max_list_depth)
    throw unsupported_in_hdf5(reason_code::unsupported_feature,
                              "lists nested more than " + std::to_string(max_list_depth) + " deep");
  f.dims = extents_of(value, depth > inside ? depth - inside : 0);
  f.scalar = f.dims.empty();
  if (!noted && rules.forms.netcdf && f.scalar && f.type.kind != type_kind::text && !value.is_structured()) {
    f.scalar = false;
    f.dims = {1};
    value = text::json::array({std::move(value)});
  }
  count_lists(f, value, 0);
  f.value = std::move(value);
  return f;
}

void write_attribute(hid_t object, const std::string& name, const attribute_spec& f, hid_t in_file, reference_maker& references,
                     std::uint64_t memory) {
  if (name.empty() || name.find('\0') != std::string::npos)
    throw unsupported_in_hdf5(reason_code::invalid_name, "a name that HDF5 cannot have");
  const hdf5::handle space(f.null     ? H5Screate(H5S_NULL)
                           : f.scalar ? H5Screate(H5S_SCALAR)
                                      : H5Screate_simple(static_cast<int>(f.dims.size()), hdf5::to_hsize(f.dims).data(), nullptr),
                           "create a dataspace");
  std::uint64_t count = 1;
  for (const std::uint64_t d : f.dims) count *= d;
  if (!f.null && count > memory / std::max<std::size_t>(f.type.size, 1))
    throw unsupported_in_hdf5(reason_code::too_large, "it takes more than " + text::format_bytes(memory) + "; increase `memory`");
  if (count > 1 && f.type.must_be_written_alone())
    throw unsupported_in_hdf5(reason_code::unsupported_type,
                              "several arrays of compounds with strings in them, which libhdf5 writes wrong");
  std::vector<std::byte> values(static_cast<std::size_t>(f.null ? 0 : count) * f.type.size);
  value_arena arena(memory);
  std::byte* output = values.data();
  if (!f.null) {
    each_leaf(f.value, f.dims.size(), [&](const text::json& v) {
      write_json_value(f.type, v, output, references, arena);
      output += f.type.size;
    });
  }
  const hdf5::handle encoding(H5Pcreate(H5P_ATTRIBUTE_CREATE), "create properties");
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) hdf5::check(H5Pset_char_encoding(encoding, H5T_CSET_UTF8), "set the encoding of a name");
  const hdf5::handle attribute(H5Acreate2(object, name.c_str(), in_file, space, encoding, H5P_DEFAULT), "create the attribute");
  if (values.empty()) return;
  if (H5Awrite(attribute, f.type.memory, values.data()) < 0) {
    const std::string reason = hdf5::last_error();
    H5Adelete(object, name.c_str());
    throw hdf5::failure(reason);
  }
}

// The noted shape of an attribute without values, if it has none.
void take_shape(const text::json& note, attribute_spec& f) {
  constexpr std::size_t max_dimensions = 32;  // of HDF5
  if (f.null || f.scalar || !note.is_array() || note.size() > max_dimensions) return;
  array::extents dims;
  for (const text::json& n : note) {
    if (!n.is_number_unsigned()) return;
    dims.push_back(n.get<std::uint64_t>());
  }
  const auto is_empty = [](const array::extents& d) { return std::find(d.begin(), d.end(), std::uint64_t{0}) != d.end(); };
  if (is_empty(f.dims) && is_empty(dims)) f.dims = std::move(dims);
}

// Attributes of netCDF have one dimension; its programs do not open a file in which one has more.
void make_flat(attribute_spec& f) {
  if (f.dims.size() < 2) return;
  std::uint64_t count = 1;
  for (const std::uint64_t n : f.dims) count *= n;
  text::json flat = text::json::array();
  if (!f.null) each_leaf(f.value, f.dims.size(), [&](const text::json& v) { flat.push_back(v); });
  f.value = std::move(flat);
  f.dims = {count};
  f.remark = {reason_code::changed_form,
              "attributes of netCDF have one dimension; the file has the values of the lists as one list"};
}

// Attributes that netCDF writes about dimensions are not copied from a source: the file may have others.
bool is_made_elsewhere(const std::string& name, const text::json& value, bool noted, const attribute_rules& rules) {
  if (!noted) return false;
  if (name == "_Netcdf4Dimid" || name == "_Netcdf4Coordinates") return true;
  if (name != "NAME" || !rules.forms.netcdf_types) return false;
  return !rules.is_scale || (value.is_string() && value.get_ref<const std::string&>().starts_with("This is a netCDF dimension"));
}

// A user's attribute whose name netCDF needs, or does not show.
bool is_reserved(const std::string& name, bool noted, const attribute_rules& rules) {
  if (!rules.forms.netcdf || !is_netcdf_bookkeeping(name)) return false;
  if (rules.forms.netcdf_types) return !(noted && (name == "_NCProperties" || name == "_nc3_strict" || name == "NAME"));
  return !noted && (rules.is_scale || name == "DIMENSION_LIST" || name == "REFERENCE_LIST" || name.starts_with("_Netcdf4"));
}

void write_attributes(
    hid_t object, const text::json& attributes, const text::json& notes, const attribute_rules& rules,
    reference_maker& references, std::uint64_t memory,
    const std::function<void(const std::string& name, bool skipped, const text::coded_reason& reason)>& report) {
  // maps, because json searches all members each time
  const auto of = [&](const char* key) {
    std::map<std::string, const text::json*> members;
    const auto entry = notes.find(key);
    if (entry == notes.end() || !entry->is_object()) return members;
    for (const auto& item : entry->items()) members.emplace(item.key(), &item.value());
    return members;
  };
  const auto types = of("attribute_types"), shapes = of("attribute_shapes"), plain = of("attribute_values");
  std::set<std::string> written;
  const auto write = [&](const std::string& key, const text::json& value, bool noted) {
    std::string name = text::unescape_name(key);
    if (rules.forms.netcdf_types) name = text::to_nfc(name);
    if (is_made_elsewhere(name, value, noted, rules)) return;
    try {
      const std::string fault = rules.forms.netcdf_types ? fault_of_netcdf_name(name) : "";
      if (!fault.empty()) throw unsupported_in_hdf5(reason_code::invalid_name, fault);
      if (is_reserved(name, noted, rules))
        throw unsupported_in_hdf5(reason_code::invalid_name, "netCDF keeps this name for itself");
      const auto note = types.find(key);
      attribute_spec f = attribute_spec_of(name, value, note == types.end() ? text::json(nullptr) : *note->second, noted, rules);
      if (const auto shape = shapes.find(key); shape != shapes.end()) take_shape(*shape->second, f);
      if (rules.forms.netcdf_types) make_flat(f);
      const hid_t in_file = rules.types.commit(f.type, name);
      write_attribute(object, name, f, in_file, references, memory);
      report(name, false, f.remark);
    } catch (const unsupported_in_hdf5& e) {
      report(name, true, e.reason());
    } catch (const hdf5::failure& e) {
      report(name, true, e.reason());
    }
    H5Eclear2(H5E_DEFAULT);
  };
  for (const auto& item : attributes.items()) {
    const std::string& key = item.key();
    if (rules.nwb && (key == "_LINKS" || key == "_DTYPE" || key == "_REFERENCE_FIELDS")) continue;
    const auto noted = plain.find(key);
    write(key, noted == plain.end() ? item.value() : *noted->second, noted != plain.end());
    written.insert(key);
  }
  for (const auto& [key, value] : plain) {
    if (!written.contains(key)) write(key, *value, true);
  }
}

}  // namespace zarrbits::exporting
