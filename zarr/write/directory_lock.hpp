// SPDX-License-Identifier: BSL-1.0
//
// The folder that becomes a store: decides what may be done with existing content, and ensures that only one process writes to
// it, or several that share a plan.
//
#ifndef ZARRBITS_ZARR_WRITE_DIRECTORY_LOCK_HPP
#define ZARRBITS_ZARR_WRITE_DIRECTORY_LOCK_HPP

#include "io/files.hpp"
#include "zarr/write/store_writer.hpp"

#include <string>
#include <string_view>

namespace zarrbits::zarr {

// Name of a file in work: no chunk key and no node has such a name.
inline constexpr std::string_view temporary_prefix = ".zarrbits-", temporary_suffix = ".tmp";
inline bool is_temporary(std::string_view name) { return name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix); }

// Holds the lock of the folder (.zarrbits-unfinished/lock); the kernel releases it if the process is killed. If the file system
// has no locks, only a new folder of the unfinished keeps runs apart.
class directory_lock {
 public:
  // Creates the folder, or removes or resumes the existing content, as far as allowed. Throws zarrbits::error.
  directory_lock(const std::string& path, const store_writer_options& options);

  int root() const { return root_.get(); }
  bool created_root() const { return created_root_; }
  // True if it has content of an earlier run, or of another process.
  bool found_unfinished() const { return found_unfinished_; }

  // Removes everything after a failure, the metadata first. What cannot be removed stays, marked as unfinished.
  void discard() noexcept;
  // The store is complete, whatever happens from here on: removes the plan, without which a store with metadata is none that is
  // unfinished. Throws zarrbits::error.
  void mark_complete();
  // Removes the marks of an unfinished store that is complete. Throws zarrbits::error.
  void finish();

  // Removes what a killed run left (options.run, or any run). True if there was something, and no other process writes to it.
  static bool remove_unfinished(const std::string& path, const store_writer_options& options);
  // Removes the mark of a complete store, whose writer was killed as it ended, if no process holds its lock.
  static void remove_stale_lock(const std::string& path) noexcept;

 private:
  struct content;
  explicit directory_lock(const std::string& path);
  bool open_mark();
  bool check_content(const store_writer_options& options, bool locked);
  void replace(const store_writer_options& options);
  void rollback() noexcept;
  void remove_mark();

  std::string path_;
  io::file_descriptor root_, mark_, lock_;
  bool created_root_ = false, created_mark_ = false, found_unfinished_ = false;
};

// Removes everything in the folder except the converter's own files: every zarr.json first, outermost before the others. Symbolic
// links are removed, not followed.
void remove_content(const std::string& root);

}  // namespace zarrbits::zarr

#endif
