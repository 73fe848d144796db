// SPDX-License-Identifier: BSL-1.0
#include "command/wrapped_text.hpp"

#include "command/printable.hpp"
#include "command/terminal.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace zarrbits::command {

namespace {

std::string wrap_to_terminal(const std::string& line) {
  static const std::size_t width = describe_terminal(STDOUT_FILENO).columns;
  if (width == 0 || display_width(line) <= width) return line;
  const std::size_t first_word = std::min(line.find_first_not_of(' '), line.size());
  const std::string indent(first_word + 4, ' ');
  std::string text = line.substr(0, first_word);
  std::size_t used = first_word;
  bool begins = true;
  for (std::size_t position = first_word; position < line.size();) {
    const std::size_t end = std::min(line.find(' ', position), line.size());
    const std::string word = line.substr(position, end - position);
    if (!begins && used + 1 + display_width(word) > width) {
      text += '\n' + indent;
      used = indent.size();
    } else if (!begins) {
      text += ' ';
      ++used;
    }
    text += word;
    used += display_width(word);
    begins = false;
    position = end == line.size() ? end : end + 1;
  }
  return text;
}

}  // namespace

void print_wrapped(const std::string& line) { std::cout << wrap_to_terminal(printable(line)) << '\n'; }

}  // namespace zarrbits::command
