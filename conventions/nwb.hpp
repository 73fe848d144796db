// SPDX-License-Identifier: BSL-1.0
//
// Neurodata Without Borders, as NWBZarrIO of hdmf-zarr 0.14 reads it: references, links, and tables with references in them.
//
#ifndef ZARRBITS_CONVENTIONS_NWB_HPP
#define ZARRBITS_CONVENTIONS_NWB_HPP

#include "conventions/convention_rules.hpp"
#include "conventions/flatten.hpp"

namespace zarrbits::conventions {

bool is_nwb(const hdf5::source_file& file);
void nwb_attributes(const hdf5::source_file& file, const hdf5::source_object& object, hid_t id,
                    const hdf5::type_description* leaf, text::json& attributes);

inline constexpr convention_rules nwb_rules = {.kind = zarrbits::convention::nwb,
                                               .recognise = is_nwb,
                                               .override_schema = flatten_compounds,
                                               .attributes = nwb_attributes,
                                               .form = {.bare_nan = true},
                                               .reserved_names = true};

}  // namespace zarrbits::conventions

#endif
