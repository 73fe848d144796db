// SPDX-License-Identifier: BSL-1.0
//
// AnnData's .h5ad, as anndata.read_zarr reads it: record arrays (before 0.7 also tables) are arrays of structs. It writes
// everything else to HDF5 and to Zarr in the same form.
//
#ifndef ZARRBITS_CONVENTIONS_ANNDATA_HPP
#define ZARRBITS_CONVENTIONS_ANNDATA_HPP

#include "conventions/convention_rules.hpp"
#include "conventions/flatten.hpp"

namespace zarrbits::conventions {

bool is_anndata(const hdf5::source_file& file);
void anndata_attributes(const hdf5::source_file& file, const hdf5::source_object& object, hid_t id,
                        const hdf5::type_description* leaf, text::json& attributes);

inline constexpr convention_rules anndata_rules = {.kind = zarrbits::convention::anndata,
                                                   .recognise = is_anndata,
                                                   .override_schema = flatten_compounds,
                                                   .attributes = anndata_attributes,
                                                   .form = {.bare_nan = true},
                                                   .reserved_names = true,
                                                   .links_are_objects = true,
                                                   .consolidated = true};

}  // namespace zarrbits::conventions

#endif
