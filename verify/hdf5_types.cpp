// SPDX-License-Identifier: BSL-1.0
#include "verify/hdf5_types.hpp"

#include "hdf5/h5.hpp"
#include "text/name_escaping.hpp"
#include "verify/value_format.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace zarrbits::verification {

namespace {

constexpr unsigned max_depth = 32;

std::string order_name(H5T_order_t order) {
  switch (order) {
    case H5T_ORDER_LE: return "little-endian";
    case H5T_ORDER_BE: return "big-endian";
    case H5T_ORDER_VAX: return "in VAX order";
    default: return "of mixed or unknown byte order";
  }
}

std::string padding_name(H5T_str_t padding) {
  switch (padding) {
    case H5T_STR_NULLTERM: return "null-terminated";
    case H5T_STR_NULLPAD: return "null-padded";
    case H5T_STR_SPACEPAD: return "space-padded";
    default: return "of unknown padding";
  }
}

std::string character_set_name(H5T_cset_t set) {
  return set == H5T_CSET_ASCII ? "ASCII" : set == H5T_CSET_UTF8 ? "UTF-8" : "of an unknown character set";
}

std::string plural(std::size_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string quoted_member(hid_t type, unsigned index) { return format_text(text::escape_name(hdf5::member_name(type, index))); }

unsigned member_count(hid_t type) {
  const int n = H5Tget_nmembers(type);
  if (n < 0) throw source_error("cannot read the members of a datatype: " + hdf5_reason());
  return static_cast<unsigned>(n);
}

std::vector<hsize_t> array_extent(hid_t type) {
  hsize_t dims[H5S_MAX_RANK] = {};
  const int rank = H5Tget_array_ndims(type);
  if (rank < 1 || rank > H5S_MAX_RANK || H5Tget_array_dims2(type, dims) < 0)
    throw source_error("cannot read the shape of an array type: " + hdf5_reason());
  return {dims, dims + rank};
}

std::string base_difference(hid_t first, hid_t second, unsigned depth) {
  const hdf5::handle a = checked(H5Tget_super(first), "cannot read the base of a datatype");
  const hdf5::handle b = checked(H5Tget_super(second), "cannot read the base of a datatype");
  return datatype_difference(a.get(), b.get(), depth + 1);
}

std::string compound_difference(hid_t first, hid_t second, unsigned depth) {
  const unsigned n = member_count(first), m = member_count(second);
  if (n != m) return in_both("it has " + plural(n, "member"), std::to_string(m));
  for (unsigned i = 0; i < n; ++i) {
    const std::string name = quoted_member(first, i);
    if (name != quoted_member(second, i))
      return in_both("its member " + std::to_string(i) + " is called " + name, quoted_member(second, i));
    const hdf5::handle a = checked(H5Tget_member_type(first, i), "cannot read a compound's member");
    const hdf5::handle b = checked(H5Tget_member_type(second, i), "cannot read a compound's member");
    if (const std::string reason = datatype_difference(a.get(), b.get(), depth + 1); !reason.empty())
      return "in its member " + name + ", " + reason;
    if (const std::size_t p = H5Tget_member_offset(first, i), q = H5Tget_member_offset(second, i); p != q)
      return in_both("its member " + name + " begins at byte " + std::to_string(p), std::to_string(q));
  }
  return "";
}

std::map<std::string, std::string> enum_members(hid_t type) {
  std::map<std::string, std::string> members;
  std::vector<std::byte> value(H5Tget_size(type));
  for (unsigned i = 0; i < member_count(type); ++i) {
    check(H5Tget_member_value(type, i, value.data()), "cannot read the values of an enum");
    members[hdf5::member_name(type, i)] = hex(value.data(), value.size());
  }
  return members;
}

std::string enum_difference(hid_t first, hid_t second, unsigned depth) {
  if (std::string reason = base_difference(first, second, depth); !reason.empty()) return reason;
  const auto a = enum_members(first), b = enum_members(second);
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return "its name " + format_text(text::escape_name(name)) + " is not in the second file";
    if (other->second != value)
      return in_both("its name " + format_text(text::escape_name(name)) + " has the value " + value, other->second);
  }
  for (const auto& [name, value] : b) {
    if (!a.contains(name)) return "its name " + format_text(text::escape_name(name)) + " is only in the second file";
  }
  return "";
}

std::string string_difference(hid_t first, hid_t second) {
  if (const H5T_cset_t a = H5Tget_cset(first), b = H5Tget_cset(second); a != b)
    return in_both("its texts are " + character_set_name(a), character_set_name(b));
  if (const H5T_str_t a = H5Tget_strpad(first), b = H5Tget_strpad(second); a != b)
    return in_both("its texts are " + padding_name(a), padding_name(b));
  return "";
}

std::string tag_of(hid_t type) {
  const std::unique_ptr<char, decltype(&H5free_memory)> tag(H5Tget_tag(type), &H5free_memory);
  return tag ? format_text(text::escape_name(tag.get())) : "none";
}

// Numbers, and types of later versions of HDF5.
std::string atomic_difference(hid_t first, hid_t second) {
  if (const H5T_order_t a = H5Tget_order(first), b = H5Tget_order(second); a != b)
    return in_both("it is " + order_name(a), order_name(b));
  if (const std::size_t a = H5Tget_precision(first), b = H5Tget_precision(second); a != b)
    return in_both("it has " + plural(a, "significant bit"), std::to_string(b));
  if (const int a = H5Tget_offset(first), b = H5Tget_offset(second); a != b)
    return in_both("its first significant bit is bit " + std::to_string(a), std::to_string(b));
  return H5Tequal(first, second) > 0 ? "" : "a property of it, such as its padding or the fields of its floats, is not the same";
}

// The bits of a number that have a meaning; empty if all have.
std::vector<std::byte> significant_bits(hid_t type, std::size_t size) {
  const H5T_order_t order = H5Tget_order(type);
  const std::size_t precision = H5Tget_precision(type);
  const int offset = H5Tget_offset(type);
  if ((order != H5T_ORDER_LE && order != H5T_ORDER_BE) || offset < 0 || precision == 0 || precision >= 8 * size) return {};
  const auto first = static_cast<std::size_t>(offset);
  std::vector<std::byte> mask(size);
  for (std::size_t bit = first; bit < std::min(8 * size, first + precision); ++bit)
    mask[order == H5T_ORDER_LE ? bit / 8 : size - 1 - bit / 8] |= std::byte{1} << bit % 8;
  return mask;
}

element_form base_form(hid_t type, unsigned depth) {
  const hdf5::handle base = checked(H5Tget_super(type), "cannot read the base of a datatype");
  return form_of(base.get(), depth + 1);
}

element_form compound_form(hid_t type, unsigned depth, std::size_t size) {
  element_form form;
  form.kind = element_form::kind_type::compound;
  for (unsigned i = 0; i < member_count(type); ++i) {
    const hdf5::handle member = checked(H5Tget_member_type(type, i), "cannot read a compound's member");
    element_form part = form_of(member.get(), depth + 1);
    part.name = hdf5::member_name(type, i);
    part.offset = H5Tget_member_offset(type, i);
    if (part.offset > size || part.size > size - part.offset) throw source_error("a compound's member lies outside of it");
    form.parts.push_back(std::move(part));
  }
  return form;
}

}  // namespace

std::string in_both(const std::string& first, const std::string& second) { return first + ", in the second file " + second; }

std::string datatype_difference(hid_t first, hid_t second, unsigned depth) {
  if (depth > max_depth) throw zarr::not_supported(reason_code::unsupported_feature, "types nested more than 32 deep");
  const H5T_class_t kind = H5Tget_class(first);
  const std::string name = describe(first).name, other = describe(second).name;
  if (kind != H5Tget_class(second) || (kind != H5T_ENUM && name != other)) return in_both("it is " + name, other);
  std::string reason;
  switch (kind) {
    case H5T_COMPOUND: reason = compound_difference(first, second, depth); break;
    case H5T_ENUM: reason = enum_difference(first, second, depth); break;
    case H5T_STRING: reason = string_difference(first, second); break;
    case H5T_VLEN: reason = base_difference(first, second, depth); break;
    case H5T_ARRAY: {
      const std::vector<hsize_t> a = array_extent(first), b = array_extent(second);
      if (a != b) return "it is an array of another shape";
      reason = base_difference(first, second, depth);
      break;
    }
    case H5T_OPAQUE:
      if (tag_of(first) != tag_of(second)) return in_both("its tag is " + tag_of(first), tag_of(second));
      break;
    case H5T_REFERENCE: break;
    default: reason = atomic_difference(first, second);
  }
  if (!reason.empty()) return reason;
  if (const std::size_t a = H5Tget_size(first), b = H5Tget_size(second); a != b)
    return in_both("it has " + plural(a, "byte"), std::to_string(b));
  return "";
}

bool element_form::is_plain() const {
  if (kind == kind_type::bits) return mask.empty();
  if (kind != kind_type::array && kind != kind_type::compound) return false;
  std::size_t used = 0;  // members may not overlap
  for (const element_form& part : parts) {
    if (!part.is_plain()) return false;
    used += part.size;
  }
  return used * count == size;
}

bool element_form::has_variable_parts() const {
  return kind == kind_type::variable_text || kind == kind_type::sequence ||
         std::any_of(parts.begin(), parts.end(), [](const element_form& part) { return part.has_variable_parts(); });
}

bool element_form::has_references() const {
  return kind == kind_type::object || kind == kind_type::region ||
         std::any_of(parts.begin(), parts.end(), [](const element_form& part) { return part.has_references(); });
}

element_form form_of(hid_t type, unsigned depth) {
  using kind_type = element_form::kind_type;
  if (depth > max_depth) throw zarr::not_supported(reason_code::unsupported_feature, "types nested more than 32 deep");
  element_form form;
  const std::size_t size = H5Tget_size(type);
  if (size == 0) throw source_error("cannot read the size of a datatype: " + hdf5_reason());
  switch (H5Tget_class(type)) {
    case H5T_COMPOUND: form = compound_form(type, depth, size); break;
    case H5T_ARRAY: {
      form.kind = kind_type::array;
      for (const hsize_t extent : array_extent(type)) {
        if (__builtin_mul_overflow(form.count, extent, &form.count))
          throw zarr::not_supported(reason_code::too_large, "array types of impossible size");
      }
      form.parts.push_back(base_form(type, depth));
      std::size_t bytes = 0;
      if (__builtin_mul_overflow(form.count, form.parts[0].size, &bytes) || bytes > size)
        throw source_error("an array type is larger than its elements allow");
      break;
    }
    case H5T_VLEN:
      form.kind = kind_type::sequence;
      form.parts.push_back(base_form(type, depth));
      break;
    case H5T_REFERENCE:
      if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) form.kind = kind_type::object;
      else if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) form.kind = kind_type::region;
      else throw zarr::not_supported(reason_code::unsupported_feature, "references of the kind introduced by HDF5 1.12");
      break;
    case H5T_STRING:
      if (H5Tis_variable_str(type) > 0) form.kind = kind_type::variable_text;
      break;
    case H5T_INTEGER:
    case H5T_BITFIELD:
    case H5T_FLOAT:
    case H5T_ENUM: form.mask = significant_bits(type, size); break;
    case H5T_NO_CLASS: throw source_error("cannot read the class of a datatype: " + hdf5_reason());
    default: break;
  }
  form.size = size;
  if (form.kind == kind_type::bits)
    form.type = std::make_shared<const hdf5::handle>(checked(H5Tcopy(type), "cannot copy a datatype"));
  return form;
}

source_type source_type_of(const element_form& form) {
  source_type t;
  t.kind = form.has_variable_parts() ? source_kind::variable_text : source_kind::opaque;
  t.size = form.size;
  return t;
}

std::string format_bits(const element_form& form, const std::byte* p) {
  const hid_t type = form.type->get();
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_STRING) return format_text({reinterpret_cast<const char*>(p), form.size});
  const bool is_number = kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM || kind == H5T_BITFIELD;
  if (!is_number || form.size > max_number_bytes) return hex(p, form.size);
  const source_type t = describe(type);
  if (t.kind != source_kind::integer && t.kind != source_kind::floating && t.kind != source_kind::bitfield)
    return hex(p, form.size);
  std::byte value[4 * max_number_bytes] = {};
  std::memcpy(value, p, form.size);
  const hdf5::handle memory = memory_type(t, type);
  if (H5Tconvert(type, memory.get(), 1, value, nullptr, H5P_DEFAULT) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return hex(p, form.size);
  }
  return format_source(t, value);
}

}  // namespace zarrbits::verification
