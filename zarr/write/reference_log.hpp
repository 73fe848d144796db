// SPDX-License-Identifier: BSL-1.0
//
// What one process adds to references that several make: which ranges of which files, and the bytes that no source has, unit by
// unit. A file of its own for each process.
//
//   reference_log_writer log;
//   log.range("a/c/0", "file:///a.h5", state, 4096, 1000);
//   log.bytes("a/c/1", bytes);
//   log.end({0, 3});                     // all since the last end belongs to this unit
//   append(log.take());
//
//   const reference_log stored(std::move(fd));
//   stored.units().at({0, 3})[1].key;     // "a/c/1"
//
#ifndef ZARRBITS_ZARR_WRITE_REFERENCE_LOG_HPP
#define ZARRBITS_ZARR_WRITE_REFERENCE_LOG_HPP

#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

class reference_log_writer {
 public:
  void range(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset, std::uint64_t size);
  void bytes(std::string_view key, std::span<const std::byte> content);
  void end(const unit_key& unit);
  // The bytes that are not written yet, and their number.
  std::string take();
  std::size_t pending_bytes() const noexcept { return text_.size(); }

 private:
  void add_to_sum();

  std::string text_;
  bool begun_ = false;
  std::uint32_t sum_ = 0;  // of the unit, up to `summed_` in `text_`
  std::size_t summed_ = 0;
  std::map<std::string, std::uint64_t> files_;
};

class reference_log {
 public:
  struct call {
    std::string key;
    std::optional<std::size_t> file;  // of files(); not set: bytes in the log itself
    std::uint64_t offset, size;
  };

  // The log is untrusted, and a disk may have damaged it: it counts up to the first thing that does not belong there, as
  // if the process had been killed then. A unit counts if it is whole.
  explicit reference_log(io::file_descriptor fd);

  const std::map<unit_key, std::vector<call>>& units() const { return units_; }
  // Those of a unit, which are then no longer here: there may be millions.
  std::vector<call> take(const unit_key& unit) { return std::exchange(units_.at(unit), {}); }
  const std::vector<io::referenced_file>& files() const { return files_; }
  std::vector<std::byte> bytes(const call& of) const;  // throws read_error

 private:
  io::file_descriptor fd_;
  std::vector<io::referenced_file> files_;
  std::map<unit_key, std::vector<call>> units_;
};

}  // namespace zarrbits::zarr

#endif
