// SPDX-License-Identifier: BSL-1.0
#include "command/found_bits.hpp"

#include "command/command_line.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace zarrbits::command {

namespace {

std::string as_pattern(std::string_view path) {
  std::string pattern;
  for (const char c : path) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Of one dataset in all files.
struct needed {
  suggestion first;
  std::uint64_t before = 0, after = 0;
};

}  // namespace

bool has_bits_to_give(const suggestion& s) {
  return s.last_bit - s.first_bit + 1 < s.width && !s.type.starts_with("float") && !s.type.starts_with("bool");
}

std::string bits_argument(const suggestion& s) {
  const std::string bits =
      s.first_bit == 0 ? std::to_string(s.last_bit + 1) : std::to_string(s.first_bit) + "-" + std::to_string(s.last_bit);
  return as_pattern(s.path) + "=" + bits;
}

void find_bits(convert_options& options, const std::function<void(const std::string&)>& at) {
  std::vector<std::string> sources{options.source};
  if (options.concat) sources.insert(sources.end(), options.concat->sources.begin(), options.concat->sources.end());
  std::map<std::string, needed> all;
  for (const std::string& source : sources) {
    const std::string file = split_source(source).file;
    if (file.starts_with("s3://"))
      throw usage_error("--bits auto reads all values first, and not from S3; use --bits PATTERN=N for " + quote(source));
    const suggested_bits found = suggest_bits({.file = file, .external = options.external, .lock = options.lock},
                                              [&](const suggest_progress& p) { at(p.path); });
    for (const suggestion& s : found.datasets) {
      needed& n = all.emplace(s.path, needed{s}).first->second;
      n.first.first_bit = std::min(n.first.first_bit, s.first_bit);
      n.first.last_bit = std::max(n.first.last_bit, s.last_bit);
      n.before += s.before;
      n.after += s.after;
    }
  }
  std::vector<convert_options::pattern_bits> bits;
  for (const auto& [path, n] : all) {
    if (has_bits_to_give(n.first) && n.after < n.before) bits.push_back({as_pattern(path), n.first.first_bit, n.first.last_bit});
  }
  options.bits_of.insert(options.bits_of.begin(), bits.begin(), bits.end());
}

}  // namespace zarrbits::command
