// SPDX-License-Identifier: BSL-1.0
//
// What is printed on standard error.
//
#include "command/command_line.hpp"
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <unistd.h>

namespace zarrbits::command {

std::string with_flags(std::string_view sentence) {
  struct option {
    std::string_view member, flag;
  };
  static constexpr option options[] = {
      {"`allow_expansion`", "--allow-expansion"},
      {"`allow_overlap`", "--allow-overlap"},
      {"`places`", "--places"},
      {"`append`", "--append"},
      {"`bits`", "--bits"},
      {"`checksum`", "--checksum"},
      {"`ca_file`", "--ca-file"},
      {"`chunk`", "--chunk"},
      {"`codec`", "--codec"},
      {"`base`", "--base"},
      {"`cf_aggregation`", "--cf-aggregation"},
      {"`compress`", "--compress"},
      {"`concat`", "--concat"},
      {"`is_new`", "--concat-new"},
      {"`convention`", "--convention"},
      {"`different`", "--different"},
      {"`endpoint`", "--endpoint"},
      {"`exclude`", "--exclude"},
      {"`external`", "--external"},
      {"`follow_private`", "--follow-private"},
      {"`grid`", "--grid"},
      {"`headers`", "--header"},
      {"`include`", "--include"},
      {"`keep_going`", "--keep-going"},
      {"`links`", "--links"},
      {"`memory`", "--memory"},
      {"`metadata_only`", "--metadata"},
      {"`no_etag`", "--no-etag"},
      {"`no_sign_request`", "--no-sign-request"},
      {"`order`", "--order"},
      {"`request_payer`", "--request-payer"},
      {"`overwrite`", "--overwrite"},
      {"`part`", "--part"},
      {"`profile`", "--profile"},
      {"`references`", "--virtual"},
      {"`resume`", "--resume"},
      {"`sample`", "--sample"},
      {"`scratch`", "--scratch"},
      {"`shard`", "--shard"},
      {"`partition`", "--partition"},
      {"`with_coordinates`", "--with-coordinates"},
      {"`write_empty_chunks`", "--write-empty-chunks"},
      {"`zarr_format`", "--zarr-format"},
  };
  std::string text;
  while (!sentence.empty()) {
    const std::size_t tick = std::min(sentence.find('`'), sentence.size());
    text += sentence.substr(0, tick);
    sentence.remove_prefix(tick);
    if (sentence.empty()) break;
    const auto entry =
        std::find_if(std::begin(options), std::end(options), [&](const option& o) { return sentence.starts_with(o.member); });
    const std::string_view consumed = entry == std::end(options) ? sentence.substr(0, 1) : entry->member;
    text += entry == std::end(options) ? consumed : entry->flag;
    sentence.remove_prefix(consumed.size());
  }
  return text;
}

namespace {

bool environment_wants_json() {
  const char* const format = std::getenv("ZARRBITS_LOG_FORMAT");
  const std::string_view word = format ? format : "";
  if (!word.empty() && word != "json" && word != "text") {
    static constexpr std::string_view ignored = "warning: ZARRBITS_LOG_FORMAT is neither json nor text, and is ignored\n";
    if (::write(STDERR_FILENO, ignored.data(), ignored.size()) < 0) return false;
  }
  return word == "json";
}
bool log_is_json = environment_wants_json();

// One write: lines of several processes on the same terminal do not mix.
void write_line(const std::string& line) noexcept {
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

// Sentences begin with "warning: " or "note: ", or are errors.
void log_sentence(std::string_view sentence, const nlohmann::ordered_json& further = nlohmann::ordered_json::object()) {
  const auto begins = [&](std::string_view word) {
    if (!sentence.starts_with(word)) return false;
    sentence.remove_prefix(word.size());
    return true;
  };
  const char* const level = begins("warning: ") ? "warning" : begins("note: ") ? "info" : "error";
  nlohmann::ordered_json members = {{"message", std::string(sentence)}};
  members.update(further);
  write_log_line(level, members);
}

}  // namespace

std::string time_text() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

bool logs_json() noexcept { return log_is_json; }

void set_log_format(const std::string& format) {
  if (format != "text" && format != "json") throw usage_error("--log-format is " + quote(format) + "; use text or json");
  log_is_json = format == "json";
}

void write_log_line(const char* level, const nlohmann::ordered_json& members) {
  nlohmann::ordered_json line = {{"time", time_text()}, {"level", level}};
  line.update(members);
  write_line(printable_json(text::json_text(line)) + "\n");
}

void print_status(std::string_view text) {
  if (log_is_json) write_log_line("info", {{"message", std::string(text)}});
  else write_line(printable(text) + "\n");
}

void print_error(std::string_view sentence) noexcept {
  try {
    const std::string text = with_flags(sentence);
    if (log_is_json) log_sentence(text);
    else write_line("zarrbits: " + printable(text) + "\n");
  } catch (...) {
    write_line("zarrbits: out of memory\n");
  }
}

void print_error(const error& e) noexcept {
  try {
    if (!log_is_json) return print_error(e.what());
    nlohmann::ordered_json further = {{"code", to_string(e.kind())}};
    if (!e.place().file.empty()) further["file"] = e.place().file;
    if (!e.place().object.empty()) further["object"] = e.place().object;
    log_sentence(with_flags(e.what()), further);
  } catch (...) {
    write_line("zarrbits: out of memory\n");
  }
}

}  // namespace zarrbits::command
