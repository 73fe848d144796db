// SPDX-License-Identifier: BSL-1.0
//
// DANDI's checksum of a Zarr store, from the MD5 sums of its objects.
//
#ifndef ZARRBITS_DIGEST_DANDI_CHECKSUM_HPP
#define ZARRBITS_DIGEST_DANDI_CHECKSUM_HPP

#include <zarrbits/digest.hpp>

#include <string>
#include <vector>

namespace zarrbits::digesting {

// "481a2f77ab786a0f45aafd5db0971caa-707--73617". Throws nlohmann::json::exception if a name is not UTF-8.
std::string tree_checksum(const std::vector<object_hash>& objects);

}  // namespace zarrbits::digesting

#endif
