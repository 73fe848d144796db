// SPDX-License-Identifier: BSL-1.0
#include "command/progress.hpp"

#include "command/command_line.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace zarrbits::command {

namespace {

using text::format_bytes;

double ratio(std::uint64_t part, std::uint64_t whole) {
  return std::clamp(static_cast<double>(part) / static_cast<double>(whole ? whole : 1), 0.0, 1.0);
}

double completed_fraction(const progress_state& s) { return s.total ? ratio(s.done, s.total) : ratio(s.objects_done, s.objects); }

std::string amount(const progress_state& s) {
  if (!s.bytes) return {};
  return s.total ? format_bytes(std::min(s.done, s.total)) + " of " + format_bytes(s.total) : format_bytes(s.done);
}

std::string rate(const progress_state& s, double seconds) {
  if (!s.bytes || s.done <= s.resumed || seconds <= 0) return {};
  return format_bytes(static_cast<std::uint64_t>(static_cast<double>(s.done - s.resumed) / seconds)) + "/s";
}

// Empty in the first second: it would be a guess.
std::string time_left(const progress_state& s, double seconds) {
  const double part = completed_fraction(s), new_part = part - (s.total ? ratio(s.resumed, s.total) : 0);
  if (seconds < 1 || new_part < 0.01) return {};
  return duration_text(seconds * (1 - part) / new_part) + " left";
}

std::string objects(const progress_state& s, const char* of) {
  return s.objects ? std::to_string(s.objects_done) + of + text::pluralize(s.objects, "object") : std::string();
}

}  // namespace

std::string duration_text(double seconds) {
  char text[48];
  const auto s = static_cast<long long>(std::llround(std::min(seconds, 1e9)));
  if (seconds < 10) std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (s < 100) std::snprintf(text, sizeof text, "%lld s", s);
  else if (s < 6000) std::snprintf(text, sizeof text, "%lld min %02lld s", s / 60, s % 60);
  else std::snprintf(text, sizeof text, "%lld h %02lld min", s / 3600, s / 60 % 60);
  return text;
}

progress::progress(bool quiet) : screen_(describe_terminal(STDERR_FILENO)) {
  if (const char* value = std::getenv("ZARRBITS_PROGRESS_FD")) {
    int number = -1;
    const auto [end, error] = std::from_chars(value, value + std::strlen(value), number);
    if (error == std::errc() && *end == '\0' && number > STDERR_FILENO && ::fcntl(number, F_GETFD) >= 0) {
      descriptor_ = number;
      interval_ = std::chrono::milliseconds(100);
      last_ -= interval_;
      remote::set_wait_listener([this](const std::string& text) { show_wait(text); });
      return;
    }
  }
  if (quiet) return;
  if (logs_json()) screen_.present = false;  // each line is an object
  if (screen_.present) {
    interval_ = std::chrono::milliseconds(100);
    last_ -= interval_;  // at once
    remote::set_wait_listener([this](const std::string& text) { show_wait(text); });
    return;
  }
  const char* value = std::getenv("ZARRBITS_PROGRESS_SECONDS");
  const double seconds = value && *value ? std::strtod(value, nullptr) : 20;
  if (seconds <= 0) return;
  interval_ = std::chrono::milliseconds(std::max(1LL, std::llround(1000 * std::min(seconds, 1e6))));
  remote::set_wait_listener([this](const std::string& text) { show_wait(text); });
}

void progress::write_line(const std::string& wait) const {
  const progress_state& s = state_;
  nlohmann::ordered_json line{
      {"done", s.done}, {"total", s.total}, {"objects_done", s.objects_done}, {"objects", s.objects}, {"path", s.path}};
  if (!wait.empty()) line["waiting"] = wait;
  const std::string text = text::json_text(line) + "\n";
  std::size_t written = 0;
  while (written < text.size()) {  // if the reader is gone, SIGPIPE says so, as everywhere
    const ssize_t n = ::write(descriptor_, text.data() + written, text.size() - written);
    if (n > 0) written += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR) return;
  }
}

progress::~progress() {
  remote::set_wait_listener(nullptr);
  if (descriptor_ >= 0) write_line();
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void progress::update(const progress_state& s) {
  const std::lock_guard lock(mutex_);
  state_ = s;
  draw(s, "");
}

// What is not drawn, because another line was drawn a moment ago, is drawn after the next attempt.
void progress::show_wait(const std::string& text) {
  const std::lock_guard lock(mutex_);
  draw(state_, text);
}

// `wait`: what a server is waited for; "" if none is.
void progress::draw(const progress_state& s, const std::string& wait) {
  const auto now = clock::now();
  if (!is_visible() || now - last_ < interval_) return;
  last_ = now;
  if (descriptor_ >= 0) return write_line(wait);
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const double part = completed_fraction(s);
  const std::string percent = std::to_string(static_cast<int>(part * 100)) + " %";
  if (!screen_.present) {
    std::string line = percent;
    for (const std::string& word :
         {objects(s, " of "), amount(s), rate(s, seconds), wait.empty() ? time_left(s, seconds) : wait}) {
      if (!word.empty()) line += ", " + word;
    }
    if (logs_json()) {
      nlohmann::ordered_json fields{{"done", s.done},       {"total", s.total},   {"objects_done", s.objects_done},
                                    {"objects", s.objects}, {"seconds", seconds}, {"path", s.path}};
      if (!wait.empty()) fields["waiting"] = wait;
      write_log_line("progress", fields);
    } else {
      print_error(time_text() + " " + line + (s.path.empty() || !wait.empty() ? "" : ", at " + quote(s.path)));
    }
    return;
  }
  screen_.columns = describe_terminal(STDERR_FILENO).window;  // windows change their size
  const std::size_t bar = screen_.columns < 60    ? 8
                          : screen_.columns < 100 ? 12
                                                  : 20,
                    filled = static_cast<std::size_t>(part * static_cast<double>(bar));
  std::string line = "[" + std::string(filled, '#') + std::string(bar - filled, '.') + "] " +
                     std::string(percent.size() < 5 ? 5 - percent.size() : 0, ' ') + percent;
  if (!wait.empty()) {
    const std::size_t bar_columns = display_width(line);
    if (bar_columns + 3 < screen_.columns) line += "  " + shorten(printable(wait), screen_.columns - bar_columns - 3, false);
    std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
    std::fflush(stderr);
    drawn_ = true;
    return;
  }
  constexpr std::size_t min_path_columns = 14;
  for (const std::string& word : {time_left(s, seconds), amount(s), rate(s, seconds), objects(s, "/")}) {
    // the later ones are dropped if the name of the current object needs the room
    if (!word.empty() && display_width(line) + 2 + display_width(word) + 2 + min_path_columns < screen_.columns)
      line += "  " + word;
  }
  const std::size_t used = display_width(line);
  if (used + 3 < screen_.columns)
    line += "  " + coloured(screen_, colour::dim, shorten(printable(s.path), screen_.columns - used - 3, true));
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace zarrbits::command
