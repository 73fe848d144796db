// SPDX-License-Identifier: BSL-1.0
#include "export/type_form.hpp"

#include "text/shown.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace zarrbits::exporting {

using text::unshown;
using zarr::zarr_kind;
using zarr::zarr_type;

namespace {

constexpr unsigned deepest_type = 32;
constexpr std::size_t largest_type = std::size_t{1} << 30;

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

void same_in_memory(type_form& t) {
  t.memory = hdf5::handle(H5Tcopy(t.file), "copy a type");
  t.size = H5Tget_size(t.file);
}

[[noreturn]] void unknown(const text::json& note) {
  std::string text = text::json_text(note);
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  throw not_expressible("the notes describe its type as " + text + ", which is not a type that zarrbits writes");
}

std::string text_at(const text::json& note, const char* key) {
  const auto found = note.find(key);
  if (found == note.end() || !found->is_string()) unknown(note);
  return found->get<std::string>();
}

std::size_t number_at(const text::json& note, const char* key) {
  const auto found = note.find(key);
  if (found == note.end() || !found->is_number_unsigned()) unknown(note);
  const auto value = found->get<std::uint64_t>();
  if (value == 0 || value > largest_type) unknown(note);
  return static_cast<std::size_t>(value);
}

// int8 ... uint64, float16 ... float64, complex64, complex128, bool; empty `file` for another name.
type_form form_of_name(const std::string& name, bool big) {
  static const std::pair<const char*, std::size_t> sizes[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
  for (const auto& [bits, size] : sizes) {
    if (name == std::string("int") + bits) return integer_form(size, true, big);
    if (name == std::string("uint") + bits) return integer_form(size, false, big);
    if (name == std::string("float") + bits && size > 1) return float_form(size, big);
  }
  if (name == "bool") return boolean_form();
  if (name == "complex64" || name == "complex128") {
    const std::size_t size = name == "complex64" ? 4 : 8;
    std::vector<form_member> parts;
    parts.push_back({"r", 0, float_form(size, big)});
    parts.push_back({"i", 0, float_form(size, big)});
    type_form t = compound_form(std::move(parts));
    t.kind = form_kind::complex;
    t.big_endian = big;
    return t;
  }
  return {};
}

type_form form_of_fields(const text::json& note, const form_rules& rules, unsigned depth) {
  const auto fields = note.find("fields");
  if (fields == note.end() || !fields->is_array() || fields->empty()) unknown(note);
  std::vector<form_member> members;
  for (const text::json& field : *fields) {
    if (!field.is_object() || !field.contains("type")) unknown(note);
    members.push_back({unshown(text_at(field, "name")), 0, form_of_note(field["type"], rules, depth + 1)});
  }
  return compound_form(std::move(members));
}

}  // namespace

const type_form& type_form::base() const { return members.front().type; }

bool type_form::has_variable_parts() const {
  if (kind == form_kind::text && variable) return true;
  if (kind == form_kind::sequence || kind == form_kind::object_reference || kind == form_kind::region_reference) return true;
  return std::any_of(members.begin(), members.end(), [](const form_member& m) { return m.type.has_variable_parts(); });
}

bool type_form::has_converted_parts() const {
  return converted ||
         std::any_of(members.begin(), members.end(), [](const form_member& m) { return m.type.has_converted_parts(); });
}

bool type_form::holds_references() const {
  return kind == form_kind::object_reference || kind == form_kind::region_reference ||
         std::any_of(members.begin(), members.end(), [](const form_member& m) { return m.type.holds_references(); });
}

bool type_form::must_be_written_alone() const {
  if (kind == form_kind::array && base().kind == form_kind::compound && base().has_variable_parts()) return true;
  return std::any_of(members.begin(), members.end(), [](const form_member& m) { return m.type.must_be_written_alone(); });
}

type_form integer_form(std::size_t size, bool is_signed, bool big_endian) {
  type_form t;
  t.kind = form_kind::integer;
  t.is_signed = is_signed;
  t.big_endian = big_endian && size > 1;
  t.file = hdf5::handle(H5Tcopy(integer_id(size, is_signed, t.big_endian)), "copy an integer type");
  same_in_memory(t);
  return t;
}

type_form float_form(std::size_t size, bool big_endian) {
  type_form t;
  t.kind = form_kind::floating;
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

type_form boolean_form() {
  type_form t;
  t.kind = form_kind::boolean;
  t.is_signed = true;
  t.file = hdf5::handle(H5Tenum_create(H5T_STD_I8LE), "create an enumeration");
  std::int8_t value = 0;
  hdf5::check(H5Tenum_insert(t.file, "FALSE", &value), "create an enumeration");
  value = 1;
  hdf5::check(H5Tenum_insert(t.file, "TRUE", &value), "create an enumeration");
  same_in_memory(t);
  return t;
}

type_form text_form(std::size_t length, bool space_padded, const form_rules& rules) {
  type_form t;
  t.kind = form_kind::text;
  t.file = hdf5::handle(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(t.file, length), "create a string type");
  hdf5::check(H5Tset_strpad(t.file, space_padded   ? H5T_STR_SPACEPAD
                                  : rules.netcdf ? H5T_STR_NULLTERM
                                                 : H5T_STR_NULLPAD),
            "create a string type");
  same_in_memory(t);
  return t;
}

type_form variable_text_form() {
  type_form t;
  t.kind = form_kind::text;
  t.variable = true;
  t.file = hdf5::handle(H5Tcopy(H5T_C_S1), "copy a string type");
  hdf5::check(H5Tset_size(t.file, H5T_VARIABLE), "create a string type");
  hdf5::check(H5Tset_cset(t.file, H5T_CSET_UTF8), "create a string type");
  same_in_memory(t);
  return t;
}

type_form bytes_form(std::size_t length, const std::string& tag) {
  type_form t;
  if (tag.size() >= H5T_OPAQUE_TAG_MAX) throw not_expressible("the tag of its opaque type is longer than HDF5 allows");
  t.file = hdf5::handle(H5Tcreate(H5T_OPAQUE, length), "create an opaque type");
  hdf5::check(H5Tset_tag(t.file, tag.c_str()), "create an opaque type");
  same_in_memory(t);
  return t;
}

type_form reference_form(bool region) {
  type_form t;
  t.kind = region ? form_kind::region_reference : form_kind::object_reference;
  t.file = hdf5::handle(H5Tcopy(region ? H5T_STD_REF_DSETREG : H5T_STD_REF_OBJ), "copy a reference type");
  same_in_memory(t);
  return t;
}

type_form array_form(type_form base, std::vector<hsize_t> dims) {
  type_form t;
  t.kind = form_kind::array;
  if (dims.empty() || dims.size() > H5S_MAX_RANK) throw not_expressible("an array type has 1 to 32 dimensions");
  std::size_t size = base.size;
  for (const hsize_t d : dims) {
    if (d == 0 || d > largest_type || __builtin_mul_overflow(size, static_cast<std::size_t>(d), &size) || size > largest_type)
      throw not_expressible("an array type with an impossible extent");
  }
  const auto rank = static_cast<unsigned>(dims.size());
  t.file = hdf5::handle(H5Tarray_create2(base.file, rank, dims.data()), "create an array type");
  t.memory = hdf5::handle(H5Tarray_create2(base.memory, rank, dims.data()), "create an array type");
  t.size = size;
  t.dims = std::move(dims);
  t.members.push_back({"", 0, std::move(base)});
  return t;
}

type_form sequence_form(type_form base) {
  type_form t;
  t.kind = form_kind::sequence;
  t.file = hdf5::handle(H5Tvlen_create(base.file), "create a sequence type");
  t.memory = hdf5::handle(H5Tvlen_create(base.memory), "create a sequence type");
  t.size = sizeof(hvl_t);
  t.members.push_back({"", 0, std::move(base)});
  return t;
}

type_form compound_form(std::vector<form_member> members) {
  type_form t;
  t.kind = form_kind::compound;
  std::size_t in_file = 0;
  std::set<std::string> names;
  for (form_member& m : members) {
    if (m.name.empty() || m.name.find('\0') != std::string::npos || !names.insert(m.name).second)
      throw not_expressible("\"" + text::shown(m.name) + "\" is not a name that a member of a compound can have");
    if (m.type.has_variable_parts()) t.size = aligned(t.size);
    m.offset = t.size;
    t.size += m.type.size;
    in_file += H5Tget_size(m.type.file);
    if (t.size > largest_type || in_file > largest_type) throw not_expressible("a compound of more than 1 GiB");
  }
  if (std::any_of(members.begin(), members.end(), [](const form_member& m) { return m.type.has_variable_parts(); }))
    t.size = aligned(t.size);
  t.file = hdf5::handle(H5Tcreate(H5T_COMPOUND, in_file), "create a compound type");
  t.memory = hdf5::handle(H5Tcreate(H5T_COMPOUND, t.size), "create a compound type");
  in_file = 0;
  for (const form_member& m : members) {
    hdf5::check(H5Tinsert(t.file, m.name.c_str(), in_file, m.type.file), "create a compound type");
    hdf5::check(H5Tinsert(t.memory, m.name.c_str(), m.offset, m.type.memory), "create a compound type");
    in_file += H5Tget_size(m.type.file);
  }
  t.members = std::move(members);
  return t;
}

type_form enumeration_form(type_form base, const text::json& members) {
  if (!members.is_object() || members.empty()) throw not_expressible("an enumeration without names");
  // libhdf5 turns values without a name into -1 when it converts an enumeration
  if (base.kind != form_kind::integer || base.converted)
    throw not_expressible("an enumeration of integers that are not of 8, 16, 32 or 64 bits");
  type_form t = std::move(base);
  hdf5::handle type(H5Tenum_create(t.file), "create an enumeration");
  for (const auto& item : members.items()) {
    const std::string name = unshown(item.key());
    if (name.empty() || name.find('\0') != std::string::npos || !item.value().is_number_integer())
      throw not_expressible("its enumeration has a member that HDF5 cannot have");
    std::int64_t value = item.value().is_number_unsigned() ? static_cast<std::int64_t>(item.value().get<std::uint64_t>())
                                                           : item.value().get<std::int64_t>();
    const hid_t from = item.value().is_number_unsigned() ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
    hdf5::check(H5Tconvert(from, t.file, 1, &value, nullptr, H5P_DEFAULT), "convert a value of an enumeration");
    hdf5::check(H5Tenum_insert(type, name.c_str(), &value), "create an enumeration");
  }
  t.file = std::move(type);
  same_in_memory(t);
  return t;
}

type_form form_of_note(const text::json& note, const form_rules& rules, unsigned depth) {
  if (depth > deepest_type) throw not_expressible("a type nested deeper than " + std::to_string(deepest_type) + " levels");
  if (note.is_string()) {
    type_form t = form_of_name(note.get<std::string>(), false);
    if (!t.file) unknown(note);
    return t;
  }
  if (!note.is_object()) unknown(note);
  const std::string kind = text_at(note, "class");
  const bool big = note.contains("endian") && note["endian"] == "big";
  if (kind == "enum") {
    if (note.contains("stored")) throw not_expressible("an enumeration of integers that are not of 8, 16, 32 or 64 bits");
    return enumeration_form(form_of_name(text_at(note, "base"), big), note.value("members", text::json()));
  }
  if (kind == "opaque") {
    const std::size_t length = number_at(note, "length");
    const std::string tag = unshown(text_at(note, "tag"));
    if (type_form t = bytes_of_words(tag, length); t.file) return t;
    return bytes_form(length, tag);
  }
  if (kind == "object_reference" || kind == "region_reference") return reference_form(kind == "region_reference");
  if (kind == "string") {
    if (note.contains("length") && note["length"] == "variable") return variable_text_form();
    return text_form(number_at(note, "length"), note.value("padding", text::json()) == "space", rules);
  }
  if (kind == "compound") return form_of_fields(note, rules, depth);
  if (kind == "array" || kind == "sequence") {
    if (!note.contains("base")) unknown(note);
    type_form base = form_of_note(note["base"], rules, depth + 1);
    if (kind == "sequence") return sequence_form(std::move(base));
    std::vector<hsize_t> dims;
    const text::json shape = note.value("shape", text::json());
    if (!shape.is_array()) unknown(note);
    for (const text::json& d : shape) {
      if (!d.is_number_unsigned()) unknown(note);
      dims.push_back(d.get<hsize_t>());
    }
    return array_form(std::move(base), std::move(dims));
  }
  if (note.contains("stored")) return form_of_words(text_at(note, "stored"), kind, big);
  type_form t = form_of_name(kind, big);
  if (!t.file) unknown(note);
  return t;
}

type_form form_of_array(const zarr_type& type, bool big_endian, const text::json& members, const form_rules& rules) {
  switch (type.kind) {
    case zarr_kind::boolean: return boolean_form();
    case zarr_kind::signed_integer:
    case zarr_kind::unsigned_integer: {
      if (!type.unit.empty() || type.name.starts_with("numpy.")) {  // as h5py has numpy's times
        if (type.unit == "generic") throw not_expressible("times of numpy without a unit");
        type_form t = bytes_form(8, std::string("NUMPY:") + (big_endian ? ">" : "<") +
                                        (type.name == "numpy.timedelta64" ? "m8[" : "M8[") + type.unit + "]");
        t.is_ordered = true;
        t.big_endian = big_endian;
        return t;
      }
      if (type.bits != 8 * type.size) throw not_expressible("the data type " + type.name);
      type_form t = integer_form(type.size, type.kind == zarr_kind::signed_integer, big_endian);
      return members.is_object() ? enumeration_form(std::move(t), members) : std::move(t);
    }
    case zarr_kind::floating:
    case zarr_kind::complex: {
      type_form t = form_of_name(type.name, big_endian);
      if (!t.file) throw not_expressible("the data type " + type.name);
      return t;
    }
    case zarr_kind::raw: return bytes_form(type.size, "");
    case zarr_kind::terminated: return text_form(type.size, false, rules);
    case zarr_kind::text32:
    case zarr_kind::text: return variable_text_form();
    case zarr_kind::binary: return sequence_form(integer_form(1, false, false));
    case zarr_kind::record: {
      std::vector<form_member> parts;
      for (const zarr::zarr_field& f : type.fields)
        parts.push_back({f.name, 0, form_of_array(f.type, big_endian, nullptr, rules)});
      return compound_form(std::move(parts));
    }
  }
  throw not_expressible("the data type " + type.name);
}

}  // namespace zarrbits::exporting
