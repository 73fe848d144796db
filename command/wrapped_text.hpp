// SPDX-License-Identifier: BSL-1.0
//
//   print_wrapped("    " + sentence);
//
#ifndef ZARRBITS_COMMAND_WRAPPED_TEXT_HPP
#define ZARRBITS_COMMAND_WRAPPED_TEXT_HPP

#include <string>

namespace zarrbits::command {

// Prints a line. If standard output is a terminal with fewer columns, the line is broken between words, and what follows the
// first break is indented four columns more. Elsewhere the line stays whole: programs read lines. Do not use it for lines that
// people copy: the terminal must break those itself.
void print_wrapped(const std::string& line);

}  // namespace zarrbits::command

#endif
