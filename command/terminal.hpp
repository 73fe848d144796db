// SPDX-License-Identifier: BSL-1.0
//
// Text for people: how wide a terminal is, whether it shows colours, and tables that fit.
//
//   text_table t({{"path"}, {"bytes", text_table::right}});
//   t.add({"/a", "12 B"});
//   std::cout << t.text(describe_terminal(STDOUT_FILENO));
//
#ifndef ZARRBITS_COMMAND_TERMINAL_HPP
#define ZARRBITS_COMMAND_TERMINAL_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::command {

struct terminal {
  bool present = false;
  std::size_t columns = 0;  // COLUMNS of the environment, else those of the window; 0: lines may have any length
  std::size_t window = 0;   // columns of the window itself: a line that is drawn again in place must fit; 0: no terminal
  bool colours = false;     // false if the environment has NO_COLOR, or a TERM without colours
};
terminal describe_terminal(int descriptor);

enum class colour { plain, bold, dim, red, green, yellow, blue };
// The text between the codes of that colour, where the terminal shows colours.
std::string coloured(const terminal& t, colour c, std::string_view text);

// Columns that UTF-8 takes on a terminal.
std::size_t display_width(std::string_view text);
// Text of at most `width` columns: "…" replaces the omitted part, in the middle or at the end.
std::string shorten(std::string_view text, std::size_t width, bool middle);

class text_table {
 public:
  enum alignment { left, right };
  struct column {
    std::string title;
    alignment align = left;
    std::size_t min_width = 0;  // columns that it keeps when the table is too wide; 0: it is never cut
    bool middle = false;        // shortened in the middle: both ends are informative
    colour paint = colour::plain;
  };

  explicit text_table(std::vector<column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells, colour paint = colour::plain);
  // Lines with a line feed each. Columns that are empty in all rows are left out.
  std::string text(const terminal& t) const;

 private:
  struct row {
    std::vector<std::string> cells;
    colour paint;
  };
  std::vector<column> columns_;
  std::vector<row> rows_;
};

}  // namespace zarrbits::command

#endif
