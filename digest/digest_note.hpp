// SPDX-License-Identifier: BSL-1.0
//
// The digest of all values in words, as the root of a store or a file notes it for check().
//
#ifndef ZARRBITS_DIGEST_DIGEST_NOTE_HPP
#define ZARRBITS_DIGEST_DIGEST_NOTE_HPP

#include <string>

namespace zarrbits::digesting {

// "zarrbits digest 1: 41cd...".
std::string format_note(const std::string& digest);
// The digest in such a note; "" if it has another form.
std::string parse_note(const std::string& note);

}  // namespace zarrbits::digesting

#endif
