// SPDX-License-Identifier: BSL-1.0
#include "digest/element_form.hpp"

#include "digest/sha256_bytes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace zarrbits::digesting {

namespace {

using zarr::zarr_kind;
using zarr::zarr_type;

// Data types have several names, and configurations that matter.
std::string name_of(const zarr_type& type) {
  const std::string bytes = "[" + std::to_string(type.size) + "]";
  switch (type.kind) {
    case zarr_kind::raw: return "r" + std::to_string(8 * type.size);
    case zarr_kind::terminated: return "null_terminated_bytes" + bytes;
    case zarr_kind::text32: return "fixed_length_utf32" + bytes;
    case zarr_kind::binary: return "variable_length_bytes";
    case zarr_kind::complex:
      return type.name == "complex_float32" ? "complex64" : type.name == "complex_float64" ? "complex128" : type.name;
    case zarr_kind::record: {
      std::string name = "struct{";
      for (const zarr::zarr_field& f : type.fields)
        name += std::to_string(f.name.size()) + ":" + f.name + "=" + name_of(f.type) + ";";
      return name + "}";
    }
    default: break;
  }
  if (type.unit.empty()) return type.name;
  const std::string micro = "\u03bcs";
  std::string unit = type.unit;
  if (unit.ends_with(micro)) unit.replace(unit.size() - micro.size(), micro.size(), "us");
  return type.name + "[" + unit + "]";
}

struct float_bits {
  std::uint64_t exponent = 0, mantissa = 0, quiet = 0;  // masks; 0: NaNs of the type stay
};

float_bits masks_of(const zarr_type& type, std::size_t size) {
  if (size == 8) return {0x7FF0000000000000U, 0x000FFFFFFFFFFFFFU, 0x7FF8000000000000U};
  if (size == 4) return {0x7F800000U, 0x007FFFFFU, 0x7FC00000U};
  if (type.name.ends_with("bfloat16")) return {0x7F80U, 0x007FU, 0x7FC0U};
  if (size == 2) return {0x7C00U, 0x03FFU, 0x7E00U};
  return {};
}

void unify_nans(const zarr_type& type, std::byte* p, std::size_t size) {
  const float_bits masks = masks_of(type, size);
  std::uint64_t bits = 0;
  std::byte* const low = std::endian::native == std::endian::big ? reinterpret_cast<std::byte*>(&bits) + 8 - size
                                                                 : reinterpret_cast<std::byte*>(&bits);
  std::memcpy(low, p, size);
  if (masks.exponent == 0 || (bits & masks.exponent) != masks.exponent || (bits & masks.mantissa) == 0) return;
  bits = masks.quiet;
  std::memcpy(p, low, size);
}

// One element, in this machine's byte order before.
void make_canonical(const zarr_type& type, bool any_nan, std::byte* p) {
  if (type.kind == zarr_kind::record) {
    for (const zarr::zarr_field& f : type.fields) make_canonical(f.type, any_nan, p + f.offset);
    return;
  }
  if (type.kind == zarr_kind::raw || type.kind == zarr_kind::terminated) return;
  const std::size_t count = type.kind == zarr_kind::complex  ? 2
                            : type.kind == zarr_kind::text32 ? type.size / 4
                                                             : 1,
                    size = type.size / std::max<std::size_t>(1, count);
  const bool is_float = type.kind == zarr_kind::floating || type.kind == zarr_kind::complex;
  for (std::size_t i = 0; i < count; ++i, p += size) {
    if (any_nan && is_float) unify_nans(type, p, size);
    if constexpr (std::endian::native == std::endian::big) std::reverse(p, p + size);
  }
}

}  // namespace

element_form::element_form(zarr_type type, bool any_nan)
    : type_(std::move(type)), any_nan_(any_nan), name_(name_of(type_) + (any_nan ? " nan=any" : "")) {}

std::span<const std::byte> element_form::canonical(zarr::element_buffer& values, std::vector<std::byte>& storage) const {
  if (type_.variable()) {
    storage.assign(values.strings.size() * hash_size, std::byte{0});
    for (std::size_t i = 0; i < values.strings.size(); ++i) {
      if (values.strings[i].empty()) continue;
      const auto hash = sha256_bytes(values.strings[i]);
      std::memcpy(storage.data() + i * hash_size, hash.data(), hash_size);
    }
    return storage;
  }
  if (any_nan_ || std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i + type_.size <= values.data.size() && type_.size > 0; i += type_.size)
      make_canonical(type_, any_nan_, values.data.data() + i);
  }
  return values.data;
}

}  // namespace zarrbits::digesting
