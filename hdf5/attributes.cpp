// SPDX-License-Identifier: BSL-1.0
#include "hdf5/attributes.hpp"

#include "array/chunk_grid.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/type_json.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t largest_attribute = 256U << 20;  // bytes in memory

herr_t collect_name(hid_t, const char* name, const H5A_info_t*, void* data) {
  try {
    static_cast<std::vector<std::string>*>(data)->push_back(name);
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
  return 0;
}

// HDF5's and netCDF's own attributes. Those that `export` cannot recreate are `preserved` in the notes of a netCDF file.
bool hidden(const std::string& name, bool scale, const attribute_form& form, bool& preserved) {
  if (name == "DIMENSION_LABELS" && form.netcdf) return false;  // libnetcdf shows it
  preserved = form.netcdf && (name == "_NCProperties" || name == "_Netcdf4Dimid" || name == "_Netcdf4Coordinates" ||
                              name == "_nc3_strict" || (scale && name == "NAME"));
  constexpr std::array<const char*, 7> internal = {"DIMENSION_LIST", "REFERENCE_LIST",      "DIMENSION_LABELS", "_NCProperties",
                                                   "_Netcdf4Dimid",  "_Netcdf4Coordinates", "_nc3_strict"};
  if (std::find(internal.begin(), internal.end(), name) != internal.end()) return true;
  return scale && (name == "CLASS" || name == "NAME");  // elsewhere, as in PyTables files, they are the user's
}

// Upper limit of the memory that a value takes until it is written, for each byte of it: JSON as a tree and as text, and copies
// of both.
constexpr std::uint64_t json_of_a_number = 96, json_of_a_byte = 6;  // a control character is \u0001

std::uint64_t json_factor(const type_description& t) {
  std::uint64_t max_factor = t.kind == type_class::text || t.kind == type_class::opaque ? json_of_a_byte : 0;
  if (t.parts.empty() && max_factor == 0)
    max_factor = json_of_a_number / std::max<std::size_t>(t.kind == type_class::complex ? t.size / 2 : t.size, 1);
  for (const type_description& p : t.parts) max_factor = std::max(max_factor, json_factor(p));
  return std::max<std::uint64_t>(max_factor, 1);
}

bool holds_regions(const type_description& t) {
  return t.kind == type_class::region_reference || std::any_of(t.parts.begin(), t.parts.end(), holds_regions);
}

std::uint64_t json_memory(const text::json& j) {
  if (j.is_string()) return json_of_a_number + json_of_a_byte * j.get_ref<const std::string&>().size();
  std::uint64_t total = json_of_a_number;
  if (j.is_structured()) {
    for (const text::json& part : j) total += json_memory(part);
  }
  return total;
}

// The memory that is left for the attributes of one object.
struct memory_budget {
  std::uint64_t total, remaining;
  void take(std::uint64_t bytes) {
    if (bytes > remaining)
      throw failure("as JSON it would take more than is left of " + text::format_bytes(total) +
                        " for the attributes of an object; increase `memory`",
                    reason_code::too_large);
    remaining -= bytes;
  }
};

// libhdf5 has all attributes of an object in memory when it lists them: empty if that is within `allowed` bytes.
std::string list_memory_error(hid_t object, std::uint64_t allowed) {
  constexpr std::uint64_t bytes_per_attribute = 1800;  // measured with 80,000 numbers and their JSON
  H5O_info_t info{};
  if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0) {  // of a damaged object; some may be listed all the same
    H5Eclear2(H5E_DEFAULT);
    return "";
  }
  if (info.num_attrs <= allowed / bytes_per_attribute) return "";
  return "the " + text::pluralize(info.num_attrs, "attribute") + " of the object cannot be listed: they may take " +
         text::format_bytes(bytes_per_attribute * info.num_attrs) + " of memory, more than the " + text::format_bytes(allowed) +
         " that are allowed; increase `memory`";
}

// The values of an attribute in memory, with what HDF5 allocated for them.
class attribute_values {
 public:
  attribute_values(hid_t attribute, const type_description& type, memory_budget& budget)
      : type_(type), space_(H5Aget_space(attribute), "get a dataspace") {
    null_ = H5Sget_simple_extent_type(space_) == H5S_NULL;
    if (null_) return;
    dims_ = extent(space_);
    const std::uint64_t n = array::product(dims_);
    if (n > largest_attribute / std::max<std::size_t>(type.size, 1))
      throw failure("it is larger than " + text::format_bytes(largest_attribute), reason_code::too_large);
    std::uint64_t lists = 1;  // count lists of nothing too: an extent of [1000000000, 0] has no bytes, but that many lists
    for (const std::uint64_t d : dims_) {
      budget.take(array::saturating_mul(lists, json_of_a_number));
      lists = array::saturating_mul(lists, d);
    }
    const std::uint64_t factor = json_factor(type);
    if (holds_variable(type) && n > 0) {
      // each string is somewhere in the file, so a few strings in a small file need not be counted
      hsize_t file = 0;
      const bool has_size = H5Fget_filesize(handle(H5Iget_file_id(attribute), "get the file of an attribute"), &file) >= 0;
      const bool is_small = has_size && single_level(type) &&
                            array::saturating_mul(array::saturating_mul(n, leaves(type)), array::saturating_mul(file, factor)) <=
                                budget.remaining / 8;
      if (!is_small) count_variable_bytes(attribute, type, n, budget.remaining / factor);
    } else {
      budget.take(array::saturating_mul(n, array::saturating_mul(type.size, factor)));
    }
    bytes_.resize(static_cast<std::size_t>(n) * type.size);
    if (n > 0) check(H5Aread(attribute, type.memory, bytes_.data()), "read the attribute");
    filled_ = n > 0;
  }
  ~attribute_values() {
    if (filled_ && holds_references(type_)) H5Dvlen_reclaim(type_.memory, space_, H5P_DEFAULT, bytes_.data());
  }
  attribute_values(const attribute_values&) = delete;
  attribute_values& operator=(const attribute_values&) = delete;

  bool null() const { return null_; }
  // The number of strings and sequences in a value, and whether any of them is nested.
  static std::uint64_t leaves(const type_description& t) {
    std::uint64_t total = t.parts.empty() || t.kind == type_class::sequence ? 1 : 0;
    for (const type_description& p : t.parts) total += t.kind == type_class::sequence ? 0 : leaves(p);
    return t.kind == type_class::array ? array::saturating_mul(total, array::product(t.dims)) : total;
  }
  static bool single_level(const type_description& t) {
    return std::all_of(t.parts.begin(), t.parts.end(), [&](const type_description& p) {
      return t.kind == type_class::sequence ? !holds_variable(p) : single_level(p);
    });
  }
  const array::extents& dims() const { return dims_; }
  std::size_t count() const { return bytes_.size() / type_.size; }
  const std::byte* value_at(std::size_t i) const { return bytes_.data() + i * type_.size; }

 private:
  const type_description& type_;
  handle space_;
  array::extents dims_;
  std::vector<std::byte> bytes_;
  bool null_ = false, filled_ = false;
};

text::json nested(const attribute_values& values, const type_description& type, std::size_t level, std::size_t& index,
                  reference_reader& references, memory_budget& budget) {
  if (level == values.dims().size()) {
    text::json value = value_json(type, values.value_at(index++), references);
    if (holds_regions(type) || holds_variable(type)) budget.take(json_memory(value));  // the others are counted already
    return value;
  }
  text::json list = text::json::array();
  for (std::uint64_t i = 0; i < values.dims()[level]; ++i)
    list.push_back(nested(values, type, level + 1, index, references, budget));
  return list;
}

bool has_text(const text::json& value) {
  return value.is_string() || (value.is_structured() && std::any_of(value.begin(), value.end(), has_text));
}

// True if `export` makes this type of the JSON of a value: an integer of 64 bits, a float64, h5py's bool, a text of variable
// length or, for netCDF, a single text of exactly its length.
bool implies_type(const type_description& t, const text::json& value, const attribute_form& form) {
  switch (t.kind) {
    case type_class::boolean: return !t.names.empty() && !is_int8_boolean(t) && !form.netcdf;
    case type_class::text:
      if (form.netcdf && !value.is_array())
        return !t.variable && !t.space_padded && value.is_string() && value.get_ref<const std::string&>().size() == t.size;
      return t.variable;
    case type_class::integer: return t.stored.empty() && t.size == 8 && t.is_signed && !t.big_endian;
    case type_class::floating: return t.stored.empty() && t.size == 8 && !t.big_endian && !has_text(value);
    default: return false;
  }
}

// An attribute as JSON: in plain form, and as the readers expect it.
struct attribute_json {
  text::json plain, visible;
  bool hidden = false;      // readers must not see it
  bool is_lossless = true;  // `visible` has the plain form
};

void show_as_netcdf(const attribute_values& v, const type_description& type, attribute_json& a) {
  if (v.null()) {
    a.visible = type.kind == type_class::text && !type.variable ? text::json("") : text::json::array();  // characters, or a list
    a.is_lossless = false;
  } else if (type.kind == type_class::text) {
    if (v.dims().empty() && !type.variable) {  // libnetcdf gives all of its bytes
      std::string bytes(reinterpret_cast<const char*>(v.value_at(0)), type.size);
      if (type.space_padded) std::replace(bytes.begin(), bytes.end(), '\0', ' ');  // as in the file
      a.visible = netcdf_text(bytes);
    } else if (v.dims().size() <= 1) {
      a.visible = text::json::array();
      for (std::size_t i = 0; i < v.count(); ++i) {
        const std::string_view text = text_of(type, v.value_at(i));
        a.visible.push_back(netcdf_text(text.substr(0, text.find('\0'))));
      }
      if (v.dims().empty()) a.visible = text::json(a.visible[0]);
    }
    a.is_lossless = a.visible == a.plain;
  }
  if (holds_object(a.visible)) a.hidden = true;
  const bool one = a.visible.is_array() && a.visible.size() == 1 && v.dims().size() == 1;
  if (one && !a.visible[0].is_structured()) a.visible = text::json(a.visible[0]);
  // netCDF-C has a single number as a list, and a single text not as a list; the notes record the exceptions
  const bool text = type.kind == type_class::text, single = !v.null() && !a.visible.is_structured();
  if (single && (text ? one : v.dims().empty())) a.is_lossless = false;
}

void show_fill(const attribute_values& v, const type_description& type, const type_description& array, const attribute_form& form,
               attribute_json& a) {
  const bool one = !v.null() && v.count() == 1 && v.dims().size() <= 1;
  a.visible = one ? fill_for_xarray(array, type, v.dims().empty() ? a.plain : a.plain[0]) : text::json(nullptr);
  a.hidden = a.visible.is_null();
  const bool same_kind = (type.kind == array.kind && type.size == array.size && type.big_endian == array.big_endian) ||
                         (type.kind == type_class::integer && array.kind == type_class::enumeration);
  a.is_lossless = same_kind && v.dims().empty() != form.netcdf;  // netCDF-C has a list of one
}

attribute_json form_of(const attribute_values& v, const type_description& type, const type_description* filled,
                       const attribute_form& form, text::json plain) {
  attribute_json a{std::move(plain), {}};
  a.visible = a.plain;
  if (filled) {
    show_fill(v, type, *filled, form, a);
    return a;
  }
  if (form.bare_nan) a.is_lossless = unquote_numbers(type, a.visible);
  if (form.netcdf) show_as_netcdf(v, type, a);
  return a;
}

// True if JSON needs more than a number: a NaN or an infinity of a float becomes a word, and so does a number that no double
// holds exactly.
bool is_lossy(hid_t attribute, hid_t stored, const type_description& type, std::size_t count) {
  if (!type.maybe_lossy) return false;
  if (type.kind != type_class::floating) return true;
  std::vector<std::byte> raw(count * H5Tget_size(stored));
  if (count == 0) return false;
  if (H5Aread(attribute, stored, raw.data()) < 0) return true;
  return is_conversion_lossy(stored, type.memory, raw, count);
}

}  // namespace

bool is_conversion_lossy(hid_t stored, hid_t memory, std::span<const std::byte> values, std::size_t count) {
  const std::size_t stored_bytes = H5Tget_size(stored), memory_bytes = H5Tget_size(memory);
  std::vector<std::byte> converted(count * std::max(stored_bytes, memory_bytes)), restored;
  std::memcpy(converted.data(), values.data(), count * stored_bytes);
  if (H5Tconvert(stored, memory, count, converted.data(), nullptr, H5P_DEFAULT) < 0) return true;
  restored = converted;
  if (H5Tconvert(memory, stored, count, restored.data(), nullptr, H5P_DEFAULT) < 0) return true;
  if (H5Tget_order(stored) != H5T_ORDER_LE) return std::memcmp(restored.data(), values.data(), count * stored_bytes) != 0;
  const std::size_t first = static_cast<std::size_t>(std::max(H5Tget_offset(stored), 0)), bits = H5Tget_precision(stored);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t bit = first; bit < first + bits; ++bit) {
      const auto index = i * stored_bytes + bit / 8;
      if ((std::to_integer<unsigned>(restored[index] ^ values[index]) >> (bit % 8)) & 1) return true;
    }
  }
  return false;
}

std::vector<std::string> text_attribute(hid_t object, const char* name) {
  std::vector<std::string> out;
  const handle attribute(H5Aopen(object, name, H5P_DEFAULT), "open an attribute");
  const handle stored(H5Aget_type(attribute), "get a type");
  const type_description type = describe_type(stored);
  if (type.kind != type_class::text) return out;
  memory_budget budget{64U << 20, 64U << 20};  // a name
  const attribute_values values(attribute, type, budget);
  for (std::size_t i = 0; !values.null() && i < values.count(); ++i) out.emplace_back(text_of(type, values.value_at(i)));
  return out;
}

std::string digest_note(hid_t root) {
  if (H5Aexists(root, text::digest_attribute) <= 0) return {};
  const std::vector<std::string> texts = text_attribute(root, text::digest_attribute);
  return texts.size() == 1 && texts[0].starts_with(text::digest_note_prefix) ? texts[0] : "";
}

H5_index_t attribute_index(hid_t object) {
  const H5I_type_t kind = H5Iget_type(object);
  const handle properties(kind == H5I_GROUP     ? H5Gget_create_plist(object)
                          : kind == H5I_DATASET ? H5Dget_create_plist(object)
                                                : H5I_INVALID_HID);
  unsigned order = 0;
  const bool tracked = properties && H5Pget_attr_creation_order(properties, &order) >= 0 && (order & H5P_CRT_ORDER_TRACKED) != 0;
  return tracked ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

herr_t list_attributes(hid_t object, H5_index_t index, H5_iter_order_t order, std::vector<std::string>& names) {
  hsize_t position = 0;
  return H5Aiterate2(object, index, order, &position, collect_name, &names);
}

text::json convert_attributes(hid_t object, reference_reader& references, const type_description* array_type,
                              const attribute_form& form, std::uint64_t memory, std::vector<attribute_report>& report) {
  text::json result = text::json::object();
  // a set for lookups: json searches all members each time that one is set
  std::unordered_set<std::string> used_keys;
  const auto add = [&](const std::string& key, text::json value) {
    used_keys.insert(key);
    static_cast<text::json::object_t::Container&>(result.get_ref<text::json::object_t&>()).emplace_back(key, std::move(value));
  };
  if (std::string reason = list_memory_error(object, memory); !reason.empty()) {
    report.push_back({.reason = std::move(reason), .code = reason_code::too_large, .skipped = true});
    return result;
  }
  memory_budget budget{memory, memory};
  text::object_builder types, shapes, hidden_values;
  std::vector<std::string> names;
  if (list_attributes(object, attribute_index(object), H5_ITER_INC, names) < 0) {
    report.push_back({.reason = "the attributes of the object cannot all be listed: " + last_error(),
                      .code = reason_code::unreadable,
                      .skipped = true});
  }
  bool scale = false;
  try {
    scale = is_dimension_scale(object);
  } catch (const failure&) {
    H5Eclear2(H5E_DEFAULT);
  }
  for (const std::string& name : names) {
    attribute_report e{.name = text::escape_name(name)};
    bool preserved = false;
    if (hidden(name, scale, form, preserved) && !preserved) {
      text::set_reason(e, reason_code::bookkeeping, "HDF5's own bookkeeping; not needed in Zarr");
      report.push_back(std::move(e));
      continue;
    }
    try {
      if (name == text::digest_attribute && !digest_note(object).empty()) {
        text::set_reason(e, reason_code::bookkeeping,
                         "the digest of the values in this file; add one to the store with `digest`");
        report.push_back(std::move(e));
        continue;
      }
      const handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open the attribute");
      const handle stored(H5Aget_type(attribute), "get the attribute's type");
      const type_description type = describe_type(stored);
      if (const std::string reason = unsupported_reason(type); !reason.empty())
        throw failure("its type is not supported: " + reason, reason_code::unsupported_type);
      const attribute_values values(attribute, type, budget);
      std::size_t index = 0;
      text::json plain = values.null() ? text::json(nullptr) : nested(values, type, 0, index, references, budget);
      std::string key = e.name;
      while (used_keys.contains(key) || key == text::annotation_key || key == text::hidden_annotation_key) key += "_";
      if (key != e.name) e.key = key;
      const bool fill = name == "_FillValue" && array_type;
      attribute_json a = form_of(values, type, fill ? array_type : nullptr, form, std::move(plain));
      const bool of_scales = form.netcdf && array_type && (name == "CLASS" || name == "NAME");
      a.hidden = a.hidden || of_scales || preserved;
      const bool noted = a.hidden || !a.is_lossless, has_known_type = fill && !noted && type.kind == type_class::floating;
      std::string original = key;  // has the plain form
      if (noted && form.notes_shown) {
        original = "_FillValue_source";
        while (used_keys.contains(original)) original += "_";
        e.key = original;
      }
      if (!has_known_type && (values.null() || values.count() == 0 || !implies_type(type, noted ? a.plain : a.visible, form))) {
        text::json description = datatype_json(type);
        budget.take(json_memory(description));
        types.add(original, std::move(description));
      }
      // lists of no values say how many they are, but not what would be in them
      const array::extents& dims = values.dims();
      const auto zero = std::find(dims.begin(), dims.end(), std::uint64_t{0});
      if (zero != dims.end() && zero + 1 != dims.end()) {
        budget.take(json_of_a_number * dims.size());
        shapes.add(original, text::json(dims));
      }
      if (a.hidden) used_keys.insert(key);
      else add(key, std::move(a.visible));
      if (noted) budget.take(json_memory(a.plain));
      if (original != key) add(original, std::move(a.plain));
      else if (noted) hidden_values.add(key, std::move(a.plain));
      if (a.hidden && original == key) {
        e.code = reason_code::changed_form;
        e.reason = std::string(preserved   ? "HDF5's own bookkeeping"
                               : fill      ? "xarray does not accept this fill value for an array of this type"
                               : of_scales ? "netCDF does not show an attribute of this name"
                                           : "netCDF has no attributes of this type") +
                   "; it is kept under zarrbits.attribute_values";
      }
      if (!values.null() && is_lossy(attribute, stored, type, values.count())) {
        e.lossy = true;
        text::set_reason(e, reason_code::rounded, "a value of a " + type.stored + " does not fit in a float64");
      }
    } catch (const failure& failure) {
      e.skipped = true;
      text::set_reason(e, failure.code, failure.what());
    }
    H5Eclear2(H5E_DEFAULT);
    report.push_back(std::move(e));
  }
  if (!types.empty()) result[text::annotation_key]["attribute_types"] = types.take();
  if (!shapes.empty()) result[text::annotation_key]["attribute_shapes"] = shapes.take();
  if (!hidden_values.empty()) result[text::annotation_key]["attribute_values"] = hidden_values.take();
  return result;
}

}  // namespace zarrbits::hdf5
