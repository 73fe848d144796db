// SPDX-License-Identifier: BSL-1.0
//
// Other names in references in a folder of Parquet files.
//
#ifndef ZARRBITS_RENAME_PARQUET_RENAMING_HPP
#define ZARRBITS_RENAME_PARQUET_RENAMING_HPP

#include "rename/url_renaming.hpp"
#include "zarr/write/atomic_directory.hpp"

#include <string>

namespace zarrbits::rename {

// Writes all files of the folder into another one; those without such a name as they are. Throws io::reference_error,
// zarrbits::error.
void rename_in_parquet(const std::string& path, url_renaming& names, const zarr::atomic_directory& out);

}  // namespace zarrbits::rename

#endif
