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

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::verification {

// Throws store_error if a root cannot be read. `pool`: of work_memory() bytes; its threads decode the chunks of both.
verify_result compare_stores(const verify_options& options, const zarr::store_folder& source, const zarr::store_folder& store,
                             io::thread_pool& pool);

// Compares a store that several stores were joined in: everything but values with the first one only.
// `open`: opens one of them.
verify_result compare_joined_stores(const verify_options& options, const std::vector<std::string>& sources,
                                    const std::function<zarr::store_folder(const std::string& name)>& open,
                                    const zarr::store_folder& store, io::thread_pool& pool);

// The meaning of the first value of a dimension's variable that is not missing, as instant() has it. Throws zarrbits::error if
// absent, store_error and not_supported.
long double first_value_in_store(const zarr::store_folder& source, const std::string& dimension);

}  // namespace zarrbits::verification

#endif
