// SPDX-License-Identifier: BSL-1.0
#include "io/xml.hpp"

#include <charconv>
#include <cstdint>

namespace zarrbits::conversion {

namespace {

constexpr std::string_view blanks = " \t\r\n";

void append_utf8(std::string& to, std::uint32_t c) {
  const auto rest = [&](unsigned shift) { to += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xc0 | (c >> 6)), rest(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xe0 | (c >> 12)), rest(6), rest(0);
  } else {
    to += static_cast<char>(0xf0 | (c >> 18)), rest(12), rest(6), rest(0);
  }
}

bool append_entity(std::string& to, std::string_view name) {
  constexpr std::pair<std::string_view, char> known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [entity, character] : known) {
    if (name == entity) return to += character, true;
  }
  if (!name.starts_with('#')) return false;
  name.remove_prefix(1);
  const bool hexadecimal = name.starts_with('x');
  name.remove_prefix(hexadecimal ? 1 : 0);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || value == 0 || value > 0x10ffff) return false;
  append_utf8(to, value);
  return true;
}

// False if an entity is unknown.
bool append_text(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t ampersand = std::min(text.find('&'), text.size());
    to += text.substr(0, ampersand);
    text.remove_prefix(ampersand);
    if (text.empty()) break;
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos || !append_entity(to, text.substr(1, end - 1))) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

// The end of the tag at the front: a ">" that is not in an attribute's value.
std::size_t end_of_tag(std::string_view xml) {
  char quote = 0;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    if (quote) {
      if (xml[i] == quote) quote = 0;
    } else if (xml[i] == '"' || xml[i] == '\'') {
      quote = xml[i];
    } else if (xml[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string_view local_name(std::string_view tag) {
  tag = tag.substr(0, tag.find_first_of(" \t\r\n/"));
  return tag.substr(tag.find(':') + 1);  // npos + 1 is 0
}

}  // namespace

std::string xml_element::text_of(std::string_view wanted) const {
  for (const xml_element& e : elements) {
    if (e.name == wanted) return e.text;
  }
  return {};
}

std::optional<xml_element> parse_xml(std::string_view xml) {
  std::vector<xml_element> open(1);  // the first one receives the outermost element
  std::size_t count = 0;
  // if `begin` is at the front: removes everything up to `end`, and puts it in `content`; returns true
  std::string_view content;
  bool cut = false;
  const auto takes = [&](std::string_view begin, std::string_view end) {
    if (!xml.starts_with(begin)) return false;
    const std::size_t at = xml.find(end, begin.size());
    cut |= at == std::string_view::npos;
    content = xml.substr(begin.size(), cut ? 0 : at - begin.size());
    xml.remove_prefix(cut ? xml.size() : at + end.size());
    return true;
  };
  while (!xml.empty()) {
    if (xml.front() != '<') {
      const std::string_view text = xml.substr(0, xml.find('<'));
      xml.remove_prefix(text.size());
      if (open.size() > 1 ? !append_text(open.back().text, text) : text.find_first_not_of(blanks) != std::string_view::npos)
        return std::nullopt;
    } else if (takes("<?", "?>") || takes("<!--", "-->")) {
      if (cut) return std::nullopt;
    } else if (takes("<![CDATA[", "]]>")) {
      if (cut || open.size() == 1) return std::nullopt;
      open.back().text += content;
    } else if (takes("</", ">")) {
      if (cut || open.size() == 1 || local_name(content) != open.back().name) return std::nullopt;
      xml_element done = std::move(open.back());
      open.pop_back();
      open.back().elements.push_back(std::move(done));
    } else {
      const std::size_t end = end_of_tag(xml);
      if (end == std::string_view::npos || xml.starts_with("<!")) return std::nullopt;
      const std::string_view tag = xml.substr(1, end - 1), name = local_name(tag);
      xml.remove_prefix(end + 1);
      if (name.empty() || ++count > most_xml_elements || open.size() > deepest_xml || (open.size() == 1 && count > 1))
        return std::nullopt;
      if (tag.ends_with('/')) {
        open.back().elements.push_back({std::string(name), {}});
      } else {
        open.push_back({std::string(name), {}});
      }
    }
  }
  if (open.size() != 1 || open[0].elements.empty()) return std::nullopt;
  return std::move(open[0].elements[0]);
}

}  // namespace zarrbits::conversion
