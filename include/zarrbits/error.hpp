// SPDX-License-Identifier: BSL-1.0
//
// How zarrbits says that something is wrong.
//
//   try {
//     auto c = zarrbits::packbits("uint16", {.last_bit = 16});
//   } catch (const zarrbits::error& e) {   // a std::runtime_error; what() is a whole sentence
//     // packbits: "last_bit" is 16, but uint16 has bits 0 to 15; ...
//   }
//
// A wrong configuration throws `error` when the codec is made. Wrong *data* never throws in the core: transforms and chunk
// functions return a std::error_code, and a `failure` says which element it was and what it held.
//
#ifndef ZARRBITS_ERROR_HPP
#define ZARRBITS_ERROR_HPP

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace zarrbits {

enum class errc {
  // configuration: thrown as `error`
  invalid_data_type = 1,     // no such data type, or one with a wrong configuration
  invalid_codec,             // no such codec, or JSON that is not a codec
  invalid_configuration,     // a key, a value or a combination that the codec does not take
  unsupported_data_type,     // the codec does not take this data type
  element_count_required,    // padding_encoding first_byte needs the number of elements before the data
  size_overflow,             // a size that does not fit in 64 bits (or in this machine's memory)
  // data: returned as std::error_code
  value_does_not_fit,        // encode would lose bits of this value
  invalid_bool,              // a bool that is neither 0 nor 1
  truncated,                 // the data ends too early
  trailing_data,             // the data goes on after its end
  invalid_padding_count,     // the count byte disagrees with the data
  nonzero_padding,           // padding bits are set (only where strict_padding asks)
  element_count_mismatch,    // more or fewer elements than were announced
  buffer_too_small,          // the caller's output buffer does not hold the result
  invalid_range,             // a range of elements outside the chunk
  partial_element,           // decode: the size of the output buffer is no whole number of elements
};

// The category of `errc`; its name is "zarrbits", its messages are short sentences without the details of `failure`.
const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), error_category()}; }

// `code == errc::truncated`, and != with it. The category is compared by its name: a program and a shared library with zarrbits inside, whose
// symbols are hidden from each other, have one each.
inline bool operator==(const std::error_code& code, errc e) noexcept {
  return code.value() == static_cast<int>(e) && (code.category() == error_category() || std::strcmp(code.category().name(), "zarrbits") == 0);
}

// A wrong configuration, found when a codec or a data type is made. what() names the key, the value, the data type and what
// would be right.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& what) : std::runtime_error(what), code_(make_error_code(code)) {}
  const std::error_code& code() const noexcept { return code_; }

 private:
  std::error_code code_;
};

// Where and why data was refused. `codec::explain()` makes a sentence of it.
struct failure {
  std::error_code code;       // empty: nothing failed
  std::uint64_t element = 0;  // index of the element, in C order, counted from the first one of the chunk or stream
  std::uint64_t value = 0;    // bits of the refused component, the count byte, or the number found, according to `code`

  explicit operator bool() const noexcept { return static_cast<bool>(code); }
};

}  // namespace zarrbits

template <>
struct std::is_error_code_enum<zarrbits::errc> : std::true_type {};

#endif
