// SPDX-License-Identifier: BSL-1.0
#include "repack/reference_map.hpp"

#include "array/extents.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace zarrbits::repacking {

namespace {

bool any_part(hid_t type, bool variable, unsigned depth = 0) {
  constexpr unsigned max_depth = 64;
  if (depth > max_depth) throw hdf5::failure("a datatype of more than 64 levels");
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: return true;
    case H5T_STRING: return variable && H5Tis_variable_str(type) > 0;
    case H5T_VLEN:
      if (variable) return true;
      [[fallthrough]];
    case H5T_ARRAY: return any_part(hdf5::handle(H5Tget_super(type), "get the base of a datatype"), variable, depth + 1);
    case H5T_COMPOUND: {
      const int members = H5Tget_nmembers(type);
      for (int i = 0; i < members; ++i) {
        if (any_part(hdf5::handle(H5Tget_member_type(type, static_cast<unsigned>(i)), "get a member's type"), variable,
                     depth + 1))
          return true;
      }
      return false;
    }
    default: return false;
  }
}

std::uint64_t elements_of_array(hid_t type) {
  hsize_t dims[H5S_MAX_RANK] = {};
  const int rank = H5Tget_array_ndims(type);
  if (rank < 0 || rank > H5S_MAX_RANK || H5Tget_array_dims2(type, dims) < 0) hdf5::fail("get the extent of an array type");
  return array::product(array::extents(dims, dims + rank));
}

}  // namespace

bool reference_map::has_linked_values(hid_t type) { return any_part(type, true); }
bool reference_map::has_references(hid_t type) { return any_part(type, false); }

bool reference_map::are_equal(hid_t type, const std::byte* a, const std::byte* b, std::uint64_t count) {
  const std::size_t size = H5Tget_size(type);
  if (!has_linked_values(type)) return std::memcmp(a, b, static_cast<std::size_t>(count) * size) == 0;
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_REFERENCE) return std::memcmp(a, b, static_cast<std::size_t>(count) * size) == 0;
  if (kind == H5T_ARRAY)
    return are_equal(hdf5::handle(H5Tget_super(type), "get the base of a datatype"), a, b,
                     array::saturating_mul(count, elements_of_array(type)));
  for (std::uint64_t i = 0; i < count; ++i, a += size, b += size) {
    if (kind == H5T_STRING) {
      const char *x = nullptr, *y = nullptr;
      std::memcpy(&x, a, sizeof x);
      std::memcpy(&y, b, sizeof y);
      if (std::strcmp(x ? x : "", y ? y : "") != 0) return false;
    } else if (kind == H5T_VLEN) {
      hvl_t x, y;
      std::memcpy(&x, a, sizeof x);
      std::memcpy(&y, b, sizeof y);
      const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
      if (x.len != y.len ||
          (x.len > 0 && !are_equal(base, static_cast<const std::byte*>(x.p), static_cast<const std::byte*>(y.p), x.len)))
        return false;
    } else {  // a compound; the bytes between its members mean nothing
      const int members = H5Tget_nmembers(type);
      for (int m = 0; m < members; ++m) {
        const hdf5::handle member(H5Tget_member_type(type, static_cast<unsigned>(m)), "get a member's type");
        const std::size_t offset = H5Tget_member_offset(type, static_cast<unsigned>(m));
        if (!are_equal(member, a + offset, b + offset, 1)) return false;
      }
    }
  }
  return true;
}

void reference_map::translate(hid_t type, std::byte* values, std::uint64_t count) const {
  if (count == 0 || !has_references(type)) return;
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: {
      const bool is_object = H5Tequal(type, H5T_STD_REF_OBJ) > 0, is_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
      if (!is_object && !is_region)
        throw hdf5::failure("references in the form of HDF5 1.12, which earlier versions cannot read");
      for (std::uint64_t i = 0; i < count; ++i, values += size) {
        if (std::all_of(values, values + size, [](std::byte b) { return b == std::byte{0}; })) continue;
        if (is_object) translate_object(values, size);
        else translate_region(values, size);
      }
      return;
    }
    case H5T_ARRAY: {
      const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
      return translate(base, values, array::saturating_mul(count, elements_of_array(type)));
    }
    case H5T_VLEN: {
      const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
      for (std::uint64_t i = 0; i < count; ++i, values += size) {
        hvl_t sequence;
        std::memcpy(&sequence, values, sizeof sequence);
        if (sequence.p) translate(base, static_cast<std::byte*>(sequence.p), sequence.len);
      }
      return;
    }
    case H5T_COMPOUND: {
      const int members = H5Tget_nmembers(type);
      for (int m = 0; m < members; ++m) {
        const hdf5::handle member(H5Tget_member_type(type, static_cast<unsigned>(m)), "get a member's type");
        if (!has_references(member)) continue;
        const std::size_t offset = H5Tget_member_offset(type, static_cast<unsigned>(m));
        for (std::uint64_t i = 0; i < count; ++i) translate(member, values + i * size + offset, 1);
      }
      return;
    }
    default: return;
  }
}

void reference_map::translate_object(std::byte* reference, std::size_t size) const {
  hobj_ref_t address = 0;  // that is what such a reference is
  std::memcpy(&address, reference, std::min(size, sizeof address));
  const auto copy = addresses_.find(static_cast<haddr_t>(address));
  dangling_ += copy == addresses_.end();
  address = copy == addresses_.end() ? 0 : static_cast<hobj_ref_t>(copy->second);
  std::memcpy(reference, &address, std::min(size, sizeof address));
}

void reference_map::translate_region(std::byte* reference, std::size_t size) const {
  const auto drop = [&] {
    H5Eclear2(H5E_DEFAULT);
    std::memset(reference, 0, size);
    ++dangling_;
  };
  const hdf5::handle object(H5Rdereference2(source_, H5P_DEFAULT, H5R_DATASET_REGION, reference));
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  if (!object || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return drop();
  const auto copy = addresses_.find(info.addr);
  if (copy == addresses_.end()) return drop();
  const hdf5::handle region(H5Rget_region(source_, H5R_DATASET_REGION, reference), "read the region of a reference");
  const hdf5::handle in_target(H5Oopen_by_addr(target_, copy->second), "open the object of a reference");
  std::memset(reference, 0, size);
  hdf5::check(H5Rcreate(reference, in_target, ".", H5R_DATASET_REGION, region), "write a reference to a region");
}

}  // namespace zarrbits::repacking
