// SPDX-License-Identifier: BSL-1.0
//
// A store in a directory: one file per object. Each appears complete, by a rename, or not at all; except the chunks of a store
// that only this process writes. No reader finds these before their zarr.json, and a later run trusts only those in the journal.
//
#ifndef ZARRBITS_ZARR_WRITE_DIRECTORY_SINK_HPP
#define ZARRBITS_ZARR_WRITE_DIRECTORY_SINK_HPP

#include "zarr/write/directory_target.hpp"
#include "zarr/write/sink.hpp"

#include <mutex>
#include <set>
#include <string>

namespace zarrbits::zarr {

// Several processes, on several machines, may write to one directory together.
class directory_sink final : public sink {
 public:
  directory_sink(std::string path, const sink_options& options);
  ~directory_sink() override;

  using sink::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override;
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& found) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void finish() override;
  void keep() override { kept_ = true; }
  bool tells_case_apart() const override { return tells_case_apart_; }
  bool found_unfinished() const override { return target_.found_unfinished(); }

  static bool remove_unfinished(const std::string& path, const sink_options& options);
  static void tidy_whole(const std::string& path) noexcept;

 private:
  class new_file;
  class writer;

  // The place of a key. In a store that only this process writes, it is a path. Otherwise it is a name in a folder that was
  // opened without following symbolic links, which another process may have put there.
  struct place {
    io::file_descriptor folder;
    int at;
    std::string name;
  };
  enum class missing { stays, is_made };
  place place_of(std::string_view key, missing folders) const;
  io::file_descriptor folder_of(std::string_view key, missing folders) const;
  std::string path_of(std::string_view key) const { return root_ + "/" + std::string(key); }
  void make_folders(const std::string& path);
  void remember(const std::string& folder);  // folders with entries that are not on disk yet
  void sync_folders();

  std::string root_;
  directory_target target_;
  bool sync_ = false;
  bool joined_ = false;    // kept without finish()
  bool is_alone_ = false;  // no other process writes, or has written, to this store
  bool finished_ = false, kept_ = false, root_written_ = false;
  bool tells_case_apart_ = true;
  const std::string token_;
  std::atomic<std::uint64_t> next_temporary_ = 0;
  std::mutex mutex_, append_mutex_;
  std::set<std::string> unsynced_;
  std::set<std::string> appended_;  // by this process
};

}  // namespace zarrbits::zarr

#endif
