// SPDX-License-Identifier: BSL-1.0
#include "remote/xml.hpp"

#include <algorithm>
#include <cstddef>
#include <pugixml.hpp>

namespace zarrbits::remote {

namespace {

std::string_view local_name(std::string_view name) { return name.substr(name.find(':') + 1); }  // npos + 1 is 0

// False if a limit is exceeded.
bool copy_element(const pugi::xml_node& from, xml_element& to, std::size_t depth, std::size_t& count) {
  if (depth > max_xml_depth || ++count > max_xml_elements) return false;
  to.name = local_name(from.name());
  for (const pugi::xml_node& child : from.children()) {
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) {
      to.text += child.value();
    } else if (child.type() == pugi::node_element) {
      if (!copy_element(child, to.elements.emplace_back(), depth + 1, count)) return false;
    }
  }
  return true;
}

}  // namespace

const xml_element& xml_element::child(std::string_view element_name) const {
  static const xml_element none;
  for (const xml_element& e : elements) {
    if (e.name == element_name) return e;
  }
  return none;
}

std::string xml_element::text_of(std::string_view element_name) const { return child(element_name).text; }

std::optional<xml_element> parse_xml(std::string_view xml) {
  // before they take memory: each has a beginning and an end, and there may be comments
  if (std::count(xml.begin(), xml.end(), '<') > static_cast<std::ptrdiff_t>(4 * max_xml_elements)) return {};
  pugi::xml_document document;
  // whitespace is kept: names of objects may be nothing else
  if (!document.load_buffer(xml.data(), xml.size(), pugi::parse_default | pugi::parse_ws_pcdata | pugi::parse_doctype,
                            pugi::encoding_utf8))
    return {};
  std::optional<xml_element> outermost;
  std::size_t count = 0;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_doctype || (node.type() == pugi::node_element && outermost)) return {};
    if (node.type() == pugi::node_element && !copy_element(node, outermost.emplace(), 1, count)) return {};
  }
  return outermost;
}

}  // namespace zarrbits::remote
