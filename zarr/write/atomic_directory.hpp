// SPDX-License-Identifier: BSL-1.0
//
// A folder that has a temporary name next to its own until it is complete.
//
//   atomic_directory folder("refs.parquet", unfinished_name("refs.parquet"), options,
//                           {"a folder of references", io::is_zarrbits_references});
//   folder.write("a/refs.0.parq", bytes);
//   folder.finish();            // without it no folder appears, and an old one stays
//
#ifndef ZARRBITS_ZARR_WRITE_ATOMIC_DIRECTORY_HPP
#define ZARRBITS_ZARR_WRITE_ATOMIC_DIRECTORY_HPP

#include "io/files.hpp"
#include "zarr/write/atomic_file.hpp"
#include "zarr/write/store_writer.hpp"

#include <span>
#include <string>

namespace zarrbits::zarr {

class atomic_directory {
 public:
  // Throws zarrbits::error if the folder exists and must not be replaced, or another process writes it.
  atomic_directory(std::string path, std::string temporary, const store_writer_options& options, atomic_file::kind replaceable);
  ~atomic_directory();
  atomic_directory(const atomic_directory&) = delete;
  atomic_directory& operator=(const atomic_directory&) = delete;

  // A file in it, with the folders above. Throws zarrbits::error.
  void write(const std::string& name, std::span<const std::byte> bytes) const;
  // Gives it its name, in one step also where it replaces another. Throws zarrbits::error; then all is as before.
  void finish();
  bool in_place() const { return finished_; }

  // Removes the folder that a killed run left next to the target, which is back if it was missing. True if there was one, and no
  // process writes to it.
  static bool remove_unfinished(const std::string& path, const std::string& temporary);

 private:
  void check_target(const store_writer_options& options) const;
  void open_temporary();
  void sync_all() const;

  std::string path_, temporary_;
  atomic_file::kind replaceable_;
  io::file_descriptor fd_;  // has the lock
  bool sync_ = false, replaces_ = false, finished_ = false;
};

}  // namespace zarrbits::zarr

#endif
