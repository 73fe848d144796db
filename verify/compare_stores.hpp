// SPDX-License-Identifier: BSL-1.0
//
// Compares a store with the Zarr store that it was made from: every node, attribute, name of a dimension and value. How chunks
// are stored may differ.
//
#ifndef ZARRBITS_VERIFY_COMPARE_STORES_HPP
#define ZARRBITS_VERIFY_COMPARE_STORES_HPP

#include "io/thread_pool.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/verify.hpp>

namespace zarrbits::verification {

// Throws store_error if a root cannot be read. `pool`: of work_memory() bytes; its threads decode the chunks of both.
verify_result compare_stores(const verify_options& options, const zarr::store_folder& source, const zarr::store_folder& store,
                             io::thread_pool& pool);

}  // namespace zarrbits::verification

#endif
