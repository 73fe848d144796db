// SPDX-License-Identifier: BSL-1.0
//
// A sentence that says what was wrong, where, and what to do; and the ways in which it reaches a user of HDF5.
//
#ifndef ZARRBITS_FILTER_MESSAGE_HPP
#define ZARRBITS_FILTER_MESSAGE_HPP

#include "filter/caller.hpp"

#include <cstdint>

// MinGW's headers give C++ programs a standard printf, but the compiler takes "printf" for Windows' own.
#ifdef __MINGW32__
#define ZARRBITS_FILTER_PRINTF gnu_printf
#else
#define ZARRBITS_FILTER_PRINTF printf
#endif

namespace zarrbits::filter {

// HDF5's minor error numbers that we use.
enum class minor { bad_type, bad_value, cant_filter, no_space };

struct sentence {
  char text[512] = "";
  minor kind = minor::bad_value;

  // Sets the text, printf-like, and returns false, so that a check can end with `return reason.set(...)`.
  bool set(minor m, const char* format, ...) noexcept __attribute__((format(ZARRBITS_FILTER_PRINTF, 3, 4)));
};

// Puts the sentence on the error stack of the calling library: h5py raises it as an exception, the tools print it with
// --enable-error-stack. If the library will lose it, prints a line on standard error instead, but never the same line twice in a
// row: HDF5 1.14.5 to 2.1 lose what filter() puts there, and all versions lose what an optional filter reports while writing. The
// environment variable ZARRBITS_HDF5_LOG requests such a line always, or never (0). Must be the last call into HDF5: other calls
// clear the stack.
void report(const library& h5, const char* function, const sentence& message, bool is_lost = false) noexcept;

// Prints a line on standard error once for each `key`, a number of the caller's choice (ZARRBITS_HDF5_LOG: always, or never):
// nothing has failed, but the result is probably unwanted.
void warn(std::uintptr_t key, const sentence& message) noexcept;

// Prints only the line on standard error, if ZARRBITS_HDF5_LOG requests it: nothing has failed.
void note(const sentence& message) noexcept;

// The last sentence that was reported in this thread, or "".
const char* last_error() noexcept;

}  // namespace zarrbits::filter

#endif
