// SPDX-License-Identifier: BSL-1.0
#include "conventions/nwb.hpp"

#include "conventions/references.hpp"
#include "text/name_escaping.hpp"

#include <string>
#include <utility>

namespace zarrbits::conventions {

namespace {

// hdmf-zarr's "." is the store itself.
text::json in_this_store(const std::string& path) { return {{"source", "."}, {"path", path}}; }

// The path in the store of the target of the group's soft or further hard link; "" if the store does not have it.
std::string target_of(const hdf5::source_file& file, hid_t group, const hdf5::extra_link& link) {
  if (link.kind != "soft" && link.kind != "hard") return "";
  const hdf5::handle object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT));
  const hdf5::source_object* target = object ? file.find_object(object) : nullptr;
  return target ? target->store_path : "";
}

}  // namespace

bool is_nwb(const hdf5::source_file& file) {
  const hdf5::handle root(H5Gopen2(file.file(), "/", H5P_DEFAULT));
  return root && H5Aexists(root, "nwb_version") > 0 && H5Aexists(root, "neurodata_type") > 0;
}

void nwb_attributes(const hdf5::source_file& file, const hdf5::source_object& object, hid_t id,
                    const hdf5::type_description* leaf, text::json& attributes) {
  for (auto& [name, value] : attributes.items()) {
    if (!value.is_string()) continue;
    if (const hdf5::source_object* target = dereference(file, id, text::unescape_name(name)))
      value = {{"_REFERENCE", in_this_store(target->store_path)}};
  }
  if (leaf && leaf->kind == hdf5::type_class::object_reference) attributes["_DTYPE"] = "object_reference";
  if (leaf && leaf->kind == hdf5::type_class::compound && !object.overrides.text_lengths.empty()) {
    text::json fields = text::json::array();
    for (const hdf5::type_description& m : leaf->parts) {
      if (m.kind == hdf5::type_class::object_reference) fields.push_back(m.name);
    }
    if (!fields.empty()) attributes["_REFERENCE_FIELDS"] = std::move(fields);
  }
  text::json links = text::json::array();
  for (const hdf5::extra_link& link : object.links) {
    if (!link.selected || link.copied) continue;
    if (const std::string path = target_of(file, id, link); !path.empty()) {
      links.push_back(in_this_store(path));
      links.back()["name"] = text::escape_name(link.name);
    }
  }
  H5Eclear2(H5E_DEFAULT);
  if (!links.empty()) attributes["_LINKS"] = std::move(links);
}

}  // namespace zarrbits::conventions
