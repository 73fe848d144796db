// SPDX-License-Identifier: BSL-1.0
//
// The differences between the pure mapping of HDF5 to Zarr and the store that a community's Zarr reader expects. A convention
// describes only differences: everything else stays as in the pure mapping.
//
//   const convention_rules* rules = find_convention(source, options.convention);   // after walk(), before select()
//   override_schema(source, rules);
//
// To add one: a file with a function for each difference, and a row in convention_rules.cpp.
//
#ifndef ZARRBITS_CONVENTIONS_CONVENTION_RULES_HPP
#define ZARRBITS_CONVENTIONS_CONVENTION_RULES_HPP

#include "hdf5/attribute_form.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/type_description.hpp"
#include "text/json_text.hpp"

#include <zarrbits/convert_options.hpp>

namespace zarrbits::conventions {

struct convention_rules {
  zarrbits::convention kind = zarrbits::convention::none;
  // True if the file says that it belongs to this community. Reads only metadata.
  bool (*recognise)(const hdf5::source_file& file) = nullptr;
  // Sets how each object appears in the store (source_object::overrides). Null if there is nothing to do.
  void (*override_schema)(hdf5::source_file& file) = nullptr;
  // Corrects the attributes of a node that the pure mapping made. `id`: the open object. `leaf`: the type of one value of a
  // dataset, else null. Null if there is nothing to do.
  void (*attributes)(const hdf5::source_file& file, const hdf5::source_object& object, hid_t id,
                     const hdf5::type_description* leaf, text::json& attributes) = nullptr;
  // The form of attributes that its reader expects.
  hdf5::attribute_form form = {};
  // Names that begin with "__" stay, which Zarr v3 reserves: its reader is on zarr-python, and finds them.
  bool reserved_names = false;
  // Copy the targets of links: its HDF5 reader shows them, and its Zarr reader has no links.
  bool links_are_objects = false;
  // Repeat the metadata of all nodes in the root's (convert_target::consolidate): the reader looks for it first.
  bool consolidated = false;
};

// The rules of the requested convention, or of the first one that recognises the file; null: the pure mapping. `likely`, those of
// a similar file, are tried first.
const convention_rules* find_convention(const hdf5::source_file& file, std::optional<zarrbits::convention> requested,
                                        const convention_rules* likely = nullptr);

// A sentence for a file that no convention recognises but that has attributes of CF; else "".
std::string convention_hint(const hdf5::source_file& file);

// Sets how each object appears in the store. Null rules: as in the file.
void override_schema(hdf5::source_file& file, const convention_rules* rules);

}  // namespace zarrbits::conventions

#endif
