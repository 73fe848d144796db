// SPDX-License-Identifier: BSL-1.0
//
// All nodes of a store: metadata, the rules between them, keys that belong to nothing, and chunks.
//
#ifndef ZARRBITS_CHECK_STORE_CHECK_HPP
#define ZARRBITS_CHECK_STORE_CHECK_HPP

#include "check/finding_list.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/check.hpp>

namespace zarrbits::checking {

// `top`: the node to begin with. `has_both_formats`: metadata of Zarr v2 may be beside those of v3. Throws
// errors that are not findings: read_failure.hpp.
void check_store(const zarr::store_folder& top, bool has_both_formats, const integrity_options& options, finding_list& findings,
                 integrity_report& report);

}  // namespace zarrbits::checking

#endif
