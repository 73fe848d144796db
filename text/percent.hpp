// SPDX-License-Identifier: BSL-1.0
//
// Escapes of single bytes: "%2F".
//
#ifndef ZARRBITS_TEXT_PERCENT_HPP
#define ZARRBITS_TEXT_PERCENT_HPP

#include <string>

namespace zarrbits::conversion {

inline void append_percent(std::string& out, char c) {
  constexpr char digits[] = "0123456789ABCDEF";
  const auto b = static_cast<unsigned char>(c);
  out += '%';
  out += digits[b >> 4];
  out += digits[b & 15];
}

}  // namespace zarrbits::conversion

#endif
