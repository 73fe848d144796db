// SPDX-License-Identifier: BSL-1.0
//
// Numbers in memory, and values as sentences show them.
//
#ifndef ZARRBITS_VERIFY_VALUE_TEXT_HPP
#define ZARRBITS_VERIFY_VALUE_TEXT_HPP

#include "verify/source_values.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::verification {

// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
std::size_t utf8_length(std::string_view text) noexcept;
bool is_utf8(std::string_view text) noexcept;
// A name as reports write it: a byte that is not UTF-8 is %XX.
std::string shown_name(std::string_view name);

// Of at most 8 bytes, in this machine's byte order.
std::uint64_t load(const std::byte* p, std::size_t size);
std::int64_t load_signed(const std::byte* p, std::size_t size);
// A number of the source, in whichever order memory has it.
std::uint64_t load_source(const source_type& t, const std::byte* p);
std::int64_t load_source_signed(const source_type& t, const std::byte* p);

// The value of a float of this data type of Zarr; nothing where it is none of IEEE's.
std::optional<double> float_value(std::string_view data_type, const std::byte* p);

// All of these are short.
std::string hex(const std::byte* p, std::size_t size);
std::string show_text(std::string_view text);  // in quotes, and always UTF-8: other bytes and control characters as \xff
std::string show_float(double v, const std::byte* p, std::size_t size);
std::string show_source(const source_type& t, const std::byte* p);

}  // namespace zarrbits::verification

#endif
