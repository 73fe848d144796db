// SPDX-License-Identifier: BSL-1.0
#include "command/auto_bits.hpp"

#include "command/command_line.hpp"
#include "io/remote_url.hpp"
#include "text/selection.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace zarrbits::command {

namespace {

// The bits that one dataset needs, over all files.
struct needed {
  suggestion first;
  std::uint64_t stored_bytes = 0, packed_bytes = 0;
};

}  // namespace

bool is_packable(const suggestion& s) {
  return s.last_bit - s.first_bit + 1 < s.width && !s.type.starts_with("float") && !s.type.starts_with("bool");
}

std::string bits_argument(const suggestion& s) {
  const std::string bits =
      s.first_bit == 0 ? std::to_string(s.last_bit + 1) : std::to_string(s.first_bit) + "-" + std::to_string(s.last_bit);
  return text::pattern_of_path(s.path) + "=" + bits;
}

void find_bits(convert_options& options, const std::function<void(const std::string&)>& set_current) {
  std::vector<std::string> sources{options.source.name};
  if (options.source.concat)
    sources.insert(sources.end(), options.source.concat->sources.begin(), options.source.concat->sources.end());
  std::map<std::string, needed> datasets;
  for (const std::string& source : sources) {
    const std::string file = split_source(source).file;
    if (io::is_object_store(file))
      throw usage_error("--bits auto reads all values first, and not from a server; use --bits PATTERN=N for " + quote(source));
    const suggested_bits result = suggest_bits({.file = file, .external = options.source.external, .lock = options.source.lock},
                                               [&](const suggest_progress& p) { set_current(p.path); });
    for (const suggestion& s : result.datasets) {
      needed& n = datasets.emplace(s.path, needed{s}).first->second;
      n.first.first_bit = std::min(n.first.first_bit, s.first_bit);
      n.first.last_bit = std::max(n.first.last_bit, s.last_bit);
      n.stored_bytes += s.before;
      n.packed_bytes += s.after;
    }
  }
  std::vector<pattern_bits> bits;
  for (const auto& [path, n] : datasets) {
    if (is_packable(n.first) && n.packed_bytes < n.stored_bytes)
      bits.push_back({text::pattern_of_path(path), n.first.first_bit, n.first.last_bit});
  }
  options.encoding.bits_of.insert(options.encoding.bits_of.begin(), bits.begin(), bits.end());
}

}  // namespace zarrbits::command
