// SPDX-License-Identifier: BSL-1.0
#include "command/unfinished_text.hpp"

#include "command/printable.hpp"
#include "command/progress.hpp"
#include "command/wrapped_text.hpp"
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <vector>

namespace zarrbits::command {

namespace {

// "0, 3 and 5"
std::string join_numbers(const std::vector<unsigned>& numbers) {
  constexpr std::size_t max_listed = 20;
  std::string text;
  for (std::size_t i = 0; i < numbers.size() && i < max_listed; ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return text + (numbers.size() > max_listed ? " and " + std::to_string(numbers.size() - max_listed) + " more" : "");
}

void print_shares(const unfinished_store& s) {
  std::vector<unsigned> at_work;
  for (const auto& share : s.shares) {
    if (!share.done) at_work.push_back(share.index);
  }
  const auto say_of = [&](const std::vector<unsigned>& indices, const char* state) {
    if (!indices.empty())
      print_wrapped(std::string(indices.size() == 1 ? "  partition " : "  partitions ") + join_numbers(indices) + " of " +
                    std::to_string(s.share_count) + " " + state);
  };
  say_of(s.missing, "missing");
  say_of(at_work, "not done");
}

}  // namespace

void print_unfinished(const std::string& name, const unfinished_store& s) {
  print_wrapped(quote(name) + " is an unfinished store, begun by zarrbits " + s.version + " from " + quote(s.source));
  if (!s.command.empty()) {
    std::string line = "  zarrbits";
    for (std::size_t i = 0; i < s.command.size(); ++i)
      line += " " + (i == 0 ? std::string("convert") : shell_quoted(s.command[i]));
    std::cout << printable(line) << '\n';
  }
  std::string status = "  " +
                       (s.units > 0 ? std::to_string(s.units_done) + " of " + text::pluralize(s.units, "unit")
                                    : text::pluralize(s.units_done, "unit")) +
                       " made, " + text::format_bytes(s.bytes_done);
  if (s.seconds_ago) status += ", the last " + duration_text(*s.seconds_ago) + " ago";
  if (s.seconds_left) status += "; about " + duration_text(*s.seconds_left) + " more at the last rate";
  print_wrapped(status);
  if (s.share_count > 0) print_shares(s);
  print_wrapped(s.share_count > 0
                    ? "  when all partitions are done, zarrbits finalize completes it; convert --resume makes what is missing"
                    : "  run the same command again to continue");
}

nlohmann::ordered_json unfinished_json(const std::string& name, const unfinished_store& s) {
  nlohmann::ordered_json j = {{"name", name},
                              {"zarrbits", s.version},
                              {"source", s.source},
                              {"command", s.command},
                              {"units_done", s.units_done},
                              {"units", s.units},
                              {"bytes_done", s.bytes_done},
                              {"share_count", s.share_count},
                              {"shares", nlohmann::ordered_json::array()},
                              {"missing", s.missing}};
  for (const auto& share : s.shares) {
    j["shares"].push_back(
        {{"index", share.index}, {"units_done", share.units_done}, {"units", share.units}, {"done", share.done}});
  }
  if (s.seconds_left) j["seconds_left"] = *s.seconds_left;
  if (s.seconds_ago) j["seconds_ago"] = *s.seconds_ago;
  return j;
}

}  // namespace zarrbits::command
