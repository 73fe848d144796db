// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_values.hpp"

#include "text/json_text.hpp"
#include "verify/compare_json.hpp"
#include "verify/value_format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace zarrbits::verification {

namespace {

std::string format_store(const zarr::zarr_type& t, const zarr_element& e) {
  if (e.string) return format_text(*e.string);
  switch (t.kind) {
    case zarr::zarr_kind::boolean: return e.bytes[0] == std::byte{0} ? "false" : "true";
    case zarr::zarr_kind::signed_integer: return std::to_string(load_signed(e.bytes, t.size));
    case zarr::zarr_kind::unsigned_integer: return std::to_string(load(e.bytes, t.size));
    case zarr::zarr_kind::floating:
      if (const auto v = float_value(t.name, e.bytes)) return format_float(*v, e.bytes, t.size);
      return hex(e.bytes, t.size);
    default: return hex(e.bytes, t.size);
  }
}

std::string utf32_to_utf8(const std::byte* p, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const auto c = static_cast<std::uint32_t>(load(p + i, 4));
    const auto add = [&](std::uint32_t v) { out += static_cast<char>(v); };
    if (c < 0x80) {
      add(c);
    } else if (c < 0x800) {
      add(0xC0 | c >> 6), add(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      add(0xE0 | c >> 12), add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
    } else {
      add(0xF0 | (c >> 18 & 7)), add(0x80 | (c >> 12 & 0x3F)), add(0x80 | (c >> 6 & 0x3F)), add(0x80 | (c & 0x3F));
    }
  }
  return out;
}

std::string store_text(const zarr::zarr_type& t, const zarr_element& e) {
  if (e.string) return *e.string;
  if (t.kind == zarr::zarr_kind::text32) return utf32_to_utf8(e.bytes, t.size);
  return {reinterpret_cast<const char*>(e.bytes), t.size};
}

// Padding is not a part of a string: never trailing zeros, and not trailing spaces if HDF5 pads with them.
std::string_view trimmed(std::string_view text, bool spaces) {
  while (!text.empty() && (text.back() == '\0' || (spaces && text.back() == ' '))) text.remove_suffix(1);
  return text;
}

likeness compare_text(const source_type& s, const std::byte* p, const zarr::zarr_type& z, const zarr_element& e, difference& d) {
  std::string_view source;
  if (s.kind == source_kind::variable_text) {
    const char* c = nullptr;
    std::memcpy(&c, p, sizeof c);
    if (c) source = c;
  } else {
    source = {reinterpret_cast<const char*>(p), s.size};
  }
  const bool spaces = s.padding == H5T_STR_SPACEPAD;
  const std::string stored_text = store_text(z, e);
  const std::string_view store = trimmed(stored_text, spaces);
  if (trimmed(source, spaces) == store) return likeness::equal;
  // bytes after the terminator are not part of a null-terminated string; both readings are right
  if (s.padding == H5T_STR_NULLTERM && source.substr(0, source.find('\0')) == store) return likeness::equal;
  d.source = format_text(trimmed(source, spaces));
  d.store = format_text(store);
  return likeness::different;
}

bool is_text(const zarr::zarr_type& z) {
  return z.variable() || z.kind == zarr::zarr_kind::text32 || z.kind == zarr::zarr_kind::terminated;
}

bool is_complex(const source_type& s) {
  return s.kind == source_kind::compound && s.members.size() == 2 && s.members[0].type.kind == source_kind::floating &&
         s.members[1].type.kind == source_kind::floating && s.members[0].type.size == s.members[1].type.size;
}

// h5py's way to store numpy's times.
bool is_numpy_time(const source_type& s, const zarr::zarr_type& z) {
  const char kind = z.name == "numpy.datetime64" ? 'M' : z.name == "numpy.timedelta64" ? 'm' : '\0';
  return kind != '\0' && s.kind == source_kind::opaque && s.size == z.size &&
         s.tag == std::string("NUMPY:<") + kind + "8[" + z.unit + "]";
}

// Compares elements of an array type, or of an opaque one, with the bytes of a raw field.
likeness compare_raw(const source_type& s, const std::byte* p, const zarr_element& e, difference& d) {
  if (std::memcmp(p, e.bytes, s.size) == 0) return likeness::equal;
  const source_type* base = &s;
  while (base->kind == source_kind::array) base = &base->members[0].type;
  if (base->swapped) {
    // raw bytes have no byte order: they may have the file's
    bool is_equal = true;
    for (std::size_t i = 0; i < s.size && is_equal; ++i) {
      const std::size_t byte_index = i % base->size;
      is_equal = p[i] == e.bytes[i - byte_index + base->size - 1 - byte_index];
    }
    if (is_equal) return likeness::equal;
  }
  d.source = hex(p, s.size);
  d.store = hex(e.bytes, s.size);
  return likeness::different;
}

// What netCDF has of a type that it does not have, with the same values.
bool is_netcdf_form(const source_type& s, const zarr::zarr_type& z) {
  switch (s.kind) {
    case source_kind::integer:
      if (!s.is_signed || !s.exact || s.is_enum) return false;
      return (s.size == 1 && z.kind == zarr::zarr_kind::boolean) || (s.size == 8 && !z.unit.empty());
    case source_kind::floating: return s.exact && s.size == 4 && z.name == "float16";
    case source_kind::array:  // of characters
      return s.members[0].type.kind == source_kind::text && s.members[0].type.size == 1 &&
             z.kind == zarr::zarr_kind::terminated && z.size == s.size;
    default: return false;
  }
}

// Why `s` and `z` cannot hold the same values; `unknown` if this cannot be decided.
likeness compare_types(const source_type& s, const zarr::zarr_type& z, bool exported, std::string& reason) {
  if (exported && is_netcdf_form(s, z)) return likeness::equal;
  const auto no = [&] {
    reason = "the source holds " + s.name + ", the store " + z.name;
    return likeness::different;
  };
  switch (s.kind) {
    case source_kind::integer:
      if (s.is_bool && z.kind == zarr::zarr_kind::boolean) return likeness::equal;
      if (z.kind != (s.is_signed ? zarr::zarr_kind::signed_integer : zarr::zarr_kind::unsigned_integer) ||
          z.name.starts_with("numpy."))
        return no();
      return s.exact && (z.size != s.size || z.bits != 8 * s.size) ? no() : likeness::equal;
    case source_kind::bitfield:
      if (z.kind == zarr::zarr_kind::raw && z.size == s.size) return likeness::equal;
      if (z.kind == zarr::zarr_kind::boolean && s.size == 1) return likeness::equal;  // of PyTables; its values are 0 and 1
      if (z.kind != zarr::zarr_kind::unsigned_integer) return no();
      return s.exact && (z.size != s.size || z.bits != 8 * s.size) ? no() : likeness::equal;
    case source_kind::floating:
      if (z.kind != zarr::zarr_kind::floating) return no();
      if (s.exact) return z.name == "float" + std::to_string(8 * s.size) ? likeness::equal : no();
      if (z.name == "float16" || z.name == "bfloat16" || z.name == "float32" || z.name == "float64") return likeness::equal;
      reason = "floats of the type " + z.name + " are not compared";
      return likeness::unknown;
    case source_kind::text:
    case source_kind::variable_text: return is_text(z) ? likeness::equal : no();
    case source_kind::reference:
      return z.kind == zarr::zarr_kind::text || z.kind == zarr::zarr_kind::text32 ? likeness::equal : no();
    case source_kind::region: return z.kind == zarr::zarr_kind::text ? likeness::equal : no();
    case source_kind::opaque:
    case source_kind::array:
      if (z.kind == zarr::zarr_kind::raw && z.size == s.size) return likeness::equal;
      if (s.kind == source_kind::opaque && z.kind == zarr::zarr_kind::binary) return likeness::equal;
      if (is_numpy_time(s, z)) return likeness::equal;
      return no();
    case source_kind::compound: {
      if (z.kind == zarr::zarr_kind::complex) {
        const bool is_equal =
            is_complex(s) && s.members[0].type.exact && z.size == s.size && (z.size >= 8 || z.name == "complex_float16");
        return is_equal ? likeness::equal : no();
      }
      if (z.kind != zarr::zarr_kind::record || z.fields.size() != s.members.size()) return no();
      for (std::size_t i = 0; i < s.members.size(); ++i) {
        if (s.members[i].name != z.fields[i].name) {
          reason = "member " + std::to_string(i) + " is " + format_text(s.members[i].name) + " in the source, " +
                   format_text(z.fields[i].name) + " in the store";
          return likeness::different;
        }
        // other members can still be compared: compare() then returns unknown for each element
        if (compare_types(s.members[i].type, z.fields[i].type, exported, reason) == likeness::different) {
          reason = "member " + format_text(s.members[i].name) + ": " + reason;
          return likeness::different;
        }
      }
      return likeness::equal;
    }
    case source_kind::sequence: {  // of bytes
      const source_type& base = s.members[0].type;
      const bool bytes = base.kind == source_kind::integer && base.size == 1 && !base.is_signed && base.exact && !base.is_enum;
      return bytes && z.kind == zarr::zarr_kind::binary ? likeness::equal : no();
    }
    default: reason = s.name + " are not compared"; return likeness::unknown;
  }
}

likeness compare_element(const source_type& s, const std::byte* p, const zarr::zarr_type& z, const zarr_element& e,
                         const source_objects& objects, difference& d);

likeness compare_number(const source_type& s, const std::byte* p, const zarr::zarr_type& z, const zarr_element& e,
                        difference& d) {
  bool is_equal = false;
  if (z.kind == zarr::zarr_kind::raw) return compare_raw(s, p, e, d);
  if (s.kind == source_kind::floating && !s.exact) {
    const double a = *float_value("float64", p);
    const auto b = float_value(z.name, e.bytes);
    if (!b) return likeness::unknown;
    is_equal = std::isnan(a) ? std::isnan(*b) : a == *b && std::signbit(a) == std::signbit(*b);
  } else if (s.kind == source_kind::floating && z.size < s.size) {
    const double a = *float_value("float" + std::to_string(8 * s.size), p), b = *float_value(z.name, e.bytes);
    is_equal = std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  } else if (s.kind == source_kind::floating) {
    is_equal = load(p, s.size) == load(e.bytes, z.size);
  } else if (z.kind == zarr::zarr_kind::boolean) {  // in a struct, any byte that is not zero is true
    is_equal = (load_source(s, p) != 0) == (load(e.bytes, z.size) != 0);
  } else if (s.is_signed) {
    is_equal = load_source_signed(s, p) == load_signed(e.bytes, z.size);
  } else {
    is_equal = load_source(s, p) == load(e.bytes, z.size);
  }
  if (is_equal) return likeness::equal;
  d.source = format_source(s, p);
  d.store = format_store(z, e);
  return likeness::different;
}

likeness compare_compound(const source_type& s, const std::byte* p, const zarr::zarr_type& z, const zarr_element& e,
                          const source_objects& objects, difference& d) {
  likeness worst = likeness::equal;
  for (std::size_t i = 0; i < s.members.size(); ++i) {
    const source_member& m = s.members[i];
    const std::byte* part = p + m.offset;
    likeness l;
    if (z.kind == zarr::zarr_kind::complex) {
      const std::size_t half = z.size / 2;
      l = std::memcmp(part, e.bytes + i * half, half) == 0 ? likeness::equal : likeness::different;
      if (l == likeness::different) {
        d.source = format_source(m.type, part);
        d.store = format_source(m.type, e.bytes + i * half);
      }
    } else {
      l = compare_element(m.type, part, z.fields[i].type, {e.bytes + z.fields[i].offset, nullptr}, objects, d);
    }
    if (l == likeness::different) {
      d.field = d.field.empty() ? m.name : m.name + "." + d.field;
      return l;
    }
    worst = std::max(worst, l);
  }
  return worst;
}

likeness compare_reference(const std::byte* p, const std::string& path, const source_objects& objects, difference& d) {
  hobj_ref_t target = 0;
  std::memcpy(&target, p, sizeof target);
  if (target == 0 || target == HADDR_UNDEF) {
    if (path.empty()) return likeness::equal;
    d.source = "no object";
  } else {
    const auto address = objects.address_of(path);
    if (address == target) return likeness::equal;
    if (path.empty() && !objects.reachable(target)) return likeness::equal;  // no target
    d.source = "the object at address " + std::to_string(target);
  }
  d.store = format_text(path);
  return likeness::different;
}

likeness compare_element(const source_type& s, const std::byte* p, const zarr::zarr_type& z, const zarr_element& e,
                         const source_objects& objects, difference& d) {
  switch (s.kind) {
    case source_kind::integer:
    case source_kind::bitfield:
    case source_kind::floating: return compare_number(s, p, z, e, d);
    case source_kind::text:
    case source_kind::variable_text: return compare_text(s, p, z, e, d);
    case source_kind::reference: return compare_reference(p, std::string(trimmed(store_text(z, e), false)), objects, d);
    case source_kind::region: {
      const bool null = std::all_of(p, p + s.size, [](std::byte b) { return b == std::byte{0}; });
      if (e.string->empty()) return compare_region(p, null ? nlohmann::json("") : nlohmann::json(), objects, d);
      return compare_region(p, nlohmann::json(text::parse_untrusted_json(*e.string)), objects, d);
    }
    case source_kind::compound: return compare_compound(s, p, z, e, objects, d);
    case source_kind::opaque:
      if (e.string) {
        if (e.string->size() == s.size && std::memcmp(e.string->data(), p, s.size) == 0) return likeness::equal;
        d.source = hex(p, s.size);
        d.store = format_text(*e.string);
        return likeness::different;
      }
      return compare_raw(s, p, e, d);
    case source_kind::array: return compare_raw(s, p, e, d);
    case source_kind::sequence: {
      hvl_t v;
      std::memcpy(&v, p, sizeof v);
      const std::size_t length = v.p ? v.len : 0;
      if (e.string->size() == length && (length == 0 || std::memcmp(e.string->data(), v.p, length) == 0)) return likeness::equal;
      d.source = hex(static_cast<const std::byte*>(v.p), length);
      d.store = hex(reinterpret_cast<const std::byte*>(e.string->data()), e.string->size());
      return likeness::different;
    }
    default: return likeness::unknown;
  }
}

bool same_bytes(const source_type& s, const zarr::zarr_type& z) {
  if (z.size != s.size || z.variable()) return false;
  if (s.kind == source_kind::opaque) return true;
  if (s.kind == source_kind::integer && s.is_bool) return s.size == 1;
  const bool number = s.kind == source_kind::integer || s.kind == source_kind::bitfield || s.kind == source_kind::floating;
  if (number) return s.exact && !s.reversed && z.kind != zarr::zarr_kind::raw;
  return is_complex(s) && z.kind == zarr::zarr_kind::complex;
}

}  // namespace

comparison::comparison(const source_type& source, const zarr::zarr_type& store, const source_objects& objects, bool exported)
    : source_(source), store_(store), objects_(objects) {
  types_ = compare_types(source, store, exported, reason_);
  bytewise_ = types_ == likeness::equal && same_bytes(source, store);
}

likeness comparison::compare(const std::byte* source, const zarr_element& store, difference& d) const {
  return compare_element(source_, source, store_, store, objects_, d);
}

}  // namespace zarrbits::verification
