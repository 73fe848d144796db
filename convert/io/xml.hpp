// SPDX-License-Identifier: BSL-1.0
//
// The small XML of a server's answers. What is read is hostile: no document types, no entities but the five and numbers, and
// bounds for depth and number.
//
#ifndef ZARRBITS_CONVERT_IO_XML_HPP
#define ZARRBITS_CONVERT_IO_XML_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

struct xml_element {
  std::string name;  // without the prefix of a namespace
  std::string text;  // without that of the elements in it
  std::vector<xml_element> elements = {};

  // The text of the first element in it of that name; "" where there is none.
  std::string text_of(std::string_view wanted) const;
};

constexpr std::size_t deepest_xml = 16, most_xml_elements = 100'000;

// The outermost element. Nothing where it is no XML, is deeper, or has more elements.
std::optional<xml_element> parse_xml(std::string_view xml);

}  // namespace zarrbits::conversion

#endif
