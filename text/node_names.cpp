// SPDX-License-Identifier: BSL-1.0
#include "text/node_names.hpp"

#include "text/format.hpp"
#include "text/percent.hpp"
#include "text/reserved_names.hpp"
#include "text/sha256.hpp"

#include <unordered_set>
#include <utility>

namespace zarrbits::text {

std::string case_fold(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

namespace {

// Where a node's metadata is, in Zarr v3 or v2: readers look for both.
bool is_metadata_key(std::string_view name) {
  return name == "zarr.json" || name == ".zarray" || name == ".zgroup" || name == ".zattrs" || name == ".zmetadata";
}

}  // namespace

std::string node_name(std::string_view link) {
  std::string out;
  const bool only_dots = link.find_first_not_of('.') == std::string_view::npos;
  const bool reserved = is_metadata_key(case_fold(link)),
             is_internal = case_fold(link.substr(0, internal_prefix.size())) == internal_prefix;
  const bool underscores = link.substr(0, 2) == "__";
  std::string_view remaining = link;
  while (!remaining.empty()) {
    const char c = remaining[0];
    const auto b = static_cast<unsigned char>(c);
    const std::size_t n = utf8_length(remaining);
    const bool first = remaining.size() == link.size();
    if (n == 0 || b < 0x20 || b == 0x7F || c == '\\' || c == '/' ||
        (c == '.' && (((only_dots || is_internal) && first) || reserved)) || (first && underscores)) {
      append_percent_escape(out, c);
      remaining.remove_prefix(1);
    } else {
      out += remaining.substr(0, n);
      remaining.remove_prefix(n);
    }
  }
  if (out.empty()) return "%";
  if (out.size() > max_name_bytes) {
    sha256 hash;
    hash.add(link);
    std::size_t keep = 200;
    while (keep > 0 && (static_cast<unsigned char>(out[keep]) & 0xC0) == 0x80) --keep;
    if (const std::size_t escape = out.rfind('%', keep - 1); escape != std::string::npos && escape + 3 > keep) keep = escape;
    out.resize(keep);
    out.append(hashed_name).append(hash.hex(32));
  }
  return out;
}

std::string with_reserved_prefix(std::string_view link, std::string node) {
  constexpr std::string_view escaped = "%5F_";
  return link.starts_with("__") && node.starts_with(escaped) ? "__" + node.substr(escaped.size()) : node;
}

std::vector<std::string> node_names(std::span<const std::string_view> names) {
  std::vector<std::string> out;
  std::unordered_set<std::string> used;
  for (const std::string_view name : names) {
    std::string n = node_name(name);
    while (!used.insert(n).second) {
      std::string alternative = make_case_unique(n);
      n = alternative == n ? n + "%" : std::move(alternative);
    }
    out.push_back(std::move(n));
  }
  return out;
}

std::string make_case_unique(std::string_view name) {
  std::string out;
  bool escaped = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '%' && i + 2 < name.size()) {  // an escape, or what looks like one, stays as it is
      out += name.substr(i, 3);
      i += 2;
    } else if (!escaped && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) {
      append_percent_escape(out, c);
      escaped = true;
    } else {
      out += c;
    }
  }
  return out;
}

bool is_node_key(std::string_view key) { return key == "zarr.json" || key.ends_with("/zarr.json"); }

std::string join_path(std::string_view parent, std::string_view name) {
  std::string out(parent);
  if (out.empty() || out.back() != '/') out += '/';
  return out.append(name);
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string strip_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace zarrbits::text
