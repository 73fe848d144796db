// SPDX-License-Identifier: BSL-1.0
//
// A folder that has a temporary name next to its own until it is complete.
//
//   folder_target folder("refs.parquet", unfinished_name("refs.parquet"), options, {"a folder of references",
//   are_own_references}); folder.write("a/refs.0.parq", bytes); folder.finish();  // without it there is none, or the old one
//
#ifndef ZARRBITS_ZARR_WRITE_FOLDER_TARGET_HPP
#define ZARRBITS_ZARR_WRITE_FOLDER_TARGET_HPP

#include "io/files.hpp"
#include "zarr/write/file_target.hpp"
#include "zarr/write/sink.hpp"

#include <span>
#include <string>

namespace zarrbits::zarr {

class folder_target {
 public:
  // Throws zarrbits::error where the folder is there and is not to be replaced, or another process writes it.
  folder_target(std::string path, std::string temporary, const sink_options& options, file_target::kind replaceable);
  ~folder_target();
  folder_target(const folder_target&) = delete;
  folder_target& operator=(const folder_target&) = delete;

  // A file in it, with the folders above. Throws zarrbits::error.
  void write(const std::string& name, std::span<const std::byte> bytes) const;
  // Gives it its name, in one step also where it replaces another. Throws zarrbits::error; then all is as before.
  void finish();
  bool in_place() const { return finished_; }

  // The folder that a killed run left next to the target. True if there was one, and no process writes to it.
  static bool remove_unfinished(const std::string& path, const std::string& temporary);

 private:
  void check_target(const sink_options& options) const;
  void open_temporary();
  void sync_all() const;

  std::string path_, temporary_;
  file_target::kind replaceable_;
  io::file_descriptor fd_;  // has the lock
  bool sync_ = false, replaces_ = false, finished_ = false;
};

}  // namespace zarrbits::zarr

#endif
