// SPDX-License-Identifier: BSL-1.0
#include "text/json_writer.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace zarrbits::text {

void json_writer::separate() {
  if (!is_first_) text_ += ',';
  is_first_ = depth_ == 0;
}

void json_writer::begin(char bracket) {
  separate();
  text_ += bracket;
  ++depth_;
  is_first_ = true;
}

void json_writer::end(char bracket) {
  text_ += bracket;
  --depth_;
  is_first_ = depth_ == 0;
}

void json_writer::key(const std::string& name, bool on_new_line) {
  separate();
  if (on_new_line) new_line();
  text_ += json_text(name) + ":";
  is_first_ = true;
}

void json_writer::value(const json& v) { raw(json_text(v)); }

void json_writer::raw(std::string_view text) {
  separate();
  text_ += text;
}

std::string json_writer::take() { return std::exchange(text_, {}); }

}  // namespace zarrbits::text
