// SPDX-License-Identifier: BSL-1.0
//
//   say("    " + sentence);
//
#ifndef ZARRBITS_COMMAND_FITTED_HPP
#define ZARRBITS_COMMAND_FITTED_HPP

#include <string>

namespace zarrbits::cli {

// Prints a line, broken between words where standard output is a terminal with fewer columns; what follows the first break is
// indented four columns more. Unchanged elsewhere: programs read lines. Not for lines that people copy, which a terminal must
// break itself.
void say(const std::string& line);

}  // namespace zarrbits::cli

#endif
