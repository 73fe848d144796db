// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/zip_writer.hpp"

#include "io/zip_archive.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

namespace {

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t initial = 0) {
  return libdeflate_crc32(initial, bytes.data(), bytes.size());
}

bool is_zip_store(const std::string& path) {
  constexpr std::uint64_t largest_node = 64U << 20;
  try {
    if (!io::is_zip_file(path)) return false;
    const io::zip_archive zip(path);
    return metadata::is_store_root([&](const char* key) {
      const auto root = zip.find(key);
      if (!root || root->size > largest_node) return std::string();
      std::string text(static_cast<std::size_t>(root->size), '\0');
      zip.read(*root, 0, std::as_writable_bytes(std::span(text)));
      return text;
    });
  } catch (const std::exception&) {  // any other archive
    return false;
  }
}

}  // namespace

zip_writer::zip_writer(const std::string& path, const store_writer_options& options)
    : file_(path, unfinished_name(path), options, {"a .zip file of a Zarr store", is_zip_store}) {}

bool zip_writer::remove_unfinished(const std::string& target) {
  return atomic_file::remove_unfinished(target, unfinished_name(target));
}

std::uint64_t zip_writer::reserve(std::string_view key, std::uint64_t size) {
  check_key(key);
  if (key.size() > 0xFFFF)
    throw zarrbits::error(errc::unsupported, "the key \"" + std::string(key.substr(0, 100)) +
                                                 "...\" is too long for a .zip file; choose a directory");
  const std::uint64_t header = zip_header_size(key, size);
  const std::lock_guard lock(mutex_);
  const std::uint64_t offset = end_ + header;
  end_ = offset + size;
  return offset;
}

void zip_writer::complete(std::string_view key, const zip_member& m) {
  const zip_record header = zip_header(key, m);
  file_.write_at(m.offset - header.bytes().size(), header.bytes());
  members_.add(key, m);
  count(key, m.size);
}

void zip_writer::put(std::string_view key, std::span<const std::byte> bytes) {
  if (in_unfinished_folder(key)) return members_.put_journal(key, bytes);
  const zip_member m{.offset = reserve(key, bytes.size()), .size = bytes.size(), .crc = crc_of(bytes)};
  file_.write_at(m.offset, bytes);
  complete(key, m);
}

void zip_writer::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  io::require_range(fd, offset, size);
  zip_member m{.offset = reserve(key, size), .size = size};
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 20)));
  for (std::uint64_t copied = 0; copied < size;) {
    const auto piece = std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - copied)));
    io::read_range(fd, offset + copied, piece);
    m.crc = crc_of(piece, m.crc);
    file_.write_at(m.offset + copied, piece);
    copied += piece.size();
  }
  complete(key, m);
}

// Header and checksum come before the content, and other threads write in the meantime: an object written piece by piece waits in
// memory, or in a file if it becomes large.
class zip_writer::writer final : public object_writer {
 public:
  writer(zip_writer& sink, std::string_view key) : store_(sink), key_(key) {}
  void append(std::span<const std::byte> bytes) override {
    member_.crc = crc_of(bytes, member_.crc);
    member_.size += bytes.size();
    if (!file_ && waiting_.size() + bytes.size() <= capacity) {
      waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
      return;
    }
    if (!file_) open();
    check(io::write_all(file_.get(), bytes));
  }
  void commit() override {
    member_.offset = store_.reserve(key_, member_.size);
    if (!file_) {
      store_.file_.write_at(member_.offset, waiting_);
    } else {
      waiting_.resize(capacity);
      for (std::uint64_t copied = 0; copied < member_.size;) {
        const auto piece =
            std::span(waiting_).first(static_cast<std::size_t>(std::min<std::uint64_t>(capacity, member_.size - copied)));
        io::read_range(file_.get(), copied, piece);
        store_.file_.write_at(member_.offset + copied, piece);
        copied += piece.size();
      }
    }
    store_.complete(key_, member_);
  }

 private:
  static constexpr std::size_t capacity = 8 << 20;
  void check(int error) const {
    if (error) io::throw_errno("cannot write", store_.file_.path(), error);
  }
  void open() {
    std::string name = store_.file_.temporary() + "-XXXXXX";
    file_ = io::file_descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (!file_) check(errno);
    ::unlink(name.c_str());
    check(io::write_all(file_.get(), waiting_));
    waiting_.clear();
  }
  zip_writer& store_;
  std::string key_;
  zip_member member_;
  std::vector<std::byte> waiting_;
  io::file_descriptor file_;
};

std::unique_ptr<object_writer> zip_writer::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

bool zip_writer::put_new(std::string_view key, std::span<const std::byte> bytes) {
  if (get(key)) return false;  // no other process writes to it
  put(key, bytes);
  return true;
}

std::optional<std::vector<std::byte>> zip_writer::get(std::string_view key) {
  if (auto journal_object = members_.get_journal(key)) return journal_object;
  const auto m = members_.find(key);
  if (!m) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(m->size));
  try {
    io::read_range(file_.descriptor(), m->offset, bytes);
  } catch (const io::read_error& e) {
    throw zarrbits::error(errc::io_failed,
                          "cannot read \"" + std::string(key) + "\" in \"" + file_.temporary() + "\": " + e.what());
  }
  return bytes;
}

void zip_writer::finish() {
  const std::uint64_t directory = end_;
  std::uint64_t offset = end_;
  zip_record list;
  const auto flush = [&] {
    file_.write_at(offset, list.bytes());
    offset += list.bytes().size();
    list = {};
  };
  std::uint64_t n = 0;
  members_.for_each_sorted([&](const std::string& key, const zip_member& m) {
    ++n;
    add_to_directory(list, key, m);
    if (list.bytes().size() > (1U << 20)) flush();
  });
  flush();
  add_end(list, n, directory, offset);
  flush();
  file_.finish();
}

}  // namespace zarrbits::zarr
