// SPDX-License-Identifier: BSL-1.0
//
// The pages of a new file.
//
#ifndef ZARRBITS_HDF5_FILE_PAGES_HPP
#define ZARRBITS_HDF5_FILE_PAGES_HPP

#include "text/format.hpp"

#include <zarrbits/error.hpp>

#include <cstdint>
#include <string>

namespace zarrbits::hdf5 {

// HDF5 has no pages that are larger than a user block. Throws zarrbits::error for the source `name`.
inline void require_pages_fit(const std::string& name, std::uint64_t page_size, std::uint64_t user_block) {
  if (user_block == 0 || page_size <= user_block) return;
  throw error(errc::no_match,
              "\"" + name + "\" has a user block of " + text::format_bytes(user_block) +
                  ", before which HDF5 has no larger pages; leave out `page_size`",
              {name});
}

}  // namespace zarrbits::hdf5

#endif
