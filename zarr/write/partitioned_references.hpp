// SPDX-License-Identifier: BSL-1.0
//
// References that several processes make: each writes a log of its share into a folder beside them, with the plan and the journal
// of an unfinished store. When all units are made, one process does what the logs say, in the order in which one process makes
// them, and so makes the same files.
//
#ifndef ZARRBITS_ZARR_WRITE_PARTITIONED_REFERENCES_HPP
#define ZARRBITS_ZARR_WRITE_PARTITIONED_REFERENCES_HPP

#include "io/told_names.hpp"
#include "zarr/write/directory_sink.hpp"
#include "zarr/write/reference_log.hpp"
#include "zarr/write/reference_sink.hpp"
#include "zarr/write/sink.hpp"

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

class partitioned_references final : public sink {
 public:
  // For existing::join and finish.
  partitioned_references(const std::string& path, const sink_options& options);

  using sink::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  bool refers() const override { return true; }
  void refer(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
             std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override { return gathered_object(*this, key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& found) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void unit_made(const unit_key& unit) override;
  void units_done(const std::vector<unit_key>& units, const sink_options& options) override;
  void finish() override;
  bool found_unfinished() const override { return work_.found_unfinished(); }
  bool any_order() const override { return false; }
  std::uint64_t objects() const noexcept override { return all_ ? all_->objects() : sink::objects(); }
  std::uint64_t bytes() const noexcept override { return all_ ? all_->bytes() : sink::bytes(); }
  std::uint64_t referred_objects() const noexcept override { return all_ ? all_->referred_objects() : referred_objects_.load(); }
  std::uint64_t referred_bytes() const noexcept override { return all_ ? all_->referred_bytes() : referred_bytes_.load(); }

  // What killed runs left, or a complete store has no need of. False if a process writes to it.
  static bool remove_work(const std::string& path) noexcept;

 private:
  void add(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset, std::uint64_t size);
  void flush();
  void read_logs();
  void list_calls();

  std::string path_;
  io::told_names names_;
  directory_sink work_;
  std::unique_ptr<reference_sink> all_;  // from units_done() on
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::pair<std::string, io::file_state>> known_;
  reference_log_writer own_;
  const std::string own_key_;
  std::deque<reference_log> logs_;  // of all processes
  bool are_read_ = false;           // all that is in them
  std::map<unit_key, reference_log*> log_of_;
  std::vector<std::pair<std::string_view, std::uint64_t>> sizes_;  // of all keys
  std::atomic<std::uint64_t> referred_objects_ = 0, referred_bytes_ = 0;
};

}  // namespace zarrbits::zarr

#endif
