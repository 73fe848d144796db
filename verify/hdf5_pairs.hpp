// SPDX-License-Identifier: BSL-1.0
//
// Which object of one HDF5 file corresponds to which object of another: those under the same paths. Walks both at the same time,
// and reports links and objects that only one of them has.
//
//   hdf5_pairs pairs(first, second, requested, result);
//   pairs.walk();
//   for (const object_pair& p : pairs.objects()) ...
//
#ifndef ZARRBITS_VERIFY_HDF5_PAIRS_HPP
#define ZARRBITS_VERIFY_HDF5_PAIRS_HPP

#include "text/selection.hpp"
#include "verify/source_tree.hpp"

#include <zarrbits/verify.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::verification {

struct object_pair {
  H5O_type_t type;
  haddr_t first, second;          // their addresses
  std::string path, second_path;  // one of their paths
  bool is_selected;
};

// "group", "dataset" or "named type".
const char* kind_of(H5O_type_t type);

class hdf5_pairs {
 public:
  // Both trees are selected by select() already.
  hdf5_pairs(const source_tree& first, const source_tree& second, text::selection& requested, verify_result& result)
      : first_(first), second_(second), requested_(requested), result_(result) {}

  void walk();
  const std::vector<object_pair>& objects() const { return objects_; }
  // True if the objects are under the same paths.
  bool is_pair(haddr_t first, haddr_t second) const;

 private:
  struct lone_link {
    std::string group, name;
    haddr_t target;
  };

  void pair_group(const object_pair& group);
  void pair_hard_links(const object_pair& group, const source_link& a, const source_link& b, bool is_selected);
  void compare_links(const object_pair& group, const source_link& a, const source_link& b);
  void report_lone_links();
  void report_lone_objects();
  void report_link(const std::string& group, const std::string& second_group, const std::string& name, verdict outcome,
                   const std::string& reason);
  void add(object_pair&& pair);

  const source_tree& first_;
  const source_tree& second_;
  text::selection& requested_;
  verify_result& result_;
  std::vector<object_pair> objects_;
  std::deque<std::size_t> groups_;                   // of objects_, to be walked
  std::map<haddr_t, haddr_t> partners_, of_second_;  // in the other file
  std::set<std::pair<haddr_t, haddr_t>> visited_;
  std::set<haddr_t> reported_, reported_in_second_;  // objects without a partner that a finding names
  std::vector<lone_link> only_in_first_, only_in_second_;
};

}  // namespace zarrbits::verification

#endif
