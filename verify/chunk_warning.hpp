// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_VERIFY_CHUNK_WARNING_HPP
#define ZARRBITS_VERIFY_CHUNK_WARNING_HPP

#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/verify.hpp>

#include <string>

namespace zarrbits::verification {

// Warns if the chunks of an array need more memory than `memory` to be compared.
void warn_about_chunks(const verify_options& options, const std::string& path, const zarr::zarr_array& array);

}  // namespace zarrbits::verification

#endif
