// SPDX-License-Identifier: BSL-1.0
//
// A store in a directory: one file per object. Each appears complete, by a rename, or not at all; except the chunks of a store
// that only this process writes. No reader finds these before their zarr.json, and a later run trusts only those in the journal.
//
#ifndef ZARRBITS_ZARR_WRITE_DIRECTORY_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_DIRECTORY_WRITER_HPP

#include "zarr/write/directory_lock.hpp"
#include "zarr/write/store_writer.hpp"

#include <mutex>
#include <set>
#include <string>

namespace zarrbits::zarr {

// Several processes, on several machines, may write to one directory together.
class directory_writer final : public store_writer {
 public:
  directory_writer(std::string path, const store_writer_options& options);
  ~directory_writer() override;

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override;
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void finish() override;
  // Instead of finish(): removes all that was written. What cannot be removed is still an unfinished store.
  void discard() noexcept;
  void keep_unfinished() override { keep_unfinished_ = true; }
  bool is_case_sensitive() const override { return is_case_sensitive_; }
  bool found_unfinished() const override { return lock_.found_unfinished(); }

  static bool remove_unfinished(const std::string& path, const store_writer_options& options);
  static void remove_stale_lock(const std::string& path) noexcept;

 private:
  class new_file;
  class writer;

  // The location of a key. In a store that only this process writes, it is a path. Otherwise it is a name in a folder that was
  // opened without following symbolic links, which another process may have put there.
  struct file_location {
    io::file_descriptor folder;
    int folder_fd;
    std::string name;
  };
  enum class if_missing { ignore, create };
  file_location locate(std::string_view key, if_missing folders) const;
  io::file_descriptor folder_of(std::string_view key, if_missing folders) const;
  std::string path_of(std::string_view key) const { return root_ + "/" + std::string(key); }
  void remove_root() const noexcept;
  void make_folders(const std::string& path);
  void mark_unsynced(const std::string& folder);  // folders with entries that are not on disk yet
  void sync_folders();

  std::string root_;
  directory_lock lock_;
  bool sync_ = false;
  bool joined_ = false;    // kept without finish()
  bool is_alone_ = false;  // no other process writes, or has written, to this store
  bool finished_ = false, keep_unfinished_ = false, root_written_ = false;
  bool is_case_sensitive_ = true;
  const std::string token_;
  std::atomic<std::uint64_t> next_temporary_ = 0;
  std::mutex mutex_, append_mutex_;
  std::set<std::string> unsynced_;
  std::set<std::string> appended_;  // by this process
};

}  // namespace zarrbits::zarr

#endif
