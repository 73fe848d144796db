// SPDX-License-Identifier: BSL-1.0
#include "text/names.hpp"

#include "text/sha256.hpp"

#include <algorithm>
#include <unordered_set>

namespace zarrbits::conversion {

namespace {

void append_percent(std::string& out, char c) {
  constexpr char digits[] = "0123456789ABCDEF";
  const auto b = static_cast<unsigned char>(c);
  out += '%';
  out += digits[b >> 4];
  out += digits[b & 15];
}

int digit_of(char c) noexcept { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

// The byte of an escape of shown() at the front of `s`, or -1 if there is none.
int shown_byte(std::string_view s) noexcept {
  if (s.size() < 3 || s[0] != '%' || digit_of(s[1]) < 0 || digit_of(s[2]) < 0) return -1;
  const int byte = digit_of(s[1]) * 16 + digit_of(s[2]);
  return byte == '%' || byte >= 0x80 ? byte : -1;
}

std::string with_escapes(std::string_view s, bool reversible) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const std::size_t n = utf8_length(s);
    if (n == 0 || (reversible && shown_byte(s) >= 0)) {
      append_percent(out, s[0]);
      s.remove_prefix(1);
    } else {
      out += s.substr(0, n);
      s.remove_prefix(n);
    }
  }
  return out;
}

}  // namespace

std::string shown(std::string_view name) { return with_escapes(name, true); }

std::string utf8_text(std::string_view text) { return with_escapes(text, false); }

std::string unshown(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const int byte = shown_byte(s);
    out += byte < 0 ? s[0] : static_cast<char>(byte);
    s.remove_prefix(byte < 0 ? 1 : 3);
  }
  return out;
}

std::string folded(std::string_view name) {
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
  const bool reserved = is_metadata_key(folded(link)), ours = folded(link.substr(0, own_prefix.size())) == own_prefix;
  const bool underscores = link.substr(0, 2) == "__";
  std::string_view rest = link;
  while (!rest.empty()) {
    const char c = rest[0];
    const auto b = static_cast<unsigned char>(c);
    const std::size_t n = utf8_length(rest);
    const bool first = rest.size() == link.size();
    if (n == 0 || b < 0x20 || b == 0x7F || c == '\\' || c == '/' || (c == '.' && (((only_dots || ours) && first) || reserved)) ||
        (first && underscores)) {
      append_percent(out, c);
      rest.remove_prefix(1);
    } else {
      out += rest.substr(0, n);
      rest.remove_prefix(n);
    }
  }
  if (out.empty()) return "%";
  if (out.size() > longest_name) {
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
  std::unordered_set<std::string> taken;
  for (const std::string_view name : names) {
    std::string n = node_name(name);
    while (!taken.insert(n).second) {
      std::string other = unlike_by_case(n);
      n = other == n ? n + "%" : std::move(other);
    }
    out.push_back(std::move(n));
  }
  return out;
}

std::string unlike_by_case(std::string_view name) {
  std::string out;
  bool done = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '%' && i + 2 < name.size()) {  // an escape, or what looks like one, stays as it is
      out += name.substr(i, 3);
      i += 2;
    } else if (!done && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) {
      append_percent(out, c);
      done = true;
    } else {
      out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) { return base64(std::as_bytes(std::span(bytes.data(), bytes.size()))); }

std::string base64(std::span<const std::byte> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t v = std::to_integer<std::uint32_t>(bytes[i]) << 16;
    if (n > 1) v |= std::to_integer<std::uint32_t>(bytes[i + 1]) << 8;
    if (n > 2) v |= std::to_integer<std::uint32_t>(bytes[i + 2]);
    out += digits[v >> 18];
    out += digits[(v >> 12) & 63];
    out += n > 1 ? digits[(v >> 6) & 63] : '=';
    out += n > 2 ? digits[v & 63] : '=';
  }
  return out;
}

bool is_node_key(std::string_view key) { return key == "zarr.json" || key.ends_with("/zarr.json"); }

std::string join_path(std::string_view parent, std::string_view name) {
  std::string out(parent);
  if (out.empty() || out.back() != '/') out += '/';
  return out.append(name);
}

std::string leaf_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  std::vector<std::byte> out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  if (text.size() % 4 != 0) return {};
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  for (const char c : text) {
    unsigned v = 0;
    if (c >= 'A' && c <= 'Z') v = static_cast<unsigned>(c - 'A');
    else if (c >= 'a' && c <= 'z') v = static_cast<unsigned>(c - 'a') + 26;
    else if (c >= '0' && c <= '9') v = static_cast<unsigned>(c - '0') + 52;
    else if (c == '+') v = 62;
    else if (c == '/') v = 63;
    else return {};
    bits = bits << 6 | v;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<std::byte>(bits >> count & 0xff));
    }
  }
  return out;
}

}  // namespace zarrbits::conversion
