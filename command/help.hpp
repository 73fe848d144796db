// SPDX-License-Identifier: BSL-1.0
//
// What --help prints.
//
#ifndef ZARRBITS_COMMAND_HELP_HPP
#define ZARRBITS_COMMAND_HELP_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace zarrbits::command {

// The columns to wrap help to: those of the terminal; elsewhere COLUMNS of the environment, or 100.
std::size_t help_columns();

// Its description, options in groups, and footer. Lines of the footer that begin with a space are examples, which stay as they
// are.
std::string help_of(const CLI::App& app, std::size_t columns);

// The text in lines of at most so many columns, broken between words; further lines begin with `indent` spaces.
std::string wrap_text(const std::string& text, std::size_t columns, std::size_t indent = 0);

// All flags of a command: "--overwrite", "-q".
std::vector<std::string> flags_of(const CLI::App& app);

}  // namespace zarrbits::command

#endif
