// SPDX-License-Identifier: BSL-1.0
//
// Names from HDF5, where they are any bytes, as UTF-8.
//
#ifndef ZARRBITS_TEXT_NAME_ESCAPING_HPP
#define ZARRBITS_TEXT_NAME_ESCAPING_HPP

#include <string>
#include <string_view>

namespace zarrbits::text {

// A name for people, reports and JSON keys: each byte that is not UTF-8 becomes %XX, and so does a "%" that would look like such
// an escape; the rest stays. Different names stay different.
std::string escape_name(std::string_view name);
// The inverse of escape_name().
std::string unescape_name(std::string_view name);
// A sentence whose names have passed escape_name() already: each byte that is not UTF-8 becomes %XX.
std::string escape_invalid_utf8(std::string_view text);

}  // namespace zarrbits::text

#endif
