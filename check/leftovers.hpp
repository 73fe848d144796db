// SPDX-License-Identifier: BSL-1.0
//
// What the writers of stores leave when they are killed.
//
#ifndef ZARRBITS_CHECK_LEFTOVERS_HPP
#define ZARRBITS_CHECK_LEFTOVERS_HPP

#include <string>

namespace zarrbits::checking {

// What a key of a store is a part of; empty if it has nothing to do with them.
std::string leftover_reason(const std::string& key);

}  // namespace zarrbits::checking

#endif
