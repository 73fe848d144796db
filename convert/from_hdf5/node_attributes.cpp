// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/node_attributes.hpp"

#include "convert/concat/joined_parts.hpp"
#include "hdf5/file_references.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <string>

namespace zarrbits::conversion {

namespace {

void remove_attribute(text::json& attributes, const std::string& name) {
  attributes.erase(name);
  attributes.erase(name + "_source");
  const auto notes = attributes.find(text::annotation_key);
  if (notes == attributes.end()) return;
  for (const char* kind : {"attribute_types", "attribute_shapes", "attribute_values"}) {
    if (const auto of = notes->find(kind); of != notes->end()) of->erase(name);
  }
}

}  // namespace

text::json node_attributes(hdf5_source& source, const hdf5::source_object& node, hid_t object, const hdf5::type_description* leaf,
                           std::vector<hdf5::attribute_report>& report) {
  hdf5::file_references references(source.file(), object);
  hdf5::attribute_form form = source.rules() ? source.rules()->form : hdf5::attribute_form();
  form.notes_shown = source.options().target.convention == convention::none;
  const std::uint64_t memory = std::max<std::uint64_t>(source.options().execution.memory, 16U << 20);
  text::json attributes = hdf5::convert_attributes(object, references, leaf, form, memory, report);
  if (node.joined) {
    for (const std::string& name : node.joined->removed_attributes) remove_attribute(attributes, name);
  }
  if (source.rules() && source.rules()->attributes) source.rules()->attributes(source.file(), node, object, leaf, attributes);
  return attributes;
}

}  // namespace zarrbits::conversion
