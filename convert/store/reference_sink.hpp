// SPDX-License-Identifier: BSL-1.0
//
// A store of references, in kerchunk's JSON format (version 1): bytes that lie in a source as the store has them are named by
// file, offset and size, and not copied. Small objects are in the JSON itself, larger ones in one file beside it.
//
#ifndef ZARRBITS_CONVERT_STORE_REFERENCE_SINK_HPP
#define ZARRBITS_CONVERT_STORE_REFERENCE_SINK_HPP

#include "convert/store/file_target.hpp"
#include "convert/store/sink.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

// The list is sorted, and no time of the run is in it; but the order of put() shows in the file beside it.
class reference_sink final : public sink {
 public:
  // Objects of at most `inline_bytes` are in the JSON, and all metadata.
  reference_sink(const std::string& path, std::uint64_t inline_bytes, const sink_options& options);

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
  bool keeps_unfinished() const override { return false; }
  bool any_order() const override { return false; }

  static bool remove_unfinished(const std::string& target);

 private:
  class writer;
  static constexpr std::size_t in_text = static_cast<std::size_t>(-1), beside = static_cast<std::size_t>(-2);
  struct reference {
    std::size_t file = in_text;  // of files_
    std::uint64_t offset = 0, size = 0;
    std::string text = {};  // the content itself
  };
  struct source {
    std::string name;
    std::uint64_t size = 0;
    std::int64_t modified = 0;  // nanoseconds since 1970
  };
  void add(std::string_view key, reference made);
  std::size_t number_of(int fd);
  file_target& data();
  std::string url_of(std::size_t file) const;

  std::uint64_t inline_bytes_;
  sink_options options_;
  file_target file_;
  std::mutex mutex_;
  std::unique_ptr<file_target> data_;
  std::uint64_t data_end_ = 0;
  std::vector<source> files_;
  std::map<std::pair<dev_t, ino_t>, std::size_t> known_;
  std::deque<std::pair<std::string, reference>> all_;     // as they were put; of two with the same key the later one counts
  std::map<std::string, std::string, std::less<>> kept_;  // the journal, which nobody reads after this run
};

// The file beside it that has what is neither in a source nor in the JSON.
std::string data_beside(const std::string& references);

}  // namespace zarrbits::conversion

#endif
