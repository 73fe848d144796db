// SPDX-License-Identifier: BSL-1.0
#include "command/terminal.hpp"

#include "command/printable.hpp"

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <numeric>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::command {

namespace {

constexpr std::size_t min_terminal_columns = 40;  // below, lines wrap: nothing sensible fits

struct piece {
  std::size_t bytes, columns;
};

// The next character of the text. Bytes that are not UTF-8 take a column each.
piece next_piece(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {1, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
  if (size == 1 || size > text.size()) return {1, 1};
  auto character = static_cast<wchar_t>(first & (0xFFU >> (size + 1)));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {1, 1};
    character = static_cast<wchar_t>(character << 6 | (byte & 0x3F));
  }
  static const bool has_locale = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  const int width = has_locale ? ::wcwidth(character) : 1;
  return {size, width < 0 ? 1U : static_cast<std::size_t>(width)};
}

std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t bytes = 0, columns = 0;
  while (bytes < text.size()) {
    const piece p = next_piece(text.substr(bytes));
    if (columns + p.columns > width) break;
    bytes += p.bytes;
    columns += p.columns;
  }
  return text.substr(0, bytes);
}

// COLUMNS, by which users set the width also of what goes to a pipe; 0: not set, or not a number.
std::size_t columns_in_environment() {
  std::size_t columns = 0;
  if (const char* const set = std::getenv("COLUMNS")) {
    const char* const end = set + std::strlen(set);
    const auto [last, error] = std::from_chars(set, end, columns);
    if (error != std::errc() || last != end) return 0;
  }
  return columns;
}

}  // namespace

terminal describe_terminal(int descriptor) {
  terminal t;
  t.present = ::isatty(descriptor) != 0;
  if (t.present) {
    winsize size{};
    t.window = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    t.window = std::max(t.window, min_terminal_columns);
  }
  t.columns = columns_in_environment();
  t.columns = t.columns > 0 ? std::max(t.columns, min_terminal_columns) : t.window;
  if (!t.present) return t;
  const char *no_color = std::getenv("NO_COLOR"), *kind = std::getenv("TERM");
  t.colours = !(no_color && *no_color) && kind && *kind && std::string_view(kind) != "dumb";
  return t;
}

std::string coloured(const terminal& t, colour c, std::string_view text) {
  static const char* const codes[] = {"", "1", "2", "31", "32", "33", "34"};
  if (!t.colours || c == colour::plain || text.empty()) return std::string(text);
  return "\x1b[" + std::string(codes[static_cast<int>(c)]) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const piece p = next_piece(text);
    columns += p.columns;
    text.remove_prefix(p.bytes);
  }
  return columns;
}

std::string shorten(std::string_view text, std::size_t width, bool middle) {
  const std::size_t full_width = display_width(text);
  if (full_width <= width) return std::string(text);
  if (width == 0) return {};
  const std::size_t front = middle ? (width - 1) * 2 / 3 : width - 1;
  std::string out(first_columns(text, front));
  out += "…";
  if (middle) {
    std::size_t skipped = 0;
    while (skipped < full_width - (width - 1 - front)) {  // as many columns from the end
      const piece p = next_piece(text);
      skipped += p.columns;
      text.remove_prefix(p.bytes);
    }
    out += text;
  }
  return out;
}

void text_table::add(std::vector<std::string> cells, colour paint) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back({std::move(cells), paint});
}

std::string text_table::text(const terminal& t) const {
  std::vector<std::size_t> width(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const row& r : rows_) width[c] = std::max(width[c], display_width(r.cells[c]));
    if (width[c] > 0) width[c] = std::max(width[c], display_width(columns_[c].title));
  }
  const auto used = [&] {
    const auto visible_columns =
        static_cast<std::size_t>(std::count_if(width.begin(), width.end(), [](std::size_t w) { return w > 0; }));
    return std::accumulate(width.begin(), width.end(), std::size_t{0}) + 2 * (visible_columns > 0 ? visible_columns - 1 : 0);
  };
  for (std::size_t over = t.columns && used() > t.columns ? used() - t.columns : 0; over > 0;) {
    // one column at a time from the one with most to give
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].min_width == 0 || width[c] <= columns_[c].min_width) continue;
      if (widest == columns_.size() || width[c] - columns_[c].min_width > width[widest] - columns_[widest].min_width) widest = c;
    }
    if (widest == columns_.size()) break;
    --width[widest];
    --over;
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells, colour paint, bool heading) {
    std::string text;
    std::size_t spaces = 0;  // before the next cell; not written at the end of a line
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (width[c] == 0) continue;
      const std::string cell = shorten(cells[c], width[c], columns_[c].middle);
      const std::size_t padding = width[c] - display_width(cell);
      const bool to_right = columns_[c].align == right;
      if (!cell.empty()) {
        text += std::string(spaces + (to_right ? padding : 0), ' ') + coloured(t,
                                                                               heading                  ? colour::bold
                                                                               : paint != colour::plain ? paint
                                                                                                        : columns_[c].paint,
                                                                               cell);
        spaces = to_right ? 0 : padding;
      } else {
        spaces += padding;
      }
      spaces += 2;
    }
    out += text + '\n';
  };
  std::vector<std::string> titles;
  for (const column& c : columns_) titles.push_back(c.title);
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& s) { return !s.empty(); }))
    line(titles, colour::plain, true);
  for (const row& r : rows_) line(r.cells, r.paint, false);
  return out;
}

}  // namespace zarrbits::command
