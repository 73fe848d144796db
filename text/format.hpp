// SPDX-License-Identifier: BSL-1.0
//
// Numbers and characters as people read them.
//
#ifndef ZARRBITS_TEXT_FORMAT_HPP
#define ZARRBITS_TEXT_FORMAT_HPP

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zarrbits::text {

// The length of the UTF-8 character at the front, or 0 if none begins there.
std::size_t utf8_length(std::string_view bytes) noexcept;
bool is_utf8(std::string_view bytes) noexcept;
// The text with U+FFFD for each sequence that is not UTF-8, as Unicode recommends and most decoders do: one for the longest
// beginning of a character, or for a byte that begins none.
std::string replace_invalid_utf8(std::string_view bytes);

// "3 chunks", "1 chunk".
std::string pluralize(std::uint64_t n, std::string_view noun);
// "12.3 MiB"
std::string format_bytes(std::uint64_t bytes);

// Without an indent, on one line. Names in a file may be any bytes, and JSON is UTF-8: other bytes become U+FFFD.
std::string json_text(const nlohmann::ordered_json& j, int indent = -1);

// JSON in which some values are to be bare words, which JSON has no values for: `word_of` returns the word of such a value, or
// "". Numbers that core/json.hpp has as their text are such values, too. `text_of` makes the text of all others.
std::string json_text_with_words(const nlohmann::ordered_json& j,
                                 const std::function<std::string(const nlohmann::ordered_json&)>& word_of,
                                 const std::function<std::string(const nlohmann::ordered_json&)>& text_of);

}  // namespace zarrbits::text

#endif
