// SPDX-License-Identifier: BSL-1.0
//
// How zarrbits says that something is wrong.
//
//   try {
//     auto c = zarrbits::packbits("uint16", {.last_bit = 16});
//     zarrbits::convert({.source = {.name = "in.h5"}, .target = {.name = "out.zarr"}});
//   } catch (const zarrbits::error& e) {   // a std::runtime_error; what() is a complete sentence
//     switch (e.kind()) {
//       case zarrbits::errc::invalid_configuration: ...   // packbits: "last_bit" is 16, but uint16 has bits 0 to 15; ...
//       case zarrbits::errc::not_found: ...               // e.place().file is "in.h5"
//     }
//   }
//
// Every function of zarrbits that throws an error of its own throws `error`: a codec that is made with a wrong configuration,
// convert(), verify(), inspect(). Wrong *data* of a codec is a std::error_code that transforms and chunk functions return, with a
// `failure` that has the element and its value. Only encode() and decode(), which return vectors, throw it, as `data_error`.
//
#ifndef ZARRBITS_ERROR_HPP
#define ZARRBITS_ERROR_HPP

#include <zarrbits/detail/api.hpp>
#include <zarrbits/detail/requirements.hpp>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace zarrbits {

// The numbers never change: they may be stored, or pass through C interfaces.
enum class errc {
  // configuration: thrown as `error`
  invalid_data_type = 1,       // no such data type, or one with a wrong configuration
  invalid_codec = 2,           // no such codec, or JSON that is not a codec
  invalid_configuration = 3,   // a key, a value or a combination that the codec does not take
  unsupported_data_type = 4,   // the codec does not take this data type
  element_count_required = 5,  // padding_encoding first_byte needs the number of elements before the data
  size_overflow = 6,           // a size that does not fit in 64 bits (or in this machine's memory)
  // data: returned as std::error_code
  value_does_not_fit = 7,       // encode would lose bits of this value
  invalid_bool = 8,             // a bool that is neither 0 nor 1
  truncated = 9,                // the data ends too early
  trailing_data = 10,           // the data continues after its end
  invalid_padding_count = 11,   // the count byte disagrees with the data
  nonzero_padding = 12,         // padding bits are set (only with strict_padding)
  element_count_mismatch = 13,  // more or fewer elements than were announced
  buffer_too_small = 14,        // the caller's output buffer is too small for the result
  invalid_range = 15,           // a range of elements outside the chunk
  partial_element = 16,         // decode: the size of the output buffer is not a multiple of the element size
  element_size_mismatch = 17,   // the elements in memory do not have the size of the data type's elements
  // files, stores and options: thrown as `error` by convert(), verify() and inspect()
  invalid_option = 32,     // an option, or a combination of options, that is wrong whatever the source has
  no_match = 33,           // an option that the source cannot obey: a pattern without a match, another rank, too few bits
  not_found = 34,          // a file, a store or an object does not exist
  already_exists = 35,     // the target exists
  permission_denied = 36,  // the system, or a server, does not allow it
  no_space = 37,           // the disk, or a quota, is full
  io_failed = 38,          // the system cannot read or write
  damaged_source = 39,     // the source, a file or a store, is damaged, or is not an HDF5 file
  damaged_store = 40,      // a store that is compared, continued or added to is damaged
  unsupported = 41,        // Zarr, the target or this build does not have what it needs
  refused = 42,            // a limit or a rule for untrusted files, which an option may lift
  changed = 43,            // a file or a store changed in the meantime
  busy = 44,               // another process holds it
  different = 45,          // a store that was begun or made from another source, or with other options
  not_joinable = 46,       // files that do not belong together
  incomplete = 47,         // parts of the store are missing
  server_failed = 48,      // a server does not answer, or answers wrongly
};

// The category of `errc`; its name is "zarrbits", its messages are short sentences without the details of `failure`.
ZARRBITS_API const std::error_category& error_category() noexcept;

// Its name, as in the command's log: "not_found".
ZARRBITS_API const char* to_string(errc e) noexcept;

// Converts an errc to a std::error_code implicitly.
inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), error_category()}; }

// `code == errc::truncated`, and != with it. Compares categories by name: a program and a shared library may each contain
// zarrbits with hidden symbols, and then have one category each.
inline bool operator==(const std::error_code& code, errc e) noexcept {
  return code.value() == static_cast<int>(e) &&
         (code.category() == error_category() || std::strcmp(code.category().name(), "zarrbits") == 0);
}

// Where an error is.
struct error_place {
  std::string file = {};    // a file, a store or a server; "" if the error is not in one
  std::string object = {};  // the path of an object in it; "" if it is not in one
};

// An error with its sentence: what() says what is wrong, where, and what to do. It names members of options in backquotes.
class ZARRBITS_API error : public std::runtime_error {
 public:
  // With its own sentence.
  error(errc code, const std::string& message, error_place place = {})
      : std::runtime_error(message), code_(make_error_code(code)), place_(std::move(place)) {}
  // Which kind of mistake it is.
  const std::error_code& code() const noexcept { return code_; }
  // The same, for a `switch`.
  errc kind() const noexcept { return static_cast<errc>(code_.value()); }
  // The file and the object that it is about.
  const error_place& place() const noexcept { return place_; }

 protected:
  // The same, for errors in data.
  error(std::error_code code, const std::string& message) : std::runtime_error(message), code_(code) {}

 private:
  std::error_code code_;
  error_place place_;
};

// True for errors of codecs: a wrong configuration, or wrong data.
inline bool is_codec_error(const error& e) noexcept { return e.kind() < errc::invalid_option; }

// Where and why data was refused. `codec::explain()` turns it into a sentence.
struct failure {
  std::error_code code;       // empty: nothing failed
  std::uint64_t element = 0;  // index of the element, in C order, counted from the first one of the chunk or stream
  std::uint64_t value = 0;    // bits of the refused component, the count byte, or the number found, according to `code`

  // True if something failed.
  explicit operator bool() const noexcept { return static_cast<bool>(code); }
};

// Wrong data. Thrown by functions that return their result: encode() and decode() of <zarrbits/chunk.hpp>. what() is the sentence
// of codec::explain().
class ZARRBITS_API data_error : public error {
 public:
  // With the sentence of codec::explain().
  data_error(const zarrbits::failure& f, const std::string& message) : error(f.code, message), failure_(f) {}
  // The refused element, and its value.
  const zarrbits::failure& failure() const noexcept { return failure_; }

 private:
  zarrbits::failure failure_;
};

}  // namespace zarrbits

template <>
struct std::is_error_code_enum<zarrbits::errc> : std::true_type {};

#endif
