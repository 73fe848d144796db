// SPDX-License-Identifier: BSL-1.0
//
// Walks the file and the store side by side. The store may have an object with several hard links under any of them. A node at
// the place of another link is compared with the link's target, also in other files.
//
#ifndef ZARRBITS_VERIFY_TREE_COMPARISON_HPP
#define ZARRBITS_VERIFY_TREE_COMPARISON_HPP

#include "hdf5/open_source.hpp"
#include "io/thread_pool.hpp"
#include "text/selection.hpp"
#include "verify/compare_links.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/comparison_progress.hpp"
#include "verify/convention.hpp"
#include "verify/exported_forms.hpp"
#include "verify/joined_files.hpp"
#include "verify/source_tree.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/verify.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zarrbits::verification {

// Bytes for chunks that are compared at the same time.
std::uint64_t work_memory(const verify_options& options);

// How much of a file on a server will be read: all of it, unless the caller has selected objects.
io::access_hint extent_of(const verify_options& options, const source_name& source);

class tree_comparison {
 public:
  // Opens the source. Findings go to `result`. Throws source_error, store_error.
  // `joined`: set if this is one of several files; else null. `pool`: of work_memory() bytes.
  tree_comparison(const verify_options& options, const zarr::store_folder& store, const source_name& name, joined_arrays* joined,
                  bool first, comparison_progress& progress, io::thread_pool& pool, verify_result& result);
  // Compares.
  void run();
  // Call when all is compared. Throws source_error, store_error.
  void finish();

 private:
  struct place {
    haddr_t address;
    std::string path;
    zarr::store_folder folder;
  };
  struct selections {
    text::selection requested, claimed;
  };

  // Walks the target of a link that the store has at the link's place, and that is not an object of the tree above.
  tree_comparison(const tree_comparison& parent, hid_t object, const std::string& path, const zarr::store_folder& folder);
  void begin();
  void pair();
  void pair_group(const place& p, const source_object& group);
  void expect_copy(const place& group, hid_t id, const source_link& link);
  void pair_link(const place& group, const source_link& link, const zarr::store_folder& child);
  void compare_named_type(const place& p);
  void compare_dataset(haddr_t address, const std::string& path, const zarr::store_folder& folder);
  bool is_exported_type(const std::string& path);
  bool is_exported_dimension(const netcdf_dimensions& dimensions, const source_object& group, const source_link& link);
  void compare_dimension(hid_t scale, const node_pair& group, const source_link& link);
  void compare_metadata(hid_t dataset, const std::string& path, const zarr::store_folder& folder);
  void check_metadata(const zarr::store_folder& folder, finding& f) const;
  void add_missing(const source_object& o);
  void add_rest();

  void add(finding&& f) { add_finding(result_, std::move(f)); }
  static std::string store_path(const zarr::store_folder& folder) { return "/" + folder.path(); }

  const verify_options& options_;
  zarr::store_folder store_;
  joined_arrays* joined_ = nullptr;
  bool first_ = true;                                 // the first of several files
  std::shared_ptr<hdf5::external_file_policy> gate_;  // the converter's policy: decides which other files may be read
  std::shared_ptr<const hdf5::opened_source> source_;
  comparison_progress& progress_;
  io::thread_pool& pool_;
  std::optional<source_tree> tree_;
  std::string part_;  // the part of the source that the store says it was made of, if the caller does not say it
  std::shared_ptr<selections> selections_;
  std::optional<link_policy> policy_;  // the policy that the caller gave
  bool in_source_ = true;              // the current object is in the source itself
  std::deque<place> pairs_;
  std::set<std::pair<haddr_t, std::string>> paired_;
  verify_result& result_;
  convention rules_;
  std::optional<stored_dimensions> stored_dimensions_;  // of the whole store, when they are needed
  std::optional<metadata_comparison> metadata_;
  std::optional<link_comparison> links_;
};

}  // namespace zarrbits::verification

#endif
