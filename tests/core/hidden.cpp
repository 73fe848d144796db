// SPDX-License-Identifier: BSL-1.0
//
// A shared library with zarrbits inside that shows nothing but one function of its own.
//
#include <zarrbits/codec.hpp>

#include <system_error>

__attribute__((visibility("default"))) std::error_code codec_error_in_shared_library();

std::error_code codec_error_in_shared_library() {
  try {
    (void)zarrbits::parse_codec("gzip", "uint8");
    return {};
  } catch (const zarrbits::error& e) {
    return e.code();
  }
}
