// SPDX-License-Identifier: BSL-1.0
//
// Why something is skipped, lossy or unusual: a code for programs, and a sentence for people. Both come from the place that
// knows.
//
//   text::set_reason(entry, reason_code::not_selected, "not selected");
//
#ifndef ZARRBITS_TEXT_CODED_REASON_HPP
#define ZARRBITS_TEXT_CODED_REASON_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/reason_code.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace zarrbits::text {

struct coded_reason {
  reason_code code = reason_code::none;
  std::string sentence = {};

  bool empty() const noexcept { return code == reason_code::none; }
};

// An exception with a code; what() is the sentence.
struct coded_error : std::runtime_error {
  coded_error(reason_code kind, const std::string& sentence) : std::runtime_error(sentence), code(kind) {}
  explicit coded_error(const coded_reason& reason) : coded_error(reason.code, reason.sentence) {}
  coded_reason reason() const { return {code, what()}; }
  reason_code code;
};

// Gives an entry of a report its reason.
template <class Entry>
void set_reason(Entry& entry, reason_code code, std::string sentence) {
  entry.code = code;
  entry.reason = std::move(sentence);
}

// A further reason: the code stays that of the first one.
template <class Entry>
void add_reason(Entry& entry, reason_code code, const std::string& sentence) {
  if (entry.reason.empty()) return set_reason(entry, code, sentence);
  entry.reason += "; " + sentence;
}

// The code of an error that costs a file or a store, but not the whole run.
reason_code reason_code_of(errc e) noexcept;

// Nothing if no code has this name; "none" is one.
std::optional<reason_code> parse_reason_code(std::string_view name) noexcept;

}  // namespace zarrbits::text

#endif
