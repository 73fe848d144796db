// SPDX-License-Identifier: BSL-1.0
//
// A store of references, in kerchunk's formats: bytes that a source has exactly as the store needs them are named by file, offset
// and size, and not copied. Small objects are among the references, larger ones in a file next to them.
//
#ifndef ZARRBITS_ZARR_WRITE_REFERENCE_STORE_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_REFERENCE_STORE_WRITER_HPP

#include "io/reference_table.hpp"
#include "io/reference_v2.hpp"
#include "io/source_url_map.hpp"
#include "zarr/write/atomic_file.hpp"
#include "zarr/write/key_index.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/store_writer.hpp"

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

namespace zarrbits::zarr {

// The URL of a file that a source has open: libhdf5 and the tables of joined files identify them only by numbers. Throws
// zarrbits::error if it has no name that references can use.
std::string url_of_open_file(int fd);

// Deterministic: the same calls in the same order produce the same files.
class reference_store_writer final : public store_writer {
 public:
  // Objects of at most `inline_bytes` are among the references, and all metadata. With if_exists::append it begins with the
  // existing references, which stay until finish().
  reference_store_writer(const std::string& path, std::uint64_t inline_bytes, const store_writer_options& options);

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override;
  bool supports_references() const override { return true; }
  // Also to local files, "file:///a/b.h5", which must be as they were.
  void put_reference(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                     std::uint64_t size) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override { return buffered_object(*this, key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override { return members_.list(folder); }
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) override {
    members_.for_each(folder, callback);
  }
  void append(std::string_view key, std::string_view text) override { members_.append_journal(key, text); }
  void remove(std::string_view folder) override { members_.remove(folder); }
  void remove_old(const std::vector<std::string>& keys) override {
    members_.remove_among_first(initial_size_, {keys.begin(), keys.end()});
  }
  void finish() override;
  std::uint64_t referenced_objects() const noexcept override { return referenced_objects_; }
  std::uint64_t referenced_bytes() const noexcept override { return referenced_bytes_; }
  bool can_resume() const override { return false; }
  bool is_order_independent() const override { return false; }

  static bool remove_unfinished(const std::string& target);

 private:
  static constexpr std::size_t in_text = static_cast<std::size_t>(-1);
  struct member {
    std::size_t file = in_text;  // of files_
    std::uint64_t offset = 0;    // in the file; of a text: which one of texts_
    std::uint64_t size = 0;
  };
  void load_existing();
  void add(std::string_view key, const member& entry);
  void add_text(std::string_view key, std::string text);
  bool is_temporary(int fd) const;
  bool has_room(std::uint64_t size);
  std::size_t number_of(int fd);
  std::size_t number_of(const std::string& url, const io::file_state& state);
  std::size_t number_of_local(const struct stat& info, const std::string& url);
  void open_data();
  void remove_orphans() const;
  std::vector<io::referenced_file> published_files() const;
  std::map<std::string, text::json> v2_documents(io::v2_references& v2, io::zarr_formats& formats);

  std::string path_;
  std::uint64_t inline_bytes_;
  store_writer_options options_;
  io::source_url_map names_;
  std::unique_ptr<reference_writer> writer_;
  std::mutex mutex_;
  std::unique_ptr<atomic_file> data_;
  std::size_t data_file_ = in_text;  // of files_
  std::uint64_t data_end_ = 0;
  std::vector<io::referenced_file> files_;
  std::map<std::pair<dev_t, ino_t>, std::size_t> file_by_inode_;
  std::map<std::string, std::size_t> file_by_url_;
  std::deque<std::string> texts_;
  std::uint64_t inlined_ = 0;  // bytes of texts_
  key_index<member> members_;
  std::size_t initial_size_ = 0;  // members that were there
  std::uint64_t referenced_objects_ = 0, referenced_bytes_ = 0;
};

}  // namespace zarrbits::zarr

#endif
