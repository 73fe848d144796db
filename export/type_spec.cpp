// SPDX-License-Identifier: BSL-1.0
#include "export/type_spec.hpp"

#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace zarrbits::exporting {

using text::unescape_name;
using zarr::zarr_kind;
using zarr::zarr_type;

namespace {

constexpr unsigned max_type_depth = 32;
constexpr std::size_t max_type_bytes = std::size_t{1} << 30;

hid_t integer_id(std::size_t size, bool is_signed, bool big) {
  switch (size) {
    case 1: return is_signed ? (big ? H5T_STD_I8BE : H5T_STD_I8LE) : (big ? H5T_STD_U8BE : H5T_STD_U8LE);
    case 2: return is_signed ? (big ? H5T_STD_I16BE : H5T_STD_I16LE) : (big ? H5T_STD_U16BE : H5T_STD_U16LE);
    case 4: return is_signed ? (big ? H5T_STD_I32BE : H5T_STD_I32LE) : (big ? H5T_STD_U32BE : H5T_STD_U32LE);
    default: return is_signed ? (big ? H5T_STD_I64BE : H5T_STD_I64LE) : (big ? H5T_STD_U64BE : H5T_STD_U64LE);
  }
}

// Pointers lie where the machine wants them, and where libhdf5 expects them.
std::size_t aligned(std::size_t offset) { return (offset + alignof(hvl_t) - 1) / alignof(hvl_t) * alignof(hvl_t); }

void same_in_memory(type_spec& t) {
  t.memory = hdf5::handle(H5Tcopy(t.file), "copy a type");
  t.size = H5Tget_size(t.file);
}

[[noreturn]] void unknown(const text::json& note) {
  std::string text = text::json_text(note);
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  throw unsupported_in_hdf5(reason_code::unsupported_feature,
                            "the notes describe its type as " + text + ", which is not a type that zarrbits writes");
}

std::string text_at(const text::json& note, const char* key) {
  const auto entry = note.find(key);
  if (entry == note.end() || !entry->is_string()) unknown(note);
  return entry->get<std::string>();
}

std::size_t number_at(const text::json& note, const char* key) {
  const auto entry = note.find(key);
  if (entry == note.end() || !entry->is_number_unsigned()) unknown(note);
  const auto value = entry->get<std::uint64_t>();
  if (value == 0 || value > max_type_bytes) unknown(note);
  return static_cast<std::size_t>(value);
}

// int8 ... uint64, float16 ... float64, complex64, complex128, bool; empty `file` for another name.
type_spec spec_of_name(const std::string& name, bool big) {
  static const std::pair<const char*, std::size_t> sizes[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
  for (const auto& [bits, size] : sizes) {
    if (name == std::string("int") + bits) return integer_spec(size, true, big);
    if (name == std::string("uint") + bits) return integer_spec(size, false, big);
    if (name == std::string("float") + bits && size > 1) return float_spec(size, big);
  }
  if (name == "bool") return boolean_spec();
  if (name == "complex64" || name == "complex128") {
    const std::size_t size = name == "complex64" ? 4 : 8;
    std::vector<member_spec> parts;
    parts.push_back({"r", 0, float_spec(size, big)});
    parts.push_back({"i", 0, float_spec(size, big)});
    type_spec t = compound_spec(std::move(parts));
    t.kind = type_kind::complex;
    t.big_endian = big;
    return t;
  }
  return {};
}

type_spec spec_of_fields(const text::json& note, const spec_rules& rules, unsigned depth) {
  const auto fields = note.find("fields");
  if (fields == note.end() || !fields->is_array() || fields->empty()) unknown(note);
  std::vector<member_spec> members;
  for (const text::json& field : *fields) {
    if (!field.is_object() || !field.contains("type")) unknown(note);
    members.push_back({unescape_name(text_at(field, "name")), 0, spec_of_note(field["type"], rules, depth + 1)});
  }
  return compound_spec(std::move(members));
}

}  // namespace

const type_spec& type_spec::base() const { return members.front().type; }

bool type_spec::has_variable_parts() const {
  if (kind == type_kind::text && variable) return true;
  if (kind == type_kind::sequence || kind == type_kind::object_reference || kind == type_kind::region_reference) return true;
  return std::any_of(members.begin(), members.end(), [](const member_spec& m) { return m.type.has_variable_parts(); });
}

bool type_spec::has_converted_parts() const {
  return converted ||
         std::any_of(members.begin(), members.end(), [](const member_spec& m) { return m.type.has_converted_parts(); });
}

bool type_spec::holds_references() const {
  return kind == type_kind::object_reference || kind == type_kind::region_reference ||
         std::any_of(members.begin(), members.end(), [](const member_spec& m) { return m.type.holds_references(); });
}

bool type_spec::must_be_written_alone() const {
  if (kind == type_kind::array && base().kind == type_kind::compound && base().has_variable_parts()) return true;
  return std::any_of(members.begin(), members.end(), [](const member_spec& m) { return m.type.must_be_written_alone(); });
}

type_spec integer_spec(std::size_t size, bool is_signed, bool big_endian) {
  type_spec t;
  t.kind = type_kind::integer;
  t.is_signed = is_signed;
  t.big_endian = big_endian && size > 1;
  t.file = hdf5::handle(H5Tcopy(integer_id(size, is_signed, t.big_endian)), "copy an integer type");
  same_in_memory(t);
  return t;
}

type_spec float_spec(std::size_t size, bool big_endian) {
  type_spec t;
  t.kind = type_kind::floating;
  t.is_signed = true;
  t.big_endian = big_endian;
  t.file = hdf5::handle(
      H5Tcopy(size == 8 ? (big_endian ? H5T_IEEE_F64BE : H5T_IEEE_F64LE) : (big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE)),
      "copy a float type");
  if (size == 2) {
    hdf5::check(H5Tset_fields(t.file, 15, 10, 5, 0, 10), "create a float of 16 bits");
    hdf5::check(H5Tset_precision(t.file, 16), "create a float of 16 bits");
    hdf5::check(H5Tset_ebias(t.file, 15), "create a float of 16 bits");
    hdf5::check(H5Tset_size(t.file, 2), "create a float of 16 bits");
  }
  same_in_memory(t);
  return t;
}

type_spec boolean_spec() {
  type_spec t;
  t.kind = type_kind::boolean;
  t.is_signed = true;
  t.file = hdf5::handle(H5Tenum_create(H5T_STD_I8LE), "create an enumeration");
  std::int8_t value = 0;
  hdf5::check(H5Tenum_insert(t.file, "FALSE", &value), "create an enumeration");
  value = 1;
  hdf5::check(H5Tenum_insert(t.file, "TRUE", &value), "create an enumeration");
  same_in_memory(t);
  return t;
}

type_spec text_spec(std::size_t length, bool space_padded, const spec_rules& rules) {
  type_spec t;
  t.kind = type_kind::text;
  t.file = hdf5::handle(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(t.file, length), "create a string type");
  hdf5::check(H5Tset_strpad(t.file, space_padded   ? H5T_STR_SPACEPAD
                                    : rules.netcdf ? H5T_STR_NULLTERM
                                                   : H5T_STR_NULLPAD),
              "create a string type");
  same_in_memory(t);
  return t;
}

type_spec variable_text_spec() {
  type_spec t;
  t.kind = type_kind::text;
  t.variable = true;
  t.file = hdf5::handle(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(t.file, H5T_VARIABLE), "create a string type");
  hdf5::check(H5Tset_cset(t.file, H5T_CSET_UTF8), "create a string type");
  same_in_memory(t);
  return t;
}

type_spec bytes_spec(std::size_t length, const std::string& tag) {
  type_spec t;
  if (tag.size() >= H5T_OPAQUE_TAG_MAX)
    throw unsupported_in_hdf5(reason_code::unsupported_type, "the tag of its opaque type is longer than HDF5 allows");
  t.file = hdf5::handle(H5Tcreate(H5T_OPAQUE, length), "create an opaque type");
  hdf5::check(H5Tset_tag(t.file, tag.c_str()), "create an opaque type");
  same_in_memory(t);
  return t;
}

type_spec reference_spec(bool region) {
  type_spec t;
  t.kind = region ? type_kind::region_reference : type_kind::object_reference;
  t.file = hdf5::handle(H5Tcopy(region ? H5T_STD_REF_DSETREG : H5T_STD_REF_OBJ), "copy a reference type");
  same_in_memory(t);
  return t;
}

type_spec array_spec(type_spec base, array::extents dims) {
  type_spec t;
  t.kind = type_kind::array;
  if (dims.empty() || dims.size() > H5S_MAX_RANK)
    throw unsupported_in_hdf5(reason_code::unsupported_type, "an array type has 1 to 32 dimensions");
  std::size_t size = base.size;
  for (const std::uint64_t d : dims) {
    if (d == 0 || d > max_type_bytes || __builtin_mul_overflow(size, static_cast<std::size_t>(d), &size) || size > max_type_bytes)
      throw unsupported_in_hdf5(reason_code::damaged, "an array type with an impossible extent");
  }
  const auto rank = static_cast<unsigned>(dims.size());
  t.file = hdf5::handle(H5Tarray_create2(base.file, rank, hdf5::to_hsize(dims).data()), "create an array type");
  t.memory = hdf5::handle(H5Tarray_create2(base.memory, rank, hdf5::to_hsize(dims).data()), "create an array type");
  t.size = size;
  t.dims = std::move(dims);
  t.members.push_back({"", 0, std::move(base)});
  return t;
}

type_spec sequence_spec(type_spec base) {
  type_spec t;
  t.kind = type_kind::sequence;
  t.file = hdf5::handle(H5Tvlen_create(base.file), "create a sequence type");
  t.memory = hdf5::handle(H5Tvlen_create(base.memory), "create a sequence type");
  t.size = sizeof(hvl_t);
  t.members.push_back({"", 0, std::move(base)});
  return t;
}

type_spec compound_spec(std::vector<member_spec> members) {
  type_spec t;
  t.kind = type_kind::compound;
  std::size_t in_file = 0;
  std::set<std::string> names;
  for (member_spec& m : members) {
    if (m.name.empty() || m.name.find('\0') != std::string::npos || !names.insert(m.name).second)
      throw unsupported_in_hdf5(reason_code::invalid_name,
                                "\"" + text::escape_name(m.name) + "\" is not a name that a member of a compound can have");
    if (m.type.has_variable_parts()) t.size = aligned(t.size);
    m.offset = t.size;
    t.size += m.type.size;
    in_file += H5Tget_size(m.type.file);
    if (t.size > max_type_bytes || in_file > max_type_bytes)
      throw unsupported_in_hdf5(reason_code::too_large, "a compound of more than 1 GiB");
  }
  if (std::any_of(members.begin(), members.end(), [](const member_spec& m) { return m.type.has_variable_parts(); }))
    t.size = aligned(t.size);
  t.file = hdf5::handle(H5Tcreate(H5T_COMPOUND, in_file), "create a compound type");
  t.memory = hdf5::handle(H5Tcreate(H5T_COMPOUND, t.size), "create a compound type");
  in_file = 0;
  for (const member_spec& m : members) {
    hdf5::check(H5Tinsert(t.file, m.name.c_str(), in_file, m.type.file), "create a compound type");
    hdf5::check(H5Tinsert(t.memory, m.name.c_str(), m.offset, m.type.memory), "create a compound type");
    in_file += H5Tget_size(m.type.file);
  }
  t.members = std::move(members);
  return t;
}

type_spec enumeration_spec(type_spec base, const text::json& members) {
  if (!members.is_object() || members.empty())
    throw unsupported_in_hdf5(reason_code::unsupported_type, "an enumeration without names");
  // libhdf5 turns values without a name into -1 when it converts an enumeration
  if (base.kind != type_kind::integer || base.converted)
    throw unsupported_in_hdf5(reason_code::unsupported_type, "an enumeration of integers that are not of 8, 16, 32 or 64 bits");
  type_spec t = std::move(base);
  hdf5::handle type(H5Tenum_create(t.file), "create an enumeration");
  for (const auto& item : members.items()) {
    const std::string name = unescape_name(item.key());
    if (name.empty() || name.find('\0') != std::string::npos || !item.value().is_number_integer())
      throw unsupported_in_hdf5(reason_code::unsupported_type, "its enumeration has a member that HDF5 cannot have");
    std::int64_t value = item.value().is_number_unsigned() ? static_cast<std::int64_t>(item.value().get<std::uint64_t>())
                                                           : item.value().get<std::int64_t>();
    const hid_t source_type = item.value().is_number_unsigned() ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
    hdf5::check(H5Tconvert(source_type, t.file, 1, &value, nullptr, H5P_DEFAULT), "convert a value of an enumeration");
    hdf5::check(H5Tenum_insert(type, name.c_str(), &value), "create an enumeration");
  }
  t.file = std::move(type);
  same_in_memory(t);
  return t;
}

type_spec spec_of_note(const text::json& note, const spec_rules& rules, unsigned depth) {
  if (depth > max_type_depth)
    throw unsupported_in_hdf5(reason_code::unsupported_type,
                              "a type nested deeper than " + std::to_string(max_type_depth) + " levels");
  if (note.is_string()) {
    type_spec t = spec_of_name(note.get<std::string>(), false);
    if (!t.file) unknown(note);
    return t;
  }
  if (!note.is_object()) unknown(note);
  const std::string kind = text_at(note, "class");
  const bool big = note.contains("endian") && note["endian"] == "big";
  if (kind == "enum") {
    if (note.contains("stored"))
      throw unsupported_in_hdf5(reason_code::unsupported_type, "an enumeration of integers that are not of 8, 16, 32 or 64 bits");
    return enumeration_spec(spec_of_name(text_at(note, "base"), big), note.value("members", text::json()));
  }
  if (kind == "opaque") {
    const std::size_t length = number_at(note, "length");
    const std::string tag = unescape_name(text_at(note, "tag"));
    if (type_spec t = parse_bytes_type(tag, length); t.file) return t;
    return bytes_spec(length, tag);
  }
  if (kind == "object_reference" || kind == "region_reference") return reference_spec(kind == "region_reference");
  if (kind == "string") {
    if (note.contains("length") && note["length"] == "variable") return variable_text_spec();
    return text_spec(number_at(note, "length"), note.value("padding", text::json()) == "space", rules);
  }
  if (kind == "compound") return spec_of_fields(note, rules, depth);
  if (kind == "array" || kind == "sequence") {
    if (!note.contains("base")) unknown(note);
    type_spec base = spec_of_note(note["base"], rules, depth + 1);
    if (kind == "sequence") return sequence_spec(std::move(base));
    array::extents dims;
    const text::json shape = note.value("shape", text::json());
    if (!shape.is_array()) unknown(note);
    for (const text::json& d : shape) {
      if (!d.is_number_unsigned()) unknown(note);
      dims.push_back(d.get<std::uint64_t>());
    }
    return array_spec(std::move(base), std::move(dims));
  }
  if (note.contains("stored")) return parse_number_type(text_at(note, "stored"), kind, big);
  type_spec t = spec_of_name(kind, big);
  if (!t.file) unknown(note);
  return t;
}

type_spec spec_of_array(const zarr_type& type, bool big_endian, const text::json& members, const spec_rules& rules) {
  switch (type.kind) {
    case zarr_kind::boolean: return boolean_spec();
    case zarr_kind::signed_integer:
    case zarr_kind::unsigned_integer: {
      if (!type.unit.empty() || type.name.starts_with("numpy.")) {  // as h5py has numpy's times
        if (type.unit == "generic") throw unsupported_in_hdf5(reason_code::unsupported_type, "times of numpy without a unit");
        type_spec t = bytes_spec(8, std::string("NUMPY:") + (big_endian ? ">" : "<") +
                                        (type.name == "numpy.timedelta64" ? "m8[" : "M8[") + type.unit + "]");
        t.is_ordered = true;
        t.big_endian = big_endian;
        return t;
      }
      if (type.bits != 8 * type.size) throw unsupported_in_hdf5(reason_code::unsupported_type, "the data type " + type.name);
      type_spec t = integer_spec(type.size, type.kind == zarr_kind::signed_integer, big_endian);
      return members.is_object() ? enumeration_spec(std::move(t), members) : std::move(t);
    }
    case zarr_kind::floating:
    case zarr_kind::complex: {
      type_spec t = spec_of_name(type.name, big_endian);
      if (!t.file) throw unsupported_in_hdf5(reason_code::unsupported_type, "the data type " + type.name);
      return t;
    }
    case zarr_kind::raw: return bytes_spec(type.size, "");
    case zarr_kind::terminated: return text_spec(type.size, false, rules);
    case zarr_kind::text32:
    case zarr_kind::text: return variable_text_spec();
    case zarr_kind::binary: return sequence_spec(integer_spec(1, false, false));
    case zarr_kind::record: {
      std::vector<member_spec> parts;
      for (const zarr::zarr_field& f : type.fields)
        parts.push_back({f.name, 0, spec_of_array(f.type, big_endian, nullptr, rules)});
      return compound_spec(std::move(parts));
    }
  }
  throw unsupported_in_hdf5(reason_code::unsupported_type, "the data type " + type.name);
}

}  // namespace zarrbits::exporting
