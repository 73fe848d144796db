// SPDX-License-Identifier: BSL-1.0
#include "hdf5/link_value.hpp"

#include "text/format.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace zarrbits::hdf5 {

namespace {

constexpr std::size_t longest_link_value = 1 << 20;

// Versions of libhdf5 call it with different arguments.
template <class... Arguments>
hid_t refuse_traversal(Arguments...) {
  return -1;
}

ssize_t copy_value(const char*, const void* value, std::size_t size, void* out, std::size_t capacity) {
  if (out && size > 0) std::memcpy(out, value, std::min(size, capacity));
  return static_cast<ssize_t>(size);
}

}  // namespace

std::string link_value(hid_t group, const std::string& name) {
  H5L_info_t info;
  check(H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT), "get information about a link");
  if (info.u.val_size > longest_link_value) throw failure("a link's value of " + text::format_bytes(info.u.val_size));
  std::string value(info.u.val_size, '\0');
  if (!value.empty()) check(H5Lget_val(group, name.c_str(), value.data(), value.size(), H5P_DEFAULT), "read a link");
  return value;
}

void register_link_class(H5L_type_t type) {
  if (type < H5L_TYPE_UD_MIN || H5Lis_registered(type) > 0) return;
  H5L_class_t c{};
  c.version = H5L_LINK_CLASS_T_VERS;
  c.id = type;
  c.comment = "known by its value alone";
  c.trav_func = refuse_traversal;
  c.query_func = copy_value;
  check(H5Lregister(&c), "register a class of links");
}

}  // namespace zarrbits::hdf5
