// SPDX-License-Identifier: BSL-1.0
#include "filter/message.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

thread_local char last[sizeof(sentence::text)];

#if defined(__linux__) && defined(__x86_64__)
// The only function that a plugin needs from the loader; it exists wherever libc does. With a strong reference, the linker would
// list the loader next to libc as needed.
__asm__(".weak __tls_get_addr");
#endif

enum class log { always, when_lost, never };

log log_mode() noexcept {
  const char* set = std::getenv("ZARRBITS_HDF5_LOG");
  return !set ? log::when_lost : std::strcmp(set, "0") == 0 ? log::never : log::always;
}

void print(const sentence& message) noexcept { std::fprintf(stderr, "%s\n", message.text); }

}  // namespace

bool sentence::set(minor m, const char* format, ...) noexcept {
  kind = m;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return false;
}

const char* last_error() noexcept { return last; }

void note(const sentence& message) noexcept {
  if (log_mode() == log::always) print(message);
}

void warn(std::uintptr_t key, const sentence& message) noexcept {
  static std::atomic<std::uintptr_t> reported[64];
  std::memcpy(last, message.text, sizeof last);
  const bool repeated = reported[key / 16 % 64].exchange(key, std::memory_order_relaxed) == key;
  const log mode = log_mode();
  if (mode == log::always || (mode == log::when_lost && !repeated)) print(message);
}

void report(const library& h5, const char* function, const sentence& message, bool is_lost) noexcept {
  const bool repeated = std::strcmp(last, message.text) == 0;
  std::memcpy(last, message.text, sizeof last);
  const hid cls = h5.error_id("H5E_ERR_CLS_g"), major = h5.error_id("H5E_PLINE_g"),
            small = h5.error_id(minor_variable(message.kind));
  const bool stack = h5.call.push_error && cls > 0 && major > 0 && small > 0;
  // without an error stack, the terminal is better than nothing
  is_lost = is_lost || !stack || (h5.loses_filter_errors && std::strcmp(function, "filter") == 0);
  const log mode = log_mode();
  if (mode == log::always || (mode == log::when_lost && is_lost && !repeated)) print(message);
  if (stack) h5.call.push_error(0, "zarrbits", function, 0, cls, major, small, "%s", message.text);
}

}  // namespace zarrbits::filter
