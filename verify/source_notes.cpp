// SPDX-License-Identifier: BSL-1.0
#include "verify/source_notes.hpp"

#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "verify/source_values.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr unsigned max_depth = 32;

json note_of(hid_t type, unsigned depth);

json unsupported_note() { return {{"class", "unsupported"}}; }

std::size_t bytes_for(std::size_t bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 0; }

bool is_whole(std::size_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

std::string in_bytes(std::size_t n) { return " in " + std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

std::string bit_offset(hid_t type) {
  const int offset = H5Tget_offset(type);
  return offset > 0 ? ", bit offset " + std::to_string(offset) : "";
}

// Only `name`, if that is enough.
json number_note(const std::string& name, bool big_endian, const std::string& stored) {
  if (!big_endian && stored.empty()) return name;
  json note = {{"class", name}};
  if (big_endian) note["endian"] = "big";
  if (!stored.empty()) note["stored"] = stored;
  return note;
}

json bytes_note(hid_t type, const std::string& tag) { return {{"class", "opaque"}, {"length", H5Tget_size(type)}, {"tag", tag}}; }

json integer_note(hid_t type) {
  const std::size_t size = H5Tget_size(type), bits = H5Tget_precision(type);
  const H5T_order_t order = H5Tget_order(type);
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2, big = order == H5T_ORDER_BE;
  const std::string name = is_signed ? "int" : "uint";
  if (is_whole(size) && bits == 8 * size && (order == H5T_ORDER_LE || big || size == 1))
    return number_note(name + std::to_string(bits), big && size > 1, "");
  const std::string stored = (is_signed ? "signed integer of " : "unsigned integer of ") + std::to_string(bits) + " bits" +
                             in_bytes(size) + bit_offset(type);
  if (size > max_number_bytes) return unsupported_note();
  if (bits > 64) return bytes_note(type, stored + (big ? ", big endian" : ""));
  const std::size_t value_size = std::max(bytes_for(bits), size <= 8 ? bytes_for(8 * size) : 0);
  return number_note(name + std::to_string(8 * value_size), false, stored);
}

// Bit fields and times.
json bits_note(hid_t type, const char* name, const std::string& integer) {
  const std::size_t size = H5Tget_size(type);
  const std::string stored = name + std::to_string(H5Tget_precision(type)) + " bits" + in_bytes(size) + bit_offset(type);
  if (!is_whole(size)) return bytes_note(type, stored);
  return number_note(integer + std::to_string(8 * size), size > 1 && H5Tget_order(type) == H5T_ORDER_BE, stored);
}

json float_note(hid_t type) {
  const std::size_t size = H5Tget_size(type), bits = H5Tget_precision(type);
  const H5T_order_t order = H5Tget_order(type);
  std::size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
  check(H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa), "cannot read the fields of a float");
  const std::size_t bias = H5Tget_ebias(type);
  if (describe(type).exact) return number_note("float" + std::to_string(bits), order == H5T_ORDER_BE, "");
  std::string stored = "float of " + std::to_string(bits) + " bits (" + std::to_string(exponent) + " exponent, " +
                       std::to_string(mantissa) + " mantissa)" + in_bytes(size) + (order == H5T_ORDER_VAX ? ", VAX order" : "");
  if (size > max_number_bytes) return unsupported_note();
  if (bits > 8 * size) return bytes_note(type, stored + (order == H5T_ORDER_BE ? ", big endian" : ""));
  const bool single = exponent <= 8 && mantissa <= 23 && bias + mantissa <= 127 + 23 && (1U << exponent) - 1 <= 128 + bias;
  return number_note(single ? "float32" : "float64", false, stored);
}

std::string member_name(hid_t type, unsigned i) {
  const std::unique_ptr<char, decltype(&H5free_memory)> name(H5Tget_member_name(type, i), &H5free_memory);
  if (!name) throw source_error("cannot read the name of a member: " + hdf5_reason());
  return name.get();
}

json text_note(hid_t type) {
  if (H5Tis_variable_str(type) > 0) return {{"class", "string"}, {"length", "variable"}};
  const bool spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  return {{"class", "string"}, {"length", H5Tget_size(type)}, {"padding", spaces ? "space" : "null"}};
}

// The note of a complex number, from that of its parts.
json complex_note(json note) {
  json& name = note.is_object() ? note["class"] : note;
  name = name == "float32" ? "complex64" : "complex128";
  return note;
}

json compound_note(hid_t type, unsigned depth) {
  json fields = json::array();
  std::set<std::string> names;
  const int n = H5Tget_nmembers(type);
  for (unsigned i = 0; n > 0 && i < static_cast<unsigned>(n); ++i) {
    const hdf5::handle member = checked(H5Tget_member_type(type, i), "cannot read a compound's member");
    const std::string name = member_name(type, i);
    if (!names.insert(name).second) return unsupported_note();
    fields.push_back({{"name", text::escape_name(name)}, {"type", note_of(member.get(), depth + 1)}});
  }
  // h5py's complex numbers
  const source_type t = describe(type);
  if (fields.size() == 2 && fields[0]["name"] == "r" && fields[1]["name"] == "i" && fields[0]["type"] == fields[1]["type"] &&
      t.members[0].type.kind == source_kind::floating && t.members[0].type.size >= 4) {
    return complex_note(fields[0]["type"]);
  }
  return {{"class", "compound"}, {"fields", std::move(fields)}};
}

json note_of(hid_t type, unsigned depth) {
  if (depth > max_depth) return unsupported_note();
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return integer_note(type);
    case H5T_FLOAT: return float_note(type);
    case H5T_BITFIELD: return bits_note(type, "bitfield of ", "uint");
    case H5T_TIME: return bits_note(type, "time of ", "int");
    case H5T_STRING: return text_note(type);
    case H5T_OPAQUE: {
      const std::unique_ptr<char, decltype(&H5free_memory)> tag(H5Tget_tag(type), &H5free_memory);
      return bytes_note(type, tag ? text::escape_name(tag.get()) : "");
    }
    case H5T_ENUM: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read an enum");
      const json integer = integer_note(base.get());
      const source_type t = describe(type);
      if (t.is_bool && t.size == 1) return "bool";
      if (t.kind != source_kind::integer) return unsupported_note();
      json note = {{"class", "enum"}, {"base", integer.is_object() ? integer["class"] : integer}, {"members", enum_note(type)}};
      if (integer.contains("stored")) note["stored"] = integer["stored"];
      return note;
    }
    case H5T_COMPOUND: return compound_note(type, depth);
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read a complex type");
      return describe(type).kind == source_kind::compound ? complex_note(float_note(base.get())) : unsupported_note();
    }
#endif
    case H5T_ARRAY: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read an array type");
      const source_type t = describe(type);
      if (t.kind != source_kind::array) return unsupported_note();
      return {{"class", "array"}, {"shape", t.dims}, {"base", note_of(base.get(), depth + 1)}};
    }
    case H5T_VLEN: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read a sequence type");
      return {{"class", "sequence"}, {"base", note_of(base.get(), depth + 1)}};
    }
    case H5T_REFERENCE:
      if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) return {{"class", "object_reference"}};
      if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) return {{"class", "region_reference"}};
      return unsupported_note();
    default: return unsupported_note();
  }
}

bool is_unsupported(const json& note) { return note.is_object() && note.value("class", json()) == "unsupported"; }

// An unsupported part may make the whole unsupported.
bool holds_unsupported(const json& note) {
  return is_unsupported(note) || (note.is_structured() && std::any_of(note.begin(), note.end(), holds_unsupported));
}

}  // namespace

json type_note(hid_t type) { return note_of(type, 0); }

json enum_note(hid_t type) {
  json members = json::object();
  const source_type t = describe(type);
  const hdf5::handle base = checked(H5Tget_super(type), "cannot read an enum");
  if (t.kind != source_kind::integer || H5Tget_size(base.get()) > max_number_bytes) return members;
  const int n = H5Tget_nmembers(type);
  for (unsigned i = 0; n > 0 && i < static_cast<unsigned>(n); ++i) {
    std::uint64_t value[max_number_bytes / sizeof(std::uint64_t)] = {};
    check(H5Tget_member_value(type, i, value), "cannot read a value of an enum");
    check(H5Tconvert(base.get(), t.is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, 1, value, nullptr, H5P_DEFAULT),
          "cannot read a value of an enum");
    members[text::escape_name(member_name(type, i))] = t.is_signed ? json(static_cast<std::int64_t>(value[0])) : json(value[0]);
  }
  return members;
}

std::string type_difference(const json& source, const json& store) {
  if (source == store || (holds_unsupported(source) && is_unsupported(store))) return "";
  if (holds_unsupported(source) && holds_unsupported(store)) return "";
  const auto text = [](const json& j) {
    const std::string serialized = text::sorted_json_text(j);
    return serialized.size() > 200 ? serialized.substr(0, 200) + "..." : serialized;
  };
  return "source " + text(source) + ", store " + text(store);
}

}  // namespace zarrbits::verification
