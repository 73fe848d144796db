// SPDX-License-Identifier: BSL-1.0
#include "reader/value_layout.hpp"

#include "text/json_text.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace zarrbits::reader {

namespace {

using hdf5::type_class;
using hdf5::type_description;

// True if readers know values of this type as they are stored.
bool is_known(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      const type_description t = hdf5::describe_type(type);
      return t.kind == type_class::integer && t.as_stored;
    }
    case H5T_BITFIELD:
    case H5T_TIME: return hdf5::describe_type(type).kind == type_class::integer;
    case H5T_FLOAT: {
      const type_description t = hdf5::describe_type(type);
      return (t.kind == type_class::floating && t.as_stored) || H5Tequal(type, H5T_NATIVE_LDOUBLE) > 0;
    }
    case H5T_STRING: return H5Tis_variable_str(type) == 0 && H5Tget_strpad(type) == H5T_STR_NULLPAD;
    case H5T_OPAQUE: return true;
    case H5T_ENUM:
    case H5T_ARRAY: return is_known(hdf5::handle(H5Tget_super(type), "get the base of a datatype"));
    case H5T_COMPOUND: {
      const int n = H5Tget_nmembers(type);
      for (int i = 0; i < n; ++i) {
        if (!is_known(hdf5::handle(H5Tget_member_type(type, static_cast<unsigned>(i)), "get the type of a member"))) return false;
      }
      return n > 0;
    }
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX: return is_known(hdf5::handle(H5Tget_super(type), "get the base of a complex type"));
#endif
    default: return false;
  }
}

// The type with texts padded by zeros, and numbers that a double does not hold as long doubles, and all else as stored; none if
// readers do not know some of it.
hdf5::handle zero_padded(hid_t type) {
  const H5T_class_t c = H5Tget_class(type);
  if (c == H5T_STRING && H5Tis_variable_str(type) == 0) {
    hdf5::handle text(H5Tcopy(type), "copy a datatype");
    hdf5::check(H5Tset_strpad(text, H5T_STR_NULLPAD), "create a string type");
    return text;
  }
  if (c == H5T_FLOAT && !is_known(type) && hdf5::describe_type(type).maybe_lossy)
    return hdf5::handle(H5Tcopy(H5T_NATIVE_LDOUBLE), "copy a datatype");
  if (c == H5T_COMPOUND && !is_known(type)) {
    hdf5::handle compound(H5Tcreate(H5T_COMPOUND, H5Tget_size(type)), "create a compound type");
    const int n = H5Tget_nmembers(type);
    for (int i = 0; i < n; ++i) {
      const auto index = static_cast<unsigned>(i);
      const hdf5::handle stored(H5Tget_member_type(type, index), "get the type of a member"), member = zero_padded(stored);
      if (!member || H5Tget_size(member) != H5Tget_size(stored)) return {};
      hdf5::check(H5Tinsert(compound, hdf5::member_name(type, index).c_str(), H5Tget_member_offset(type, index), member),
                  "create a compound type");
    }
    return compound;
  }
  return is_known(type) ? hdf5::handle(H5Tcopy(type), "copy a datatype") : hdf5::handle();
}

const char* order_of(hid_t type) { return H5Tget_size(type) > 1 && H5Tget_order(type) == H5T_ORDER_BE ? "big" : "little"; }

text::json json_of(hid_t type);

text::json json_of_compound(hid_t type) {
  text::json members = text::json::array();
  const int n = H5Tget_nmembers(type);
  for (int i = 0; i < n; ++i) {
    const auto index = static_cast<unsigned>(i);
    const hdf5::handle member(H5Tget_member_type(type, index), "get the type of a member");
    members.push_back({{"name", hdf5::text_or_base64(hdf5::member_name(type, index))},
                       {"offset", H5Tget_member_offset(type, index)},
                       {"type", json_of(member)}});
  }
  return {{"kind", "compound"}, {"size", H5Tget_size(type)}, {"members", members}};
}

text::json json_of_enumeration(hid_t type) {
  const type_description t = hdf5::describe_type(type);
  text::json names = text::json::array();
  for (const auto& [name, value] : t.names) names.push_back({hdf5::text_or_base64(name), value});
  return {{"kind", t.kind == type_class::boolean ? "bool" : "enum"},
          {"base", json_of(hdf5::handle(H5Tget_super(type), "get the base of an enumeration"))},
          {"names", names}};
}

// The type has values of one size, without addresses.
text::json json_of(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_TIME:
      return {{"kind", "int"},
              {"size", size},
              {"signed", H5Tget_class(type) == H5T_TIME || H5Tget_sign(type) == H5T_SGN_2},
              {"order", order_of(type)}};
    case H5T_BITFIELD: return {{"kind", "int"}, {"size", size}, {"signed", false}, {"order", order_of(type)}};
    case H5T_FLOAT: return {{"kind", "float"}, {"size", size}, {"order", order_of(type)}};
    case H5T_STRING: return {{"kind", "string"}, {"size", size}, {"utf8", H5Tget_cset(type) == H5T_CSET_UTF8}};
    case H5T_ENUM: return json_of_enumeration(type);
    case H5T_ARRAY: {
      std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(H5Tget_array_ndims(type), 0)));
      hdf5::check(H5Tget_array_dims2(type, dims.data()), "get the extent of an array type");
      return {{"kind", "array"}, {"shape", dims}, {"base", json_of(hdf5::handle(H5Tget_super(type), "get a base type"))}};
    }
    case H5T_COMPOUND: {
      const type_description t = hdf5::describe_type(type);
      const bool is_complex = t.kind == type_class::complex && t.as_stored;
      if (is_complex) return {{"kind", "complex"}, {"size", size}, {"order", t.big_endian ? "big" : "little"}};
      return json_of_compound(type);
    }
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX:
      return {{"kind", "complex"}, {"size", size}, {"order", order_of(hdf5::handle(H5Tget_super(type), "get a base type"))}};
#endif
    default: {
      text::json opaque = {{"kind", "opaque"}, {"size", size}};
      if (H5Tget_class(type) != H5T_OPAQUE) return opaque;
      if (char* tag = H5Tget_tag(type)) {
        opaque["tag"] = hdf5::text_or_base64(tag);
        H5free_memory(tag);
      }
      return opaque;
    }
  }
}

// The type has values that are packed.
text::json json_of_packed(const type_description& t) {
  if (!hdf5::holds_references(t)) return json_of(t.memory);
  switch (t.kind) {
    case type_class::text: return {{"kind", "text"}, {"utf8", H5Tget_cset(t.memory) == H5T_CSET_UTF8}};
    case type_class::sequence: return {{"kind", "sequence"}, {"base", json_of_packed(t.element())}};
    case type_class::array: return {{"kind", "array"}, {"shape", t.dims}, {"base", json_of_packed(t.element())}};
    case type_class::compound: {
      text::json members = text::json::array();
      for (const type_description& m : t.parts)
        members.push_back({{"name", hdf5::text_or_base64(m.name)}, {"type", json_of_packed(m)}});
      return {{"kind", "compound"}, {"members", members}};
    }
    case type_class::region_reference: return {{"kind", "region"}};
    default: return {{"kind", "reference"}};
  }
}

void append_text(std::string& out, std::string_view text) {
  append_length(out, text.size());
  out += text;
}

void pack_value(const type_description& t, const std::byte* p, hdf5::reference_reader& references, std::string& out) {
  if (!hdf5::holds_references(t)) {
    out.append(reinterpret_cast<const char*>(p), t.size);
    return;
  }
  switch (t.kind) {
    case type_class::text: return append_text(out, hdf5::text_of(t, p));
    case type_class::sequence: {
      hvl_t v;
      std::memcpy(&v, p, sizeof v);
      const std::size_t n = v.p ? v.len : 0, size = t.element().size;
      append_length(out, n);
      const auto* item = static_cast<const std::byte*>(v.p);
      if (!hdf5::holds_references(t.element())) {
        if (n > 0) out.append(reinterpret_cast<const char*>(item), n * size);
        return;
      }
      for (std::size_t i = 0; i < n; ++i) pack_value(t.element(), item + i * size, references, out);
      return;
    }
    case type_class::array:
      for (std::size_t i = 0; i * t.element().size < t.size; ++i)
        pack_value(t.element(), p + i * t.element().size, references, out);
      return;
    case type_class::compound:
      for (const type_description& m : t.parts) pack_value(m, p + m.offset, references, out);
      return;
    case type_class::region_reference: return append_text(out, text::json_text(references.region(p)));
    default: return append_text(out, text::json_text(references.object(p)));
  }
}

}  // namespace

value_layout::value_layout(hid_t stored) : stored_(hdf5::describe_type(stored)) {
  is_stored_ = is_known(stored);
  if (is_stored_) {
    memory_ = hdf5::handle(H5Tcopy(stored), "copy a datatype");
    size_ = H5Tget_size(stored);
    json_ = json_of(memory_);
    return;
  }
  obstacle_ = hdf5::unsupported_reason(stored_);
  if (!obstacle_.empty()) {
    json_ = {{"kind", "unsupported"}, {"reason", obstacle_}};
    return;
  }
  memory_ = zero_padded(stored);
  if (memory_) {
    size_ = H5Tget_size(memory_);
    json_ = json_of(memory_);
    return;
  }
  size_ = stored_.size;
  is_variable_ = hdf5::holds_references(stored_);
  json_ = json_of_packed(stored_);
}

void value_layout::pack(const std::byte* values, std::uint64_t count, hdf5::reference_reader& references,
                        std::string& out) const {
  if (!is_variable_) {
    out.append(reinterpret_cast<const char*>(values), static_cast<std::size_t>(count * size_));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) pack_value(stored_, values + i * size_, references, out);
}

void append_length(std::string& out, std::uint64_t length) {
  for (unsigned shift = 0; shift < 64; shift += 8) out += static_cast<char>(length >> shift & 0xFF);
}

}  // namespace zarrbits::reader
