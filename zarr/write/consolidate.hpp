// SPDX-License-Identifier: BSL-1.0
//
// Consolidated metadata: the root group's zarr.json repeats that of every node, so a reader needs one request to learn the
// structure of a store.
//
//   out = make_consolidating_writer(std::move(out));
//   out->put("a/zarr.json", text);      // is remembered
//   out->put("zarr.json", group_text);  // last: gets all of them
//
#ifndef ZARRBITS_ZARR_WRITE_CONSOLIDATE_HPP
#define ZARRBITS_ZARR_WRITE_CONSOLIDATE_HPP

#include "zarr/write/store_writer.hpp"

namespace zarrbits::zarr {

// One process must write the metadata of all nodes. A root that is an array is not changed.
std::unique_ptr<store_writer> make_consolidating_writer(std::unique_ptr<store_writer> out);

}  // namespace zarrbits::zarr

#endif
