// SPDX-License-Identifier: BSL-1.0
//
// Stores of Zarr v2. The caller puts objects of v3, and the store gets their counterparts.
//
//   out = make_v2_writer(std::move(out), true);
//   out->put("a/c/0/1", chunk);          // "a/0.1"
//   out->put("a/zarr.json", text);       // "a/.zattrs", "a/.zarray"
//   out->put("zarr.json", group_text);   // last: ".zattrs", ".zmetadata", ".zgroup"
//
#ifndef ZARRBITS_ZARR_WRITE_V2_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_V2_WRITER_HPP

#include "zarr/write/store_writer.hpp"

namespace zarrbits::zarr {

// The folders of list(), for_each() and remove() are those of nodes, not of their chunks. put() throws zarrbits::error if Zarr v2
// cannot have an array: the conversion skips such arrays. `consolidated`: with .zmetadata; one process then must write the
// metadata of all nodes.
std::unique_ptr<store_writer> make_v2_writer(std::unique_ptr<store_writer> out, bool consolidated);

}  // namespace zarrbits::zarr

#endif
