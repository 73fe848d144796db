// SPDX-License-Identifier: BSL-1.0
//
// Untrusted texts on their way to a terminal or a log: names in a file, messages of libraries, arguments.
//
//   print_error("cannot open " + quote(path));
//
// print_error(), print_wrapped() and tables pass whatever they are given through printable().
//
#ifndef ZARRBITS_COMMAND_PRINTABLE_HPP
#define ZARRBITS_COMMAND_PRINTABLE_HPP

#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::command {

// The text on one line, on which a terminal cannot act. Control characters (C1 and DEL too), line separators, marks of direction,
// and bytes that are not UTF-8 come out as \x1b, byte by byte. Unescaped, they would let a name move the cursor, hide its
// neighbours, or begin a line of its own. Printable text stays as it is.
std::string printable(std::string_view text);

// Like printable(), for JSON, where such characters become \u001b: the value does not change.
std::string printable_json(std::string_view json);

// One argument for a shell, printable: name, 'a name', or $'a\x1bname' (bash, zsh).
std::string shell_quoted(std::string_view text);
std::string shell_line(const std::vector<std::string>& arguments);

// The name of a file, which no program takes for an option.
std::string shell_file(const std::string& path);

// A name in a sentence: "name"; where that would not be one argument for a shell, $'a\x1bname'.
std::string quote(std::string_view name);

}  // namespace zarrbits::command

#endif
