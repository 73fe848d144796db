// SPDX-License-Identifier: BSL-1.0
//
// What of a value counts in a digest, whatever the format, codecs and byte order: docs/reference/digest.md.
//
//   const element_form form(array.type(), false);
//   form.name();                      // "float32"
//   form.canonical(buffer, storage);  // the bytes of its elements, form.size() for each
//
#ifndef ZARRBITS_DIGEST_ELEMENT_FORM_HPP
#define ZARRBITS_DIGEST_ELEMENT_FORM_HPP

#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::digesting {

class element_form {
 public:
  // `any_nan`: all NaNs are one value.
  element_form(zarr::zarr_type type, bool any_nan);

  const std::string& name() const noexcept { return name_; }
  std::size_t size() const noexcept { return type_.variable() ? hash_size : type_.size; }
  // True if elements in little-endian order are what counts.
  bool is_plain() const noexcept { return !type_.variable() && !any_nan_; }
  // Changes the values; the result is in them, or in `storage`.
  std::span<const std::byte> canonical(zarr::element_buffer& values, std::vector<std::byte>& storage) const;

 private:
  static constexpr std::size_t hash_size = 32;

  zarr::zarr_type type_;
  bool any_nan_;
  std::string name_;
};

}  // namespace zarrbits::digesting

#endif
