// SPDX-License-Identifier: BSL-1.0
#include "verify/hdf5_references.hpp"

#include "text/name_escaping.hpp"
#include "verify/blocks.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace zarrbits::verification {

namespace {

constexpr std::size_t max_cached_targets = 1 << 20;
constexpr hsize_t max_selection_blocks = 1 << 20;  // libhdf5 takes quadratic time for more

template <class T>
T load_as(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::string quoted_path(const std::string& path) { return format_text(text::escape_name(path)); }

void prepend(const std::string& name, difference& d) {
  d.field = name + (d.field.empty() || d.field.front() == '[' ? "" : ".") + d.field;
}

// The corners of the blocks, or the points, of a selection: equal for equal selections.
std::vector<hsize_t> selected_corners(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  const H5S_sel_type kind = H5Sget_select_type(space);
  if (rank < 0 || kind == H5S_SEL_ERROR) throw source_error("cannot read the selection of a reference: " + hdf5_reason());
  if (kind == H5S_SEL_NONE || kind == H5S_SEL_ALL) return {static_cast<hsize_t>(kind)};
  const bool is_points = kind == H5S_SEL_POINTS;
  const hssize_t count = is_points ? H5Sget_select_elem_npoints(space) : H5Sget_select_hyper_nblocks(space);
  if (count < 0) throw source_error("cannot read the selection of a reference: " + hdf5_reason());
  const auto n = static_cast<hsize_t>(count);
  if (n > max_selection_blocks) throw zarr::not_supported(reason_code::too_large, "references to more than 1048576 blocks");
  std::vector<hsize_t> corners((is_points ? 1 : 2) * static_cast<std::size_t>(rank) * n + 1);
  corners.back() = static_cast<hsize_t>(kind);
  if (n > 0)
    check(is_points ? H5Sget_select_elem_pointlist(space, 0, n, corners.data())
                    : H5Sget_select_hyper_blocklist(space, 0, n, corners.data()),
          "cannot read the selection of a reference");
  return corners;
}

std::string format_selection(hid_t space) {
  const hssize_t n = H5Sget_select_npoints(space);
  const auto rank = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  std::vector<hsize_t> first(rank), last(rank);
  const bool has_bounds = rank > 0 && n > 0 && H5Sget_select_bounds(space, first.data(), last.data()) >= 0;
  H5Eclear2(H5E_DEFAULT);
  std::string text = std::to_string(std::max<hssize_t>(n, 0)) + " elements";
  if (has_bounds) text += " from " + join({first.begin(), first.end()}) + " to " + join({last.begin(), last.end()});
  return text;
}

}  // namespace

likeness element_comparison::compare(const element_form& form, const std::byte* first, const std::byte* second, difference& d) {
  using kind_type = element_form::kind_type;
  switch (form.kind) {
    case kind_type::bits: return compare_bits(form, first, second, d);
    case kind_type::object: return compare_objects(first, second, d);
    case kind_type::region: return compare_regions(first, second, d);
    case kind_type::sequence: return compare_sequences(form, first, second, d);
    case kind_type::array: return compare_lists(form.parts[0], first, second, form.count, d);
    case kind_type::variable_text: {
      const auto a = load_as<const char*>(first), b = load_as<const char*>(second);
      if (a == nullptr ? b == nullptr : b != nullptr && std::strcmp(a, b) == 0) return likeness::equal;
      d.source = a ? format_text(a) : "null";
      d.store = b ? format_text(b) : "null";
      return likeness::different;
    }
    case kind_type::compound: break;
  }
  for (const element_form& part : form.parts) {
    if (compare(part, first + part.offset, second + part.offset, d) == likeness::equal) continue;
    prepend(text::escape_name(part.name), d);
    return likeness::different;
  }
  return likeness::equal;
}

likeness element_comparison::compare_bits(const element_form& form, const std::byte* first, const std::byte* second,
                                          difference& d) const {
  if (std::memcmp(first, second, form.size) == 0) return likeness::equal;
  bool is_equal = !form.mask.empty();
  for (std::size_t i = 0; is_equal && i < form.size; ++i) is_equal = ((first[i] ^ second[i]) & form.mask[i]) == std::byte{0};
  if (is_equal) return likeness::equal;
  d.source = format_bits(form, first);
  d.store = format_bits(form, second);
  if (d.source == d.store) {  // as of floats whose texts are rounded
    d.source = hex(first, form.size);
    d.store = hex(second, form.size);
  }
  return likeness::different;
}

likeness element_comparison::compare_lists(const element_form& form, const std::byte* first, const std::byte* second,
                                           std::size_t count, difference& d) {
  if (form.is_plain() && std::memcmp(first, second, count * form.size) == 0) return likeness::equal;
  for (std::size_t i = 0; i < count; ++i) {
    if (compare(form, first + i * form.size, second + i * form.size, d) == likeness::equal) continue;
    prepend("[" + std::to_string(i) + "]", d);
    return likeness::different;
  }
  return likeness::equal;
}

likeness element_comparison::compare_sequences(const element_form& form, const std::byte* first, const std::byte* second,
                                               difference& d) {
  const auto a = load_as<hvl_t>(first), b = load_as<hvl_t>(second);
  if (a.len != b.len) {
    d.source = "a sequence of " + std::to_string(a.len);
    d.store = "one of " + std::to_string(b.len);
    return likeness::different;
  }
  if (a.len == 0) return likeness::equal;
  return compare_lists(form.parts[0], static_cast<const std::byte*>(a.p), static_cast<const std::byte*>(b.p), a.len, d);
}

element_comparison::target element_comparison::target_of(const side& s, const void* reference, H5R_type_t type) {
  target t;
  const hdf5::handle object(H5Rdereference2(s.tree.file(), H5P_DEFAULT, type, reference));
  H5O_info_t info;
  if (!object || H5Oget_info(object.get(), &info) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return t;
  }
  t.address = info.addr;
  const auto entry = s.tree.objects().find(info.addr);
  if (entry != s.tree.objects().end()) {
    t.state = target::state_type::object;
    t.text = entry->second.path;
    return t;
  }
  t.state = target::state_type::unlisted;
  char name[4096] = {};
  const ssize_t n = H5Rget_name(s.tree.file(), type, reference, name, sizeof name);
  H5Eclear2(H5E_DEFAULT);
  if (n > 0 && n < static_cast<ssize_t>(sizeof name)) t.text = name;
  return t;
}

const element_comparison::target& element_comparison::object_target(side& s, const std::byte* reference) {
  static const target null{target::state_type::null, HADDR_UNDEF, "null"};
  const auto address = load_as<hobj_ref_t>(reference);
  if (address == 0 || address == HADDR_UNDEF) return null;
  if (const auto entry = s.objects.find(address); entry != s.objects.end()) return entry->second;
  if (s.objects.size() >= max_cached_targets) s.objects.clear();
  return s.objects[address] = target_of(s, &address, H5R_OBJECT);
}

likeness element_comparison::compare_targets(const target& first, const target& second, difference& d) const {
  using state_type = target::state_type;
  const auto describe_target = [](const target& t) -> std::string {
    if (t.state == state_type::null) return "null";
    if (t.state == state_type::dangling) return "a reference to no object";
    return t.text.empty() ? "a reference to an object without a path" : quoted_path(t.text);
  };
  if (first.state == second.state) {
    switch (first.state) {
      case state_type::null:
      case state_type::dangling: return likeness::equal;
      case state_type::object:
        if (pairs_.is_pair(first.address, second.address)) return likeness::equal;
        break;
      case state_type::unlisted:
        if (first.text.empty() && second.text.empty())
          throw zarr::not_supported(reason_code::unsupported_feature, "references to objects that no path leads to");
        if (first.text == second.text) return likeness::equal;
    }
  }
  d.source = describe_target(first);
  d.store = describe_target(second);
  return likeness::different;
}

likeness element_comparison::compare_objects(const std::byte* first, const std::byte* second, difference& d) {
  return compare_targets(object_target(first_, first), object_target(second_, second), d);
}

likeness element_comparison::compare_regions(const std::byte* first, const std::byte* second, difference& d) {
  const auto region_target = [](const side& s, const std::byte* reference) {
    const bool is_null =
        std::all_of(reference, reference + sizeof(hdset_reg_ref_t), [](std::byte b) { return b == std::byte{0}; });
    return is_null ? target{target::state_type::null, HADDR_UNDEF, "null"} : target_of(s, reference, H5R_DATASET_REGION);
  };
  const target a = region_target(first_, first), b = region_target(second_, second);
  if (compare_targets(a, b, d) != likeness::equal) return likeness::different;
  if (a.state == target::state_type::null || a.state == target::state_type::dangling) return likeness::equal;
  const hdf5::handle x(H5Rget_region(first_.tree.file(), H5R_DATASET_REGION, first)),
      y(H5Rget_region(second_.tree.file(), H5R_DATASET_REGION, second));
  if (!x && !y) {
    H5Eclear2(H5E_DEFAULT);
    throw source_error("cannot read the selection of a reference");
  }
  if (x && y && selected_corners(x.get()) == selected_corners(y.get())) return likeness::equal;
  d.source = quoted_path(a.text) + ", " + (x ? format_selection(x.get()) : "unreadable");
  d.store = quoted_path(b.text) + ", " + (y ? format_selection(y.get()) : "unreadable");
  return likeness::different;
}

std::string element_comparison::named_type_difference(hid_t first, hid_t second) const {
  const bool is_named = H5Tcommitted(first) > 0, other_is_named = H5Tcommitted(second) > 0;
  if (is_named != other_is_named)
    return is_named ? "it is a named type only in the first file" : "it is a named type only in the second file";
  H5O_info_t a, b;
  if (!is_named || H5Oget_info(first, &a) < 0 || H5Oget_info(second, &b) < 0) return "";
  const auto path_of = [](const side& s, const H5O_info_t& info) {
    const auto entry = s.tree.objects().find(info.addr);
    return entry != s.tree.objects().end() ? entry->second.path : std::string();
  };
  const std::string path = path_of(first_, a), other_path = path_of(second_, b);
  if (pairs_.is_pair(a.addr, b.addr) || (path.empty() && other_path.empty())) return "";
  const auto described = [](const std::string& p) {
    return p.empty() ? std::string("a named type without a path") : "the named type " + quoted_path(p);
  };
  return in_both("it is " + described(path), described(other_path));
}

}  // namespace zarrbits::verification
