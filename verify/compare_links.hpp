// SPDX-License-Identifier: BSL-1.0
//
// The links and named types of a group, which the store notes under "zarrbits".
//
#ifndef ZARRBITS_VERIFY_COMPARE_LINKS_HPP
#define ZARRBITS_VERIFY_COMPARE_LINKS_HPP

#include "verify/compare_metadata.hpp"
#include "verify/source_tree.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::verification {

// The value of a link that is not hard; empty if libhdf5 does not return it, as for classes that are not registered. Throws
// source_error, not_supported.
std::string link_value(hid_t group, const std::string& name);

class link_comparison {
 public:
  // `if_missing`: the verdict on a link of this path that the store does not have; equal if it need not have it.
  link_comparison(source_tree& tree, metadata_comparison& metadata, std::function<verdict(const std::string& path)> if_missing)
      : tree_(tree), metadata_(metadata), if_missing_(std::move(if_missing)) {}

  // Compares the links of the group at `address`. `nodes`: the names of its links that are nodes of the store.
  void group(haddr_t address, const node_pair& n, const std::set<std::string>& nodes);
  // Call when all nodes are known: a hard link needs no note if its object is not in the store, which is reported anyway.
  void finish();

 private:
  struct lost_link {
    std::string path, store_path, name;
    haddr_t target;
  };
  void hard_link(const source_link& l, const node_pair& n, const nlohmann::json& note);
  void named_type(const source_link& l, const node_pair& n, const nlohmann::json& note);
  void other_link(hid_t group, const source_link& l, const node_pair& n, const nlohmann::json& links);
  void missing(const node_pair& n, const char* kind, const std::string& name);

  source_tree& tree_;
  metadata_comparison& metadata_;
  std::function<verdict(const std::string& path)> if_missing_;
  std::vector<lost_link> lost_links_;
};

}  // namespace zarrbits::verification

#endif
