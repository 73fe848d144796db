// SPDX-License-Identifier: BSL-1.0
//
// References that several processes make: each writes a log of its share into a folder beside them, with the plan and the journal
// of an unfinished store. When all units are made, one process does what the logs say, in the order in which one process makes
// them, and so makes the same files.
//
#ifndef ZARRBITS_ZARR_WRITE_PARTITIONED_REFERENCES_HPP
#define ZARRBITS_ZARR_WRITE_PARTITIONED_REFERENCES_HPP

#include "io/source_url_map.hpp"
#include "zarr/write/directory_writer.hpp"
#include "zarr/write/reference_log.hpp"
#include "zarr/write/reference_store_writer.hpp"
#include "zarr/write/store_writer.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

class partitioned_references final : public store_writer {
 public:
  // For if_exists::attach and finalize.
  partitioned_references(const std::string& path, const store_writer_options& options);

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  bool supports_references() const override { return true; }
  void put_reference(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                     std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override { return buffered_object(*this, key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void end_unit(const unit_key& unit) override;
  void end_units(const std::vector<unit_key>& units, const store_writer_options& options) override;
  void finish() override;
  bool found_unfinished() const override { return work_.found_unfinished(); }
  bool is_order_independent() const override { return false; }
  std::uint64_t objects() const noexcept override { return references_ ? references_->objects() : store_writer::objects(); }
  std::uint64_t bytes() const noexcept override { return references_ ? references_->bytes() : store_writer::bytes(); }
  std::uint64_t referenced_objects() const noexcept override {
    return references_ ? references_->referenced_objects() : referenced_objects_.load();
  }
  std::uint64_t referenced_bytes() const noexcept override {
    return references_ ? references_->referenced_bytes() : referenced_bytes_.load();
  }

  // What killed runs left, or a complete store has no need of. False if a process writes to it.
  static bool remove_work(const std::string& path) noexcept;

 private:
  void add(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset, std::uint64_t size);
  void flush();
  void read_logs();
  void list_calls();

  std::string path_;
  io::source_url_map names_;
  directory_writer work_;
  std::unique_ptr<reference_store_writer> references_;  // from end_units() on
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::pair<std::string, io::file_state>> files_;
  reference_log_writer own_log_;
  const std::string own_key_;
  std::deque<reference_log> logs_;  // of all processes
  bool are_read_ = false;           // all that is in them
  std::map<unit_key, reference_log*> log_of_;
  std::vector<std::pair<std::string_view, std::uint64_t>> sizes_;  // of all keys
  std::atomic<std::uint64_t> referenced_objects_ = 0, referenced_bytes_ = 0;
};

}  // namespace zarrbits::zarr

#endif
