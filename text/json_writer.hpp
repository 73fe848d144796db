// SPDX-License-Identifier: BSL-1.0
//
// JSON as text, made of its parts as they come.
//
//   json_writer out;
//   out.begin('{');
//   out.key("sizes");
//   out.begin('[');
//   out.value(4096);
//   out.end(']');
//   out.end('}');
//   write(out.take());
//
#ifndef ZARRBITS_TEXT_JSON_WRITER_HPP
#define ZARRBITS_TEXT_JSON_WRITER_HPP

#include "text/json_text.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace zarrbits::text {

class json_writer {
 public:
  void begin(char bracket);
  void end(char bracket);
  void key(const std::string& name, bool on_new_line = false);
  void value(const json& v);
  // A value that is JSON already, such as the digits of a number.
  void raw(std::string_view text);
  void new_line() { text_ += '\n'; }

  // Bytes since the last take().
  std::size_t size() const { return text_.size(); }
  std::string take();

 private:
  void separate();

  std::string text_;
  std::size_t depth_ = 0;
  bool is_first_ = true;
};

}  // namespace zarrbits::text

#endif
