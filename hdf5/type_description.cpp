// SPDX-License-Identifier: BSL-1.0
#include "hdf5/type_description.hpp"

#include "hdf5/values_json.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace zarrbits::hdf5 {

namespace {

constexpr std::size_t largest_number =
    16;  // bytes; damaged files claim numbers of 64 KiB in chunks of 4-byte ones, which makes libhdf5 crash
constexpr unsigned deepest_type = 32;  // people nest types; a file that goes deeper is hostile

struct float_layout {
  std::size_t spos, epos, esize, mpos, msize, ebias;
  friend bool operator==(const float_layout&, const float_layout&) = default;
};

float_layout layout_of(hid_t t) {
  float_layout l{};
  check(H5Tget_fields(t, &l.spos, &l.epos, &l.esize, &l.mpos, &l.msize), "get the fields of a float");
  l.ebias = H5Tget_ebias(t);
  return l;
}

std::size_t standard_size(std::size_t bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 0; }

hid_t standard_integer(std::size_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
    case 2: return is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
    case 4: return is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
    default: return is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
  }
}

void unsupported(type_description& t, std::string reason) {
  t.kind = type_class::unsupported;
  t.reason = std::move(reason);
}

// A number without a Zarr type: its stored bytes, so that libhdf5 has nothing to convert.
void describe_bytes(type_description& t, hid_t type) {
  t.kind = type_class::opaque;
  t.memory = handle(H5Tcopy(type), "copy a type");
  t.size = H5Tget_size(type);
}

void describe_integer(type_description& t, hid_t type) {
  t.kind = type_class::integer;
  const std::size_t size = H5Tget_size(type), precision = H5Tget_precision(type);
  const int offset = H5Tget_offset(type);
  t.is_signed = H5Tget_sign(type) == H5T_SGN_2;
  const H5T_order_t order = H5Tget_order(type);
  const bool plain_order = order == H5T_ORDER_LE || order == H5T_ORDER_BE || size == 1;
  if (size == standard_size(8 * size) && size != 0 && precision == 8 * size && plain_order) {
    t.memory = handle(H5Tcopy(type), "copy an integer type");
    t.size = size;
    t.big_endian = order == H5T_ORDER_BE && size > 1;
    return;
  }
  t.stored = (t.is_signed ? "signed" : "unsigned") + std::string(" integer of ") + std::to_string(precision) + " bits in " +
             text::pluralize(size, "byte") + (offset > 0 ? ", bit offset " + std::to_string(offset) : "");
  if (size > largest_number) return unsupported(t, t.stored);
  if (standard_size(precision) == 0) {
    t.big_endian = order == H5T_ORDER_BE;
    if (t.big_endian) t.stored += ", big endian";
    t.wide_integer = plain_order && precision == 8 * size;
    return describe_bytes(t, type);
  }
  // an integer of 12 bits in 2 bytes stays one of 2 bytes; an integer of 3 bytes becomes one of 4
  const std::size_t target_size = std::max(standard_size(precision), size <= 8 ? standard_size(8 * size) : 0);
  t.precision = static_cast<unsigned>(precision);
  t.bit_offset = static_cast<unsigned>(std::max(offset, 0));
  t.memory = handle(H5Tcopy(standard_integer(target_size, t.is_signed)), "copy an integer type");
  t.size = target_size;
  t.as_stored = false;
}

void describe_float(type_description& t, hid_t type) {
  t.kind = type_class::floating;
  t.is_signed = true;
  const std::size_t size = H5Tget_size(type);
  const float_layout l = layout_of(type);
  const H5T_order_t order = H5Tget_order(type);
  const bool ieee = (order == H5T_ORDER_LE || order == H5T_ORDER_BE) && H5Tget_norm(type) == H5T_NORM_IMPLIED &&
                    H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0;
  if (ieee &&
      ((size == 2 && l == float_layout{15, 10, 5, 0, 10, 15}) || (size == 4 && l == float_layout{31, 23, 8, 0, 23, 127}) ||
       (size == 8 && l == float_layout{63, 52, 11, 0, 52, 1023}))) {
    t.memory = handle(H5Tcopy(type), "copy a float type");
    t.size = size;
    t.big_endian = order == H5T_ORDER_BE;
    return;
  }
  t.stored = "float of " + std::to_string(H5Tget_precision(type)) + " bits (" + std::to_string(l.esize) + " exponent, " +
             std::to_string(l.msize) + " mantissa) in " + text::pluralize(size, "byte");
  if (order == H5T_ORDER_VAX) t.stored += ", VAX order";
  if (size > largest_number) return unsupported(t, t.stored);
  if (H5Tget_precision(type) > 8 * size) {
    if (order == H5T_ORDER_BE) t.stored += ", big endian";
    return describe_bytes(t, type);
  }
  // the largest exponent, and the smallest number above zero, which has the exponent 1 and the last bit of the mantissa
  const auto holds = [&](std::size_t esize, std::size_t msize, std::size_t ebias) {
    return l.esize <= esize && l.msize <= msize && (std::size_t{1} << l.esize) + ebias <= (std::size_t{1} << esize) + l.ebias &&
           l.ebias + l.msize <= ebias + msize;
  };
  const bool in_single = holds(8, 23, 127);
  t.maybe_lossy = !in_single && !holds(11, 52, 1023);
  t.memory = handle(H5Tcopy(in_single ? H5T_IEEE_F32LE : H5T_IEEE_F64LE), "copy a float type");
  t.size = in_single ? 4 : 8;
  t.as_stored = false;
}

void describe_enumeration(type_description& t, hid_t type) {
  const handle base(H5Tget_super(type), "get the base of an enumeration");
  type_description b;
  describe_integer(b, base);
  if (H5Tget_class(base) != H5T_INTEGER || b.kind != type_class::integer) {
    return unsupported(t, "enumeration over " + (b.stored.empty() ? std::string("a type that is not an integer") : b.stored));
  }
  t.kind = type_class::enumeration;
  t.is_signed = b.is_signed;
  t.big_endian = b.big_endian;
  t.size = b.size;
  t.as_stored = b.as_stored;
  t.stored = b.stored;
  t.precision = b.precision;
  t.bit_offset = b.bit_offset;
  // libhdf5 converts enumerations by name, and turns unnamed values into -1; it keeps every value of a number
  t.memory = handle(H5Tcopy(b.as_stored ? type : b.memory), "copy an enumeration");
  const int n = H5Tget_nmembers(type);
  std::vector<std::byte> value(std::max(H5Tget_size(type), b.size));
  for (int i = 0; i < n; ++i) {
    check(H5Tget_member_value(type, static_cast<unsigned>(i), value.data()), "get a value of an enumeration");
    if (!b.as_stored)
      check(H5Tconvert(base, b.memory, 1, value.data(), nullptr, H5P_DEFAULT), "convert a value of an enumeration");
    t.names.emplace_back(member_name(type, static_cast<unsigned>(i)), number_json(b, value.data()));
  }
  std::set<std::string_view> unique_names;  // damaged files repeat names
  for (const auto& [name, number] : t.names) {
    if (!unique_names.insert(name).second)
      return unsupported(t, "enumeration with two members named \"" + text::escape_name(name) + "\"");
  }
  if (t.size == 1 && n == 2) {
    const auto has_member = [&](std::size_t i, const char* name, int v) {
      return t.names[i].first == name && t.names[i].second == v;
    };
    if ((has_member(0, "FALSE", 0) && has_member(1, "TRUE", 1)) || (has_member(1, "FALSE", 0) && has_member(0, "TRUE", 1)))
      t.kind = type_class::boolean;
  }
}

void describe_text(type_description& t, hid_t type) {
  t.kind = type_class::text;
  t.variable = H5Tis_variable_str(type) > 0;
  if (t.variable) {
    t.memory = handle(H5Tcopy(H5T_C_S1), "copy a string type");
    check(H5Tset_size(t.memory, H5T_VARIABLE), "create a string type");
    check(H5Tset_cset(t.memory, H5Tget_cset(type)), "create a string type");
    t.size = sizeof(char*);
    t.as_stored = false;
    return;
  }
  t.memory = handle(H5Tcopy(type), "copy a string type");
  // null-padded in memory: bytes after the end of a null-terminated string in the file are not part of it
  t.space_padded = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  t.as_stored = H5Tget_strpad(type) == H5T_STR_NULLPAD;
  check(H5Tset_strpad(t.memory, H5T_STR_NULLPAD), "create a string type");
  t.size = H5Tget_size(t.memory);
}

bool is_complex(const type_description& t, std::string_view real, std::string_view imaginary) {
  return t.kind == type_class::compound && t.parts.size() == 2 && t.parts[0].name == real && t.parts[1].name == imaginary &&
         t.parts[0].kind == type_class::floating && t.parts[1].kind == type_class::floating &&
         t.parts[0].size == t.parts[1].size && t.parts[0].size >= 4 && t.parts[0].big_endian == t.parts[1].big_endian &&
         t.parts[0].stored == t.parts[1].stored;
}

void describe_compound(type_description& t, hid_t type, unsigned depth) {
  t.kind = type_class::compound;
  const int n = H5Tget_nmembers(type);
  check(n, "count the members of a compound");
  std::size_t offset = 0;
  std::set<std::string> unique_names;  // damaged files repeat names
  for (int i = 0; i < n; ++i) {
    const handle member(H5Tget_member_type(type, static_cast<unsigned>(i)), "get the type of a member");
    type_description m = describe_type(member, depth + 1);
    m.name = member_name(type, static_cast<unsigned>(i));
    m.offset = offset;
    if (!unique_names.insert(m.name).second)
      return unsupported(t, "compound with two members named \"" + text::escape_name(m.name) + "\"");
    const std::size_t member_offset = H5Tget_member_offset(type, static_cast<unsigned>(i)), compound_size = H5Tget_size(type);
    if (member_offset > compound_size || H5Tget_size(member) > compound_size - member_offset) {
      throw failure("member \"" + text::escape_name(m.name) + "\" of a compound reaches beyond its end");
    }
    if (m.kind == type_class::unsupported) t.reason = "member \"" + text::escape_name(m.name) + "\": " + m.reason;
    t.as_stored = t.as_stored && m.as_stored && H5Tget_member_offset(type, static_cast<unsigned>(i)) == offset;
    t.maybe_lossy = t.maybe_lossy || m.maybe_lossy;
    offset += m.size;
    t.parts.push_back(std::move(m));
  }
  t.size = offset;
  t.as_stored = t.as_stored && H5Tget_size(type) == offset;
  if (!t.reason.empty()) return;  // members can still be read one by one
  if (t.size == 0) return unsupported(t, "compound without members");
  t.memory = handle(H5Tcreate(H5T_COMPOUND, t.size), "create a compound type");
  for (const type_description& m : t.parts)
    check(H5Tinsert(t.memory, m.name.c_str(), m.offset, m.memory), "create a compound type");
  take_for_complex(t, "r", "i");  // as h5py has them
}

#if H5_VERSION_GE(2, 0, 0)
// HDF5's own complex numbers: in memory as h5py's, real part first.
void describe_complex(type_description& t, hid_t type, unsigned depth) {
  const handle base(H5Tget_super(type), "get the base of a complex type");
  type_description b = describe_type(base, depth + 1);
  if (b.kind != type_class::floating || b.size < 4)
    return unsupported(t, "complex number of " + (b.stored.empty() ? text::pluralize(8 * b.size, "bit") + " each" : b.stored));
  t.kind = type_class::complex;
  t.memory = handle(H5Tcomplex_create(b.memory), "create a complex type");
  t.size = 2 * b.size;
  t.big_endian = b.big_endian;
  t.as_stored = b.as_stored;
  t.maybe_lossy = b.maybe_lossy;
  t.stored = b.stored;
  type_description imaginary = describe_type(base, depth + 1);
  b.name = "r";
  imaginary.name = "i";
  imaginary.offset = b.size;
  t.parts.push_back(std::move(b));
  t.parts.push_back(std::move(imaginary));
}
#endif

void describe_array(type_description& t, hid_t type, unsigned depth) {
  const handle base(H5Tget_super(type), "get the base of an array type");
  const int rank = H5Tget_array_ndims(type);
  check(rank, "get the rank of an array type");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  check(H5Tget_array_dims2(type, dims.data()), "get the extent of an array type");
  t.dims.assign(dims.begin(), dims.end());
  type_description b = describe_type(base, depth + 1);
  t.kind = type_class::array;
  t.as_stored = b.as_stored;
  t.maybe_lossy = b.maybe_lossy;
  std::size_t count = 1;
  for (const std::uint64_t d : t.dims) {
    if (d == 0 || d > (std::size_t{1} << 40) / count) return unsupported(t, "array type with an impossible extent");
    count *= static_cast<std::size_t>(d);
  }
  if (b.kind == type_class::unsupported || !b.memory) return unsupported(t, "array of " + b.reason);
  t.size = b.size * count;
  t.memory = handle(H5Tarray_create2(b.memory, static_cast<unsigned>(rank), dims.data()), "create an array type");
  t.parts.push_back(std::move(b));
}

void describe_sequence(type_description& t, hid_t type, unsigned depth) {
  const handle base(H5Tget_super(type), "get the base of a sequence type");
  type_description b = describe_type(base, depth + 1);
  t.kind = type_class::sequence;
  t.as_stored = false;
  t.size = sizeof(hvl_t);
  t.maybe_lossy = b.maybe_lossy;
  if (b.kind == type_class::unsupported || !b.memory) return unsupported(t, "sequences of " + b.reason);
  t.memory = handle(H5Tvlen_create(b.memory), "create a sequence type");
  t.parts.push_back(std::move(b));
}

}  // namespace

type_description describe_type(hid_t type, unsigned depth) {
  type_description t;
  if (depth > deepest_type) {
    unsupported(t, "type nested deeper than " + std::to_string(deepest_type) + " levels");
    return t;
  }
  t.stored_size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: describe_integer(t, type); break;
    case H5T_FLOAT: describe_float(t, type); break;
    case H5T_STRING: describe_text(t, type); break;
    case H5T_ENUM: describe_enumeration(t, type); break;
    case H5T_COMPOUND: describe_compound(t, type, depth); break;
    case H5T_ARRAY: describe_array(t, type, depth); break;
    case H5T_VLEN: describe_sequence(t, type, depth); break;
    case H5T_BITFIELD:
    case H5T_TIME: {
      const bool time = H5Tget_class(type) == H5T_TIME;
      const std::size_t size = H5Tget_size(type);
      t.memory = handle(H5Tcopy(type), "copy a type");
      t.size = size;
      if (size == standard_size(8 * size) && size != 0) {
        t.kind = type_class::integer;
        t.is_signed = time;
        t.big_endian = size > 1 && H5Tget_order(type) == H5T_ORDER_BE;
      } else {
        t.kind = type_class::opaque;  // its bytes
      }
      const std::size_t precision = H5Tget_precision(type);
      t.stored = (time ? "time of " : "bitfield of ") + std::to_string(precision) + " bits in " + text::pluralize(size, "byte");
      if (H5Tget_offset(type) > 0) t.stored += ", bit offset " + std::to_string(H5Tget_offset(type));
      break;
    }
    case H5T_OPAQUE: {
      t.kind = type_class::opaque;
      t.memory = handle(H5Tcopy(type), "copy an opaque type");
      t.size = H5Tget_size(type);
      char* tag = H5Tget_tag(type);
      if (tag) {
        t.stored = tag;
        H5free_memory(tag);
      }
      break;
    }
    case H5T_REFERENCE:
      t.as_stored = false;
      t.size = H5Tget_size(type);
      t.memory = handle(H5Tcopy(type), "copy a reference type");
      if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) t.kind = type_class::object_reference;
      else if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) t.kind = type_class::region_reference;
      else unsupported(t, "reference of the kind introduced by HDF5 1.12 (H5T_STD_REF); only those of 1.8 to 1.10 are converted");
      break;
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX: describe_complex(t, type, depth); break;
#endif
    default: unsupported(t, "datatype of a class that this libhdf5 does not know"); break;
  }
  return t;
}

void take_for_complex(type_description& t, std::string_view real, std::string_view imaginary) {
  if (t.kind == type_class::array && !t.parts.empty()) return take_for_complex(t.parts.front(), real, imaginary);
  if (!is_complex(t, real, imaginary)) return;
  t.kind = type_class::complex;
  t.big_endian = t.parts[0].big_endian;
  t.stored = t.parts[0].stored;
}

bool holds_references(const type_description& t) {
  switch (t.kind) {
    case type_class::text: return t.variable;
    case type_class::sequence:
    case type_class::object_reference:
    case type_class::region_reference: return true;
    default: return std::any_of(t.parts.begin(), t.parts.end(), holds_references);
  }
}

std::string unsupported_reason(const type_description& t) {
  if (t.kind == type_class::unsupported) return t.reason;
  for (const type_description& p : t.parts) {
    if (std::string reason = unsupported_reason(p); !reason.empty()) return reason;
  }
  return {};
}

bool has_byte_order(const type_description& t) {
  switch (t.kind) {
    case type_class::integer:
    case type_class::enumeration:
    case type_class::floating: return t.size > 1;
    case type_class::complex: return true;
    case type_class::compound:
    case type_class::array: return std::any_of(t.parts.begin(), t.parts.end(), has_byte_order);
    default: return false;
  }
}

bool stored_big_endian(const type_description& t) {
  if (t.kind == type_class::compound || t.kind == type_class::array) {
    for (const type_description& p : t.parts) {
      if (has_byte_order(p)) return stored_big_endian(p);
    }
    return false;
  }
  return t.big_endian;
}

void unify_byte_order(const type_description& t, std::byte* values, std::size_t count, bool big) {
  if (t.kind == type_class::array) return;  // kept as raw bytes inside a struct; the attributes describe its type
  if (t.kind == type_class::compound) {
    for (const type_description& m : t.parts) {
      if (m.kind == type_class::compound) {
        for (std::size_t i = 0; i < count; ++i) unify_byte_order(m, values + i * t.size + m.offset, 1, big);
      } else if (has_byte_order(m) && m.kind != type_class::array && m.big_endian != big) {
        const std::size_t unit = m.kind == type_class::complex ? m.size / 2 : m.size;
        for (std::size_t i = 0; i < count; ++i) {
          std::byte* p = values + i * t.size + m.offset;
          for (std::size_t offset = 0; offset < m.size; offset += unit) std::reverse(p + offset, p + offset + unit);
        }
      }
    }
    return;
  }
  if (!has_byte_order(t) || t.big_endian == big) return;
  const std::size_t unit = t.kind == type_class::complex ? t.size / 2 : t.size;
  for (std::byte* p = values; p != values + count * t.size; p += unit) std::reverse(p, p + unit);
}

}  // namespace zarrbits::hdf5
