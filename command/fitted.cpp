// SPDX-License-Identifier: BSL-1.0
#include "command/fitted.hpp"

#include "command/printable.hpp"
#include "command/terminal.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace zarrbits::command {

namespace {

std::string fitted(const std::string& line) {
  static const std::size_t most = describe_terminal(STDOUT_FILENO).columns;
  if (most == 0 || display_width(line) <= most) return line;
  const std::size_t first_word = std::min(line.find_first_not_of(' '), line.size());
  const std::string indent(first_word + 4, ' ');
  std::string text = line.substr(0, first_word);
  std::size_t used = first_word;
  bool begins = true;
  for (std::size_t at = first_word; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, end - at);
    if (!begins && used + 1 + display_width(word) > most) {
      text += '\n' + indent;
      used = indent.size();
    } else if (!begins) {
      text += ' ';
      ++used;
    }
    text += word;
    used += display_width(word);
    begins = false;
    at = end == line.size() ? end : end + 1;
  }
  return text;
}

}  // namespace

void say(const std::string& line) { std::cout << fitted(printable(line)) << '\n'; }

}  // namespace zarrbits::command
