// SPDX-License-Identifier: BSL-1.0
//
// Names in a store that belong to the converter, or come from it.
//
#ifndef ZARRBITS_TEXT_RESERVED_NAMES_HPP
#define ZARRBITS_TEXT_RESERVED_NAMES_HPP

#include <string_view>

namespace zarrbits::text {

// The key of zarrbits' notes on what Zarr has no place for: links, enumerations, unlimited dimensions, types.
constexpr const char* annotation_key = "zarrbits";
// The key of the same notes among attributes that xarray and netCDF-C hide: they hide names with this prefix.
constexpr const char* hidden_annotation_key = "_nc_zarrbits";
// Among the notes of a store's root: the digest of its values, in this form. An HDF5 file has the same text as an attribute of
// its root. No copy has it, because its values may be others.
constexpr const char* digest_note_key = "digest";
constexpr const char* digest_attribute = "zarrbits_digest";
constexpr std::string_view digest_note_prefix = "zarrbits digest ";
// In metadata that are translated from Zarr v2, and in no store: what became of attributes.
constexpr const char* remarks_key = "zarrbits.remarks";
// A name in a store with this prefix belongs to the converter.
constexpr std::string_view internal_prefix = ".zarrbits-";
// A folder in the root of an unfinished store, with the conversion's own files (plan and journal). While it has it, a store has
// no zarr.json in its root; it shows --overwrite what it may remove, and --resume what it may resume.
constexpr const char* unfinished_folder = ".zarrbits-unfinished";
// A folder in the root of a store that is growing, with its new parts until they are complete.
constexpr const char* append_folder = ".zarrbits-append";
// A file in the folder of an unfinished store: a process that writes has locked it.
constexpr const char* lock_name = "lock";
// Another one: what the store is begun with. It is removed first when the store is complete.
constexpr const char* plan_name = "plan";
// Another one, while an old store is removed: the remaining objects do not belong to the new store.
constexpr const char* removal_marker = "removing";
// The name of a dimension that has none, as xarray needs one for each: this and a number.
constexpr std::string_view phony_prefix = "phony_dim_";
constexpr bool is_phony(std::string_view dimension) {
  return dimension.starts_with(phony_prefix) && dimension.size() > phony_prefix.size() &&
         dimension.find_first_not_of("0123456789", phony_prefix.size()) == std::string_view::npos;
}

}  // namespace zarrbits::text

#endif
