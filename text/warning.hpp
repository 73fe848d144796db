// SPDX-License-Identifier: BSL-1.0
//
// Sentences for those who asked for them.
//
#ifndef ZARRBITS_TEXT_WARNING_HPP
#define ZARRBITS_TEXT_WARNING_HPP

#include <functional>
#include <string>

namespace zarrbits::text {

// Calls `listener`, unless it or the sentence is empty.
inline void report_sentence(const std::function<void(const std::string&)>& listener, const std::string& sentence) {
  if (listener && !sentence.empty()) listener(sentence);
}

}  // namespace zarrbits::text

#endif
