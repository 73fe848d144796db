// SPDX-License-Identifier: BSL-1.0
#include "text/csv.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::text {

namespace {

class csv_parser {
 public:
  explicit csv_parser(std::string_view table) : table_(table) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (table_.starts_with(byte_order_mark)) table_.remove_prefix(byte_order_mark.size());
  }

  std::vector<csv_record> parse() {
    std::vector<csv_record> records;
    while (position_ < table_.size()) {
      csv_record r{line_, {}};
      do r.fields.push_back(field());
      while (skip(","));
      end_line();
      if (r.fields.size() > 1 || !r.fields[0].empty()) records.push_back(std::move(r));
    }
    return records;
  }

 private:
  std::string field() { return skip("\"") ? quoted_field(line_) : plain_field(); }

  std::string plain_field() {
    const std::size_t end = std::min(table_.find_first_of(",\r\n\"", position_), table_.size());
    if (end < table_.size() && table_[end] == '"')
      fail(line_, "has a quote within a field; put quotes around the field, and write each one in it twice");
    const std::string_view result = table_.substr(position_, end - position_);
    position_ = end;
    return std::string(result);
  }

  std::string quoted_field(std::size_t first_line) {
    std::string result;
    while (position_ < table_.size()) {
      const char c = table_[position_++];
      if (c == '"' && !skip("\"")) return result;
      if (c == '\n') ++line_;
      result += c;
    }
    fail(first_line, "has a quote that nothing closes");
  }

  void end_line() {
    if (position_ == table_.size()) return;
    if (!skip("\n") && !skip("\r\n")) fail(line_, "goes on after a field, without a comma");
    ++line_;
  }

  bool skip(std::string_view text) {
    if (!table_.substr(position_).starts_with(text)) return false;
    position_ += text.size();
    return true;
  }

  [[noreturn]] static void fail(std::size_t line, const char* reason) {
    throw csv_error("line " + std::to_string(line) + " " + reason);
  }

  std::string_view table_;
  std::size_t position_ = 0, line_ = 1;
};

}  // namespace

std::vector<csv_record> parse_csv(std::string_view table) { return csv_parser(table).parse(); }

}  // namespace zarrbits::text
