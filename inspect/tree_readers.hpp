// SPDX-License-Identifier: BSL-1.0
//
// The two kinds of trees of zarrbits/inspect.hpp, and stores that are not complete.
//
#ifndef ZARRBITS_INSPECT_TREE_READERS_HPP
#define ZARRBITS_INSPECT_TREE_READERS_HPP

#include "zarr/read/store_reader.hpp"

#include <zarrbits/inspect.hpp>

#include <optional>
#include <string>

namespace zarrbits::inspection {

inspected_tree read_hdf5(const std::string& file, const std::string& object, const inspect_options& options);
inspected_tree read_zarr(const zarr::store_folder& store, const std::string& object, const inspect_options& options);

// Empty if the folder has no plan of an unfinished store.
std::optional<unfinished_store> read_unfinished(const zarr::store_folder& root);

}  // namespace zarrbits::inspection

#endif
