// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_json.hpp"

#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include "verify/value_format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr hssize_t max_blocks = 1 << 20;  // limit for a region; the converter writes no more

// [re, im] in the store. There are no complex numbers of half precision.
bool is_complex_pair(const source_type& t) {
  if (t.kind != source_kind::compound || t.members.size() != 2) return false;
  if (t.members[0].name != "r" || t.members[1].name != "i") return false;
  const source_type &r = t.members[0].type, &i = t.members[1].type;
  return r.kind == source_kind::floating && i.kind == source_kind::floating && r.name == i.name && r.swapped == i.swapped &&
         r.size >= 4;
}

__extension__ using wide_integer = unsigned __int128;

// The decimal digits of an integer of up to 16 bytes.
std::string decimal(const source_type& t, const std::byte* p) {
  const bool big = t.swapped == (std::endian::native == std::endian::little);
  wide_integer v = 0;
  for (std::size_t i = 0; i < t.size; ++i) v = v << 8 | std::to_integer<unsigned>(p[big ? i : t.size - 1 - i]);
  const auto unused = static_cast<unsigned>(128 - 8 * t.size);
  const bool negative = t.is_signed && (v >> (8 * t.size - 1) & 1) != 0;
  if (negative) v = -(v << unused) >> unused;
  std::string text;
  for (; v != 0 || text.empty(); v /= 10) text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(v % 10)));
  return negative ? "-" + text : text;
}

bool is_base64_of(const json& store, const void* bytes, std::size_t size) {
  if (!store.is_object() || store.size() != 1 || !store.contains("base64") || !store["base64"].is_string()) return false;
  const auto decoded = text::decode_base64(store["base64"].get_ref<const std::string&>());
  return decoded && decoded->size() == size && (size == 0 || std::memcmp(decoded->data(), bytes, size) == 0);
}

// A value of the source as text for a sentence.
std::string format_value(const source_type& t, const std::byte* p) {
  switch (t.kind) {
    case source_kind::text:
    case source_kind::variable_text: return format_text(text_of(t, p));
    case source_kind::opaque: return t.is_wide ? decimal(t, p) : hex(p, t.size);
    case source_kind::compound:
    case source_kind::array:
    case source_kind::region:
    case source_kind::sequence: return t.name;
    case source_kind::reference: {
      hobj_ref_t target = 0;
      std::memcpy(&target, p, sizeof target);
      return target == 0 || target == HADDR_UNDEF ? "no object" : "the object at address " + std::to_string(target);
    }
    default: return format_source(t, p);
  }
}

likeness describe_difference(const source_type& t, const std::byte* p, const json& store, difference& d) {
  d.source = format_value(t, p);
  // 5 and 5.0 differ in JSON
  if (t.kind == source_kind::floating && d.source.find_first_not_of("-0123456789") == std::string::npos) d.source += ".0";
  d.store = format_json(store);
  return likeness::different;
}

void prepend_field(const std::string& prefix, difference& d) {
  d.field = prefix + (d.field.empty() || d.field[0] == '[' ? "" : ".") + d.field;
}

bool is_integer(const source_type& t, const std::byte* p, const json& store) {
  if (!t.is_signed) return store.is_number_unsigned() && store.get<std::uint64_t>() == load_source(t, p);
  if (!store.is_number_integer() || (store.is_number_unsigned() && store.get<std::uint64_t>() > INT64_MAX)) return false;
  return store.get<std::int64_t>() == load_source_signed(t, p);
}

bool is_plain_nan(const source_type& t, const std::byte* p) {
  return load(p, t.size) == (t.size == 8 ? 0x7FF8000000000000 : t.size == 4 ? 0x7FC00000 : 0x7E00);
}

bool is_float(const source_type& t, const std::byte* p, const json& store) {
  const double v = *float_value("float" + std::to_string(8 * t.size), p);
  if (std::isfinite(v)) {
    return store.is_number_float() && std::bit_cast<std::uint64_t>(store.get<double>()) == std::bit_cast<std::uint64_t>(v);
  }
  // as zarr-python has it; a payload is lost
  if (store.is_number_float()) {
    const double number = store.get<double>();
    return std::isinf(v) ? number == v : std::isnan(number) && (!t.exact || is_plain_nan(t, p));
  }
  if (!store.is_string()) return false;
  const std::string& word = store.get_ref<const std::string&>();
  if (std::isinf(v)) return word == (v > 0 ? "Infinity" : "-Infinity");
  if (!t.exact) return word == "NaN" || word.starts_with("0x");  // the payload may be lost
  if (is_plain_nan(t, p)) return word == "NaN";
  char bits[24];
  std::snprintf(bits, sizeof bits, "0x%0*llx", static_cast<int>(2 * t.size), static_cast<unsigned long long>(load(p, t.size)));
  return word == bits;
}

likeness compare_members(const source_type& t, const std::byte* p, const json& store, const source_objects& objects,
                         difference& d) {
  if (is_complex_pair(t)) {
    if (!store.is_array() || store.size() != 2) return describe_difference(t, p, store, d);
    for (std::size_t i = 0; i < 2; ++i) {
      if (is_float(t.members[i].type, p + t.members[i].offset, store[i])) continue;
      d.field = t.members[i].name;
      return describe_difference(t.members[i].type, p + t.members[i].offset, store[i], d);
    }
    return likeness::equal;
  }
  if (!store.is_object() || store.size() != t.members.size()) return describe_difference(t, p, store, d);
  likeness worst = likeness::equal;
  for (const source_member& m : t.members) {
    const auto value = store.find(text::escape_name(m.name));
    if (value == store.end()) {
      d.field = m.name;
      d.source = m.type.kind == source_kind::unsupported ? m.type.name : format_value(m.type, p + m.offset);
      d.store = "nothing";
      return likeness::different;
    }
    const likeness l = compare_json(m.type, p + m.offset, *value, objects, d);
    if (l == likeness::different) {
      prepend_field(m.name, d);
      return l;
    }
    worst = std::max(worst, l);
  }
  return worst;
}

// The target of a reference; empty if there is no object.
std::optional<std::uint64_t> target_of(const std::byte* p, H5R_type_t type, const source_objects& objects) {
  const hdf5::handle target(H5Rdereference2(objects.file(), H5P_DEFAULT, type, p));
  H5O_info_t info;
  if (target && H5Oget_info2(target.get(), &info, H5O_INFO_BASIC) >= 0) return info.addr;
  H5Eclear2(H5E_DEFAULT);
  return {};
}

// True if null is right: there is no object, or no path leads to it.
bool may_be_null(const std::optional<std::uint64_t>& target, const source_objects& objects) {
  return !target || !objects.reachable(*target);
}

likeness compare_reference(const source_type& t, const std::byte* p, const json& store, const source_objects& objects,
                           difference& d) {
  hobj_ref_t address = 0;
  std::memcpy(&address, p, sizeof address);
  const bool null = address == 0 || address == HADDR_UNDEF;
  if (null && store == "") return likeness::equal;
  if (!null && store.is_null() && may_be_null(target_of(p, H5R_OBJECT, objects), objects)) return likeness::equal;
  const bool is_equal = !null && store.is_string() && objects.address_of(store.get<std::string>()) == address;
  return is_equal ? likeness::equal : describe_difference(t, p, store, d);
}

// The numbers of a region's blocks or points, `group_size` numbers in each.
bool is_list_of(const std::vector<hsize_t>& numbers, std::size_t group_size, const json& store) {
  if (!store.is_array() || group_size == 0 || store.size() != numbers.size() / group_size) return false;
  for (std::size_t i = 0; i < store.size(); ++i) {
    if (!store[i].is_array() || store[i].size() != group_size) return false;
    for (std::size_t k = 0; k < group_size; ++k) {
      if (!store[i][k].is_number_unsigned() || store[i][k].get<std::uint64_t>() != numbers[i * group_size + k]) return false;
    }
  }
  return true;
}

bool is_selection(hid_t space, const json& store) {
  const auto rank = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  const H5S_sel_type kind = H5Sget_select_type(space);
  if (kind == H5S_SEL_POINTS || kind == H5S_SEL_HYPERSLABS) {
    const bool points = kind == H5S_SEL_POINTS;
    const hssize_t n = points ? H5Sget_select_elem_npoints(space) : H5Sget_select_hyper_nblocks(space);
    if (n < 0 || n > max_blocks) return false;
    const std::size_t group_size = points ? rank : 2 * rank;
    std::vector<hsize_t> numbers(static_cast<std::size_t>(n) * group_size);
    const auto count = static_cast<hsize_t>(n);
    if (n > 0 && (points ? H5Sget_select_elem_pointlist(space, 0, count, numbers.data())
                         : H5Sget_select_hyper_blocklist(space, 0, count, numbers.data())) < 0) {
      return false;
    }
    return is_list_of(numbers, group_size, store.value(points ? "points" : "blocks", json()));
  }
  return store.value("selection", json()) == (kind == H5S_SEL_ALL ? "all" : "none");
}

likeness compare_list(const source_type& t, const std::byte*& p, const std::vector<std::uint64_t>& dims, std::size_t level,
                      const json& store, const source_objects& objects, difference& d) {
  if (level == dims.size()) {
    const std::byte* element = p;
    p += t.size;
    return compare_json(t, element, store, objects, d);
  }
  if (!store.is_array() || store.size() != dims[level]) {
    d.source = "a list of " + std::to_string(dims[level]);
    d.store = store.is_array() ? "a list of " + std::to_string(store.size()) : format_json(store);
    return likeness::different;
  }
  likeness worst = likeness::equal;
  for (std::size_t i = 0; i < store.size(); ++i) {
    const likeness l = compare_list(t, p, dims, level + 1, store[i], objects, d);
    if (l == likeness::different) {
      prepend_field("[" + std::to_string(i) + "]", d);
      return l;
    }
    worst = std::max(worst, l);
  }
  return worst;
}

}  // namespace

std::string format_json(const json& j) {
  if (j.is_string()) return format_text(j.get_ref<const std::string&>());
  if (j.is_array()) return "a list of " + std::to_string(j.size());
  if (j.is_object() && !j.contains("base64")) return "an object with " + std::to_string(j.size()) + " keys";
  const std::string text = text::sorted_json_text(j);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

std::string_view text_of(const source_type& t, const std::byte* p) {
  if (t.kind == source_kind::variable_text) {
    const char* c = nullptr;
    std::memcpy(&c, p, sizeof c);
    return c ? std::string_view(c) : std::string_view();
  }
  const std::string_view bytes(reinterpret_cast<const char*>(p), t.size);
  if (t.padding == H5T_STR_NULLTERM) return bytes.substr(0, bytes.find('\0'));
  const std::size_t last =
      t.padding == H5T_STR_SPACEPAD ? bytes.find_last_not_of(std::string_view("\0 ", 2)) : bytes.find_last_not_of('\0');
  return bytes.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

bool is_json_of(std::string_view text, const json& store) {
  return is_utf8(text) ? store.is_string() && store.get_ref<const std::string&>() == text
                       : is_base64_of(store, text.data(), text.size());
}

likeness compare_region(const std::byte* p, const json& store, const source_objects& objects, difference& d) {
  d.source = "a region reference";
  d.store = format_json(store);
  if (std::all_of(p, p + sizeof(hdset_reg_ref_t), [](std::byte b) { return b == std::byte{0}; })) {
    return store == "" ? likeness::equal : likeness::different;
  }
  const auto target = target_of(p, H5R_DATASET_REGION, objects);
  const hdf5::handle space(target ? H5Rget_region(objects.file(), H5R_DATASET_REGION, p) : -1);
  H5Eclear2(H5E_DEFAULT);
  if (store.is_null()) return !space || may_be_null(target, objects) ? likeness::equal : likeness::different;
  if (!target || !space || !store.is_object() || store.size() != 2) return likeness::different;
  const json path = store.value("path", json());
  if (!path.is_string() || objects.address_of(path.get<std::string>()) != target) return likeness::different;
  return is_selection(space.get(), store) ? likeness::equal : likeness::different;
}

likeness compare_json(const source_type& t, const std::byte* p, const json& store, const source_objects& objects, difference& d) {
  switch (t.kind) {
    case source_kind::integer:
    case source_kind::bitfield:
      if (t.is_bool && t.size == 1 && load(p, 1) <= 1) {
        return store == json(load(p, 1) == 1) ? likeness::equal : describe_difference(t, p, store, d);
      }
      return is_integer(t, p, store) ? likeness::equal : describe_difference(t, p, store, d);
    case source_kind::floating: return is_float(t, p, store) ? likeness::equal : describe_difference(t, p, store, d);
    case source_kind::text:
    case source_kind::variable_text:
      return is_json_of(text_of(t, p), store) ? likeness::equal : describe_difference(t, p, store, d);
    case source_kind::opaque: {
      const bool is_equal = t.is_wide ? store == decimal(t, p) : is_base64_of(store, p, t.size);
      return is_equal ? likeness::equal : describe_difference(t, p, store, d);
    }
    case source_kind::compound: return compare_members(t, p, store, objects, d);
    case source_kind::array: return compare_json(t.members[0].type, p, t.dims, store, objects, d);
    case source_kind::sequence: {
      hvl_t v;
      std::memcpy(&v, p, sizeof v);
      return compare_json(t.members[0].type, static_cast<const std::byte*>(v.p), {v.p ? v.len : 0}, store, objects, d);
    }
    case source_kind::reference: return compare_reference(t, p, store, objects, d);
    case source_kind::region: return compare_region(p, store, objects, d);
    default: return likeness::unknown;
  }
}

likeness compare_json(const source_type& t, const std::byte* p, const std::vector<std::uint64_t>& dims, const json& store,
                      const source_objects& objects, difference& d) {
  const std::byte* cursor = p;
  return compare_list(t, cursor, dims, 0, store, objects, d);
}

}  // namespace zarrbits::verification
