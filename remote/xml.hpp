// SPDX-License-Identifier: BSL-1.0
//
// The small XML of a server's answers, parsed by pugixml. The input is hostile: no document types, and limits for depth and
// number of elements.
//
#ifndef ZARRBITS_REMOTE_XML_HPP
#define ZARRBITS_REMOTE_XML_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::remote {

struct xml_element {
  std::string name;  // without the namespace prefix
  std::string text;  // without the text of inner elements
  std::vector<xml_element> elements = {};

  // The text of its first element of that name; "" if absent.
  std::string text_of(std::string_view element_name) const;
  // Its first element of that name; one without content if absent.
  const xml_element& child(std::string_view element_name) const;
};

constexpr std::size_t max_xml_depth = 16, max_xml_elements = 100'000;

// The outermost element. Empty if the text is not XML, is nested deeper, or has more elements.
std::optional<xml_element> parse_xml(std::string_view xml);

}  // namespace zarrbits::remote

#endif
