// SPDX-License-Identifier: BSL-1.0
//
// What the Zarr reader of a community expects that the pure mapping of HDF5 to Zarr does not give it. A convention describes
// differences alone: what it does not speak of is as it is without one.
//
//   const convention_rules* rules = find_convention(source, options.convention);   // after walk(), before select()
//   if (rules) rules->arrange(source);
//
// To add one: a file with a function for each difference, and a row in convention_rules.cpp.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_CONVENTION_RULES_HPP
#define ZARRBITS_CONVERT_CONVENTION_CONVENTION_RULES_HPP

#include "convert/hdf5/source_file.hpp"
#include "convert/hdf5/type_tree.hpp"
#include "convert/text/json_text.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

struct convention_rules {
  zarrbits::convention which = zarrbits::convention::none;
  // True where the file says that it is of this community. Looks at metadata alone.
  bool (*recognise)(const source_file& file) = nullptr;
  // Notes at each object (source_object::arranged) how it is to stand in the store. Null where there is nothing to do.
  void (*arrange)(source_file& file) = nullptr;
  // Puts the attributes of a node right, which the pure mapping has made. `id`: the open object. `leaf`: the type of one value,
  // where it is a dataset; else null. Null where there is nothing to do.
  void (*attributes)(const source_file& file, const source_object& object, hid_t id, const type_tree* leaf,
                     json& attributes) = nullptr;
  // Our own notes are a field of zarr.json, with "must_understand": false: the community's reader shows every attribute.
  bool notes_apart = false;
  // Its reader of HDF5 shows what links lead to, and that of Zarr knows no links: they are copied.
  bool links_are_objects = false;
};

// The rules that were asked for, or those of the first convention that recognises the file; null: the pure mapping.
const convention_rules* find_convention(const source_file& file, std::optional<zarrbits::convention> asked);

}  // namespace zarrbits::conversion

#endif
