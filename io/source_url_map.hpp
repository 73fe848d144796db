// SPDX-License-Identifier: BSL-1.0
//
// What references call local files: absolute names or, for readers who find them elsewhere, those of source_base.
//
//   const source_url_map names({{"/data", "https://host/archive"}}, {"/data/2020/a.nc"}, "refs.json");
//   names.published_url("file:///data/2020/a.nc");         // "https://host/archive/2020/a.nc"
//   names.local_url("https://host/archive/2020/a.nc");     // and back
//
#ifndef ZARRBITS_IO_SOURCE_URL_MAP_HPP
#define ZARRBITS_IO_SOURCE_URL_MAP_HPP

#include <zarrbits/source_name.hpp>

#include <optional>
#include <string>
#include <vector>

namespace zarrbits::io {

class source_url_map {
 public:
  // Throws zarrbits::error if the base is not one, or if it names no folder, and no source is local.
  source_url_map(const std::optional<source_base>& base, const std::vector<std::string>& sources, const std::string& references);

  bool has_base() const { return base_.has_value(); }
  // Empty without a base.
  std::string folder() const { return base_ ? base_->folder : ""; }
  // What references call "file:///a/b"; URLs of servers are unchanged. Throws zarrbits::error if the file is not in the folder.
  std::string published_url(const std::string& url) const;
  // The reverse; the same URL if it is not one that published_url() makes.
  std::string local_url(const std::string& url) const;

 private:
  bool relative() const { return base_->url == "."; }

  std::optional<source_base> base_;  // the folder is absolute, and neither part ends with a slash
  std::string references_;           // absolute
};

// The file that a name without a folder or with a relative one leads to, from the folder of the references; others as they are.
std::string from_references(const std::string& url, const std::string& references);

}  // namespace zarrbits::io

#endif
