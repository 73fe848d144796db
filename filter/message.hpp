// SPDX-License-Identifier: BSL-1.0
//
// One sentence that says what was wrong, where, and what to do; and the ways by which it reaches a user of HDF5.
//
#ifndef ZARRBITS_FILTER_MESSAGE_HPP
#define ZARRBITS_FILTER_MESSAGE_HPP

#include "filter/caller.hpp"

#include <atomic>

// MinGW's headers give C++ programs a standard printf; the compiler means Windows' by "printf".
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

  // Sets the text, printf-like, and returns false, so that a check can end in `return why.set(...)`.
  bool set(minor m, const char* format, ...) noexcept __attribute__((format(ZARRBITS_FILTER_PRINTF, 3, 4)));
};

// Puts the sentence on the error stack of the library that called: h5py raises it as an exception, the tools print it with
// --enable-error-stack. Where it will be lost there it is a line on standard error, but not the same line again: HDF5 1.14.5
// to 2.1 throw away what filter() puts there, and all of them what an optional filter does while writing. The environment
// variable ZARRBITS_HDF5_LOG asks for such a line always, or never (0). Must be the last call into HDF5: others clear the stack.
void report(const library& h5, const char* function, const sentence& why, bool lost = false) noexcept;

// A line on standard error (not with ZARRBITS_HDF5_LOG=0) that a process needs only once: nothing has failed, but it will not be
// what is wanted.
void warn_once(std::atomic<bool>& said, const sentence& why) noexcept;

// Only the line on standard error, where ZARRBITS_HDF5_LOG asks for it: nothing has failed.
void note(const sentence& why) noexcept;

// The last sentence that was reported in this thread, or "".
const char* last_error() noexcept;

}  // namespace zarrbits::filter

#endif
