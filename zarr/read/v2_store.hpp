// SPDX-License-Identifier: BSL-1.0
//
// Stores of Zarr v2, read as those of v3: their metadata are translated, their chunks stay where they are.
//
//   if (is_v2_store(*store)) store = as_v3(store, name, memory);
//   store->open("a/zarr.json");   // made of a/.zarray and a/.zattrs
//
#ifndef ZARRBITS_ZARR_READ_V2_STORE_HPP
#define ZARRBITS_ZARR_READ_V2_STORE_HPP

#include "zarr/read/store_reader.hpp"

#include <memory>
#include <string>

namespace zarrbits::zarr {

// True if the root has metadata of Zarr v2, and none of v3.
bool is_v2_store(const store_reader& store);

// `name`: of the store, for sentences. `memory`: for the metadata of a node. The metadata are read when they are asked for; what
// v3 cannot say is store_error or not_supported then.
std::shared_ptr<const store_reader> as_v3(std::shared_ptr<const store_reader> store, const std::string& name,
                                          std::uint64_t memory);

}  // namespace zarrbits::zarr

#endif
