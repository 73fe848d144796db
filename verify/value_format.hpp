// SPDX-License-Identifier: BSL-1.0
//
// Numbers in memory, and values as text for sentences.
//
#ifndef ZARRBITS_VERIFY_VALUE_FORMAT_HPP
#define ZARRBITS_VERIFY_VALUE_FORMAT_HPP

#include "verify/source_values.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::verification {

// Size of the UTF-8 character at the front of `text`; 0 if absent.
std::size_t utf8_length(std::string_view text) noexcept;
bool is_utf8(std::string_view text) noexcept;
// A name as reports write it: a byte that is not UTF-8 becomes %XX.
std::string format_name(std::string_view name);

// A number of at most 8 bytes, in this machine's byte order.
std::uint64_t load(const std::byte* p, std::size_t size);
std::int64_t load_signed(const std::byte* p, std::size_t size);
// A number of the source, in the byte order of its memory.
std::uint64_t load_source(const source_type& t, const std::byte* p);
std::int64_t load_source_signed(const source_type& t, const std::byte* p);

// The value of a float of this Zarr data type; empty if it is not an IEEE float.
std::optional<double> float_value(std::string_view data_type, const std::byte* p);

// All of these return short texts.
std::string hex(const std::byte* p, std::size_t size);
std::string format_text(std::string_view text);  // in quotes, and always UTF-8: other bytes and control characters become \xff
std::string format_float(double v, const std::byte* p, std::size_t size);
std::string format_source(const source_type& t, const std::byte* p);

}  // namespace zarrbits::verification

#endif
