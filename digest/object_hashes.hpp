// SPDX-License-Identifier: BSL-1.0
//
// Hashes of the objects of a store, or of a file, as they are stored.
//
#ifndef ZARRBITS_DIGEST_OBJECT_HASHES_HPP
#define ZARRBITS_DIGEST_OBJECT_HASHES_HPP

#include <zarrbits/digest.hpp>

#include <string>
#include <vector>

namespace zarrbits::digesting {

enum class hash_function { sha256, md5 };

// In hexadecimal digits. Throws zarrbits::error.
std::string md5_of_text(const std::string& text);

// All objects at any depth, sorted by their names in bytes; of a file, one with its own name. Throws zarrbits::error,
// zarr::store_error.
std::vector<object_hash> hash_objects(const digest_options& options, hash_function function);

}  // namespace zarrbits::digesting

#endif
