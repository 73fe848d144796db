// SPDX-License-Identifier: BSL-1.0
//
// The names of files in references, and what they become.
//
//   url_renaming names({.old_name = "/data", .new_name = "https://host/a"}, "/refs.json");
//   names.renamed("file:///data/a b.h5");   // "https://host/a/a%20b.h5"
//   names.renamed("file:///other/a.h5");    // empty
//
#ifndef ZARRBITS_RENAME_URL_RENAMING_HPP
#define ZARRBITS_RENAME_URL_RENAMING_HPP

#include "text/json_text.hpp"

#include <zarrbits/rename.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace zarrbits::rename {

class url_renaming {
 public:
  // `references`: their real path. Throws zarrbits::error if readers of references do not find files by the new name.
  url_renaming(const rename_options& options, std::string references);

  // Empty if the file keeps its name. Throws io::reference_error.
  std::optional<std::string> renamed(const std::string& url);
  // Renames an entry of the list of sources. Throws io::reference_error if it is not one.
  void rename_source(text::json& source);
  // Entries for renamed files beside the references that the list lacks: with a local name, a file with data is not listed.
  std::vector<text::json> unlisted_sources() const;
  // Files that were renamed.
  std::uint64_t count() const { return renamed_.size(); }

 private:
  std::string new_name_of(const std::string& name) const;
  std::optional<std::uint64_t> data_file_size(const std::string& url) const;

  std::string references_, old_, new_;
  std::uint64_t available_memory_;
  std::unordered_set<std::string> renamed_;  // old names
  std::set<std::string> listed_;             // new names of sources
};

}  // namespace zarrbits::rename

#endif
