// SPDX-License-Identifier: BSL-1.0
//
// Unicode's normalization form C, in which netCDF has names: one code point for a letter with its accents, where there is one.
//
#ifndef ZARRBITS_TEXT_NFC_HPP
#define ZARRBITS_TEXT_NFC_HPP

#include <string>
#include <string_view>

namespace zarrbits::text {

// Text that is not UTF-8 stays as it is.
std::string to_nfc(std::string_view text);

}  // namespace zarrbits::text

#endif
