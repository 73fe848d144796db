// SPDX-License-Identifier: BSL-1.0
#include "filter/message.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace zarrbits::filter {

namespace {

const char* minor_variable(minor m) noexcept {
  switch (m) {
    case minor::bad_type: return "H5E_BADTYPE_g";
    case minor::bad_value: return "H5E_BADVALUE_g";
    case minor::no_space: return "H5E_NOSPACE_g";
    case minor::cant_filter: break;
  }
  return "H5E_CANTFILTER_g";
}

void print(const sentence& why) noexcept { std::fprintf(stderr, "%s\n", why.text); }

}  // namespace

bool sentence::set(minor m, const char* format, ...) noexcept {
  kind = m;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return false;
}

void note(const sentence& why) noexcept {
  if (std::getenv("ZARRBITS_HDF5_LOG")) print(why);
}

void report(const library& h5, const char* function, const sentence& why) noexcept {
  const hid cls = h5.error_id("H5E_ERR_CLS_g"), major = h5.error_id("H5E_PLINE_g"), small = h5.error_id(minor_variable(why.kind));
  if (h5.call.push_error && cls > 0 && major > 0 && small > 0) {
    note(why);
    h5.call.push_error(0, "zarrbits", function, 0, cls, major, small, "%s", why.text);
  } else {
    print(why);  // no error stack to be found: better on the terminal than nowhere
  }
}

}  // namespace zarrbits::filter
