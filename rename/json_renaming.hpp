// SPDX-License-Identifier: BSL-1.0
//
// Other names in references in JSON.
//
#ifndef ZARRBITS_RENAME_JSON_RENAMING_HPP
#define ZARRBITS_RENAME_JSON_RENAMING_HPP

#include "rename/url_renaming.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace zarrbits::rename {

// Reads the file twice, for the list of sources is at its beginning, and passes the new text to `write`, piece by piece. Throws
// io::reference_error.
void rename_in_json(const std::string& path, url_renaming& names, const std::function<void(std::string_view)>& write);

}  // namespace zarrbits::rename

#endif
