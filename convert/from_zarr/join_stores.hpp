// SPDX-License-Identifier: BSL-1.0
//
// Lets the nodes of the first of several stores stand for all: finds the arrays that have the dimension, and checks that
// everything else is equal, as join_files() does for HDF5 files. Values with other packing, missing values or epochs are
// converted to the first store's terms.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_JOIN_STORES_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_JOIN_STORES_HPP

#include "convert/from_zarr/source_array.hpp"
#include "convert/from_zarr/store_source.hpp"

#include <zarrbits/convert.hpp>

#include <functional>
#include <string>

namespace zarrbits::conversion {

// Puts the stores in the options, which have `concat`, into the order in which they are joined. Throws zarrbits::error,
// store_error and not_supported.
void order_stores(convert_options& options);

// `first`: read_tree() of the first store, after select_nodes(). Sets source_node::joined and the metadata of arrays that are
// joined, and sources, roots and checksum. Throws the same, and unjoinable.
void join_stores(source_nodes& first, const convert_options& options,
                 const std::function<void(const std::string& path)>& callback);

// The index in source_nodes::sources of the store that a part of source_array is from.
std::size_t source_of_part(const joined_array& joined, std::size_t part);

// The array of a node of one store, or of several. Throws store_error and not_supported.
source_array open_source_array(const source_node& node);

}  // namespace zarrbits::conversion

#endif
