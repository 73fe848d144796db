// SPDX-License-Identifier: BSL-1.0
//
// A store in one .zip file: its members are stored, not compressed again, so that a reader can map them; zip64 if needed.
//
#ifndef ZARRBITS_ZARR_WRITE_ZIP_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_ZIP_WRITER_HPP

#include "zarr/write/atomic_file.hpp"
#include "zarr/write/key_index.hpp"
#include "zarr/write/store_writer.hpp"
#include "zarr/write/zip_records.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace zarrbits::zarr {

// The file is next to the target until finish() gives it its name. The central directory is sorted, and has no times: the same
// calls in the same order make the same file. What put() replaces and remove() removes stays in the file, but is not a member.
class zip_writer final : public store_writer {
 public:
  zip_writer(const std::string& path, const store_writer_options& options);

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override;
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override { return members_.list(folder); }
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) override {
    members_.for_each(folder, callback);
  }
  void append(std::string_view key, std::string_view text) override { members_.append_journal(key, text); }
  void remove(std::string_view folder) override { members_.remove(folder); }
  void finish() override;
  bool can_resume() const override { return false; }
  bool is_order_independent() const override { return false; }

  // Removes the file that a killed run left beside the target. True if there was one, and no process writes to it.
  static bool remove_unfinished(const std::string& target);

 private:
  class writer;
  // Reserves room at the end of the file for a header and the content. Returns the offset of the content.
  std::uint64_t reserve(std::string_view key, std::uint64_t size);
  // Writes the header, which makes it a member.
  void complete(std::string_view key, const zip_member& m);

  atomic_file file_;
  std::mutex mutex_;
  std::uint64_t end_ = 0;
  key_index<zip_member> members_;
};

}  // namespace zarrbits::zarr

#endif
