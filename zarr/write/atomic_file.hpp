// SPDX-License-Identifier: BSL-1.0
//
// A file that has a temporary name until it is complete: a store in one file, or a part of a store.
//
//   atomic_file file("out.zip", unfinished_name("out.zip"), options, {"a .zip file of a Zarr v3 store", is_zip_store});
//   file.write_at(0, bytes);
//   file.finish();              // without it no file appears
//
#ifndef ZARRBITS_ZARR_WRITE_ATOMIC_FILE_HPP
#define ZARRBITS_ZARR_WRITE_ATOMIC_FILE_HPP

#include "io/files.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace zarrbits::zarr {

// Opens and locks what a killed run left under a temporary name, so that no other process writes to it. Empty if there is
// nothing; throws zarrbits::error if another process writes to it, or zarrbits did not make it.
enum class leftover_kind { file, folder };
io::file_descriptor lock_leftover(const std::string& temporary, const std::string& target, leftover_kind kind);

// The file or folder that a store in one file, such as "x.zip", is written to until it is complete.
std::string unfinished_name(const std::string& store);

class atomic_file {
 public:
  // What may be replaced: a description, and a test of a file.
  struct kind {
    std::string description;
    std::function<bool(const std::string& path)> matches;
  };
  // Throws zarrbits::error if the file exists and must not be replaced, or another process writes it.
  atomic_file(std::string path, std::string temporary, const store_writer_options& options, kind replaceable);
  ~atomic_file();
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  int descriptor() const { return fd_.get(); }
  bool replaces() const { return replaces_; }
  // Callable from any thread. Throws zarrbits::error.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Gives the file its final name. Throws zarrbits::error; the file is then gone, unless it has replaced another.
  void finish();
  bool in_place() const { return finished_; }

  // Removes the file that a killed run left beside the target. True if there was one, and no process writes to it.
  static bool remove_unfinished(const std::string& path, const std::string& temporary);

 private:
  void check_target(const store_writer_options& options) const;
  void open_temporary();
  void rename_to_target();

  std::string path_, temporary_;
  kind replaceable_;
  io::file_descriptor fd_;
  bool sync_ = false, replaces_ = false, finished_ = false;
};

}  // namespace zarrbits::zarr

#endif
