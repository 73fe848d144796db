// SPDX-License-Identifier: BSL-1.0
//
// Turns every error of the core into codec_error, the only exception type that streams throw.
//
#ifndef ZARRBITS_STREAMS_THROW_HPP
#define ZARRBITS_STREAMS_THROW_HPP

#include <zarrbits/iostreams.hpp>

#include <climits>
#include <ios>
#include <string>
#include <utility>

namespace zarrbits::iostreams::detail {

// Calls f(); an `error` of the core becomes a codec_error.
template <class F>
auto as_codec_error(F&& f) -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const error& e) {
    throw codec_error({.code = e.code()}, e.what());
  }
}

// Boost asserts that a buffer has a size, and keeps it as an int with the putback area added.
inline std::streamsize checked_buffer_size(const zarrbits::codec& c, std::streamsize n) {
  if (n > 0 && n <= INT_MAX / 2) return n;
  throw codec_error({.code = errc::invalid_configuration}, c.name() + ": the buffer size of the filter is " + std::to_string(n) +
                                                               "; use 1 to " + std::to_string(INT_MAX / 2) + " bytes (" +
                                                               std::to_string(default_buffer_size) + " is a good choice)");
}

}  // namespace zarrbits::iostreams::detail

#endif
