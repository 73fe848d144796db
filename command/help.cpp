// SPDX-License-Identifier: BSL-1.0
#include "command/help.hpp"

#include "command/terminal.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <unistd.h>

namespace zarrbits::command {

namespace {

constexpr std::size_t min_columns = 40, max_columns = 120, column_of_text = 28;

std::string names_of(const CLI::Option& o) {
  std::string names;
  for (const auto& n : o.get_snames()) names += (names.empty() ? "-" : ",-") + n;
  for (const auto& n : o.get_lnames()) names += (names.empty() ? "--" : ",--") + n;
  if (o.get_positional()) return o.get_type_name();
  const std::string type = o.get_items_expected_max() > 0 ? o.get_type_name() : "";
  return names + (type.empty() ? "" : " " + type);
}

void add_option(std::string& text, const CLI::Option& o, std::size_t columns) {
  std::string line = "  " + names_of(o);
  if (display_width(line) + 2 > column_of_text && columns <= max_columns) line += "\n" + std::string(column_of_text, ' ');
  else line += std::string(std::max(column_of_text, display_width(line) + 2) - display_width(line), ' ');
  text += wrap_text(line + o.get_description(), columns, column_of_text) + "\n";
}

// Lines that begin with a space, and what ends with a colon, stay lines; others are joined and wrapped.
std::string paragraphs(const std::string& text, std::size_t columns) {
  std::string out, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += wrap_text(paragraph, columns) + "\n";
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with(' ')) {
      end_paragraph();
      out += line + "\n";
      continue;
    }
    paragraph += (paragraph.empty() ? "" : " ") + line;
    if (line.ends_with(':')) end_paragraph();
  }
  end_paragraph();
  return out;
}

std::string usage_of(const CLI::App& app) {
  std::string line = "Usage: " + app.get_name() + " [OPTIONS]";
  for (const CLI::Option* o : app.get_options()) {
    if (!o->get_positional() || o->get_type_name().empty()) continue;
    line += o->get_required() ? " " + o->get_type_name() : " [" + o->get_type_name() + "]";
  }
  return line;
}

}  // namespace

std::size_t help_columns() {
  const terminal screen = describe_terminal(STDOUT_FILENO);
  if (screen.present) return std::clamp(screen.columns, min_columns, max_columns);
  return screen.columns >= min_columns ? screen.columns : 100;
}

std::string wrap_text(const std::string& text, std::size_t columns, std::size_t indent) {
  std::string out;
  std::istringstream lines(text);
  bool first = true;
  for (std::string line; std::getline(lines, line); first = false) {
    if (!first) out += '\n';
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    std::string current_line = line.substr(0, begin);
    bool empty = true;
    for (std::size_t position = begin; position < line.size();) {
      const std::size_t end = std::min(line.find(' ', position), line.size());
      const std::string word = line.substr(position, end - position);
      if (!empty && display_width(current_line) + 1 + display_width(word) > columns) {
        current_line.erase(current_line.find_last_not_of(' ') + 1);
        out += current_line + '\n';
        current_line = std::string(indent, ' ');
        empty = true;
      }
      current_line += (empty ? "" : " ") + word;
      empty = false;
      position = end == line.size() ? end : end + 1;
    }
    out += current_line;
  }
  return out;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* o : app.get_options()) {
    for (const auto& n : o->get_lnames()) flags.push_back("--" + n);
    for (const auto& n : o->get_snames()) flags.push_back("-" + n);
  }
  return flags;
}

std::string help_of(const CLI::App& app, std::size_t columns) {
  std::string text = paragraphs(app.get_description(), columns) + "\n" + wrap_text(usage_of(app), columns, 4) + "\n";
  std::vector<std::string> groups;
  for (const CLI::Option* o : app.get_options()) {
    const std::string& group = o->get_group();
    if (!o->get_positional() && !group.empty() && std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }
  text += "\nNames:\n";
  const std::size_t heading_end = text.size();
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_positional() && !o->get_description().empty() && !o->get_type_name().empty()) add_option(text, *o, columns);
  }
  if (text.size() == heading_end) text.erase(text.size() - std::strlen("\nNames:\n"));
  for (const std::string& group : groups) {
    text += "\n" + group + ":\n";
    for (const CLI::Option* o : app.get_options()) {
      if (!o->get_positional() && o->get_group() == group) add_option(text, *o, columns);
    }
  }
  if (!app.get_footer().empty()) text += "\n" + paragraphs(app.get_footer(), columns);
  return text;
}

}  // namespace zarrbits::command
