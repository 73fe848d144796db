// SPDX-License-Identifier: BSL-1.0
#include "append/staged_append.hpp"

#include "io/files.hpp"
#include "text/reserved_names.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/error.hpp>

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::append {

namespace {

namespace fs = std::filesystem;
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

io::file_descriptor open_folder(int parent, const std::string& name) {
  return io::file_descriptor(::openat(parent, name.c_str(), folder_flags));
}

// The folder of a key, reached without a symbolic link; an invalid descriptor if there is no such folder.
io::file_descriptor folder_of(int root, std::string_view key, bool make) {
  io::file_descriptor folder(::openat(root, ".", folder_flags));
  for (std::size_t end = key.find('/'); folder && end != std::string_view::npos; end = key.find('/')) {
    const std::string name(key.substr(0, end));
    key.remove_prefix(end + 1);
    if (make && ::mkdirat(folder.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return {};
    folder = open_folder(folder.get(), name);
  }
  return folder;
}

std::string leaf(const std::string& key) { return key.substr(key.rfind('/') + 1); }

std::string text_at(int root, const std::string& key, const std::string& display_name) {
  const io::file_descriptor folder = folder_of(root, key, false);
  if (!folder) return "";
  const auto bytes = io::read_regular_file(folder.get(), leaf(key), display_name);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

// Where the new files are moving to their places.
constexpr const char* resume_hint =
    "find out why, and run it again: it continues where this run stopped, and until then arrays may differ in length";

void to_disk_now(int fd, const std::string& display_name, const char* remedy = "check the disk") {
  if (::fsync(fd) != 0 && errno != EINVAL) io::throw_errno("cannot flush to the disk", display_name, errno, remedy);
}

// Moves every file except a node's metadata from one folder into another.
void move_chunks(int from, int to, const std::string& display_name, bool to_disk) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(::dup(from)), ::closedir);
  if (!list) io::throw_errno("cannot list", display_name, errno, resume_hint);
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(list.get()); errno = 0) names.emplace_back(entry->d_name);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || name == "zarr.json") continue;
    struct stat info {};
    if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      io::throw_errno("cannot read", display_name + "/" + name, errno, resume_hint);
    if (S_ISDIR(info.st_mode)) {
      if (::mkdirat(to, name.c_str(), 0777) != 0 && errno != EEXIST)
        io::throw_errno("cannot create the folder", display_name + "/" + name, errno, resume_hint);
      const io::file_descriptor inner_from = open_folder(from, name), inner_to = open_folder(to, name);
      if (!inner_from || !inner_to)
        io::throw_errno("cannot open the folder", display_name + "/" + name, errno, "it must not be a link");
      move_chunks(inner_from.get(), inner_to.get(), display_name + "/" + name, to_disk);
    } else if (S_ISREG(info.st_mode)) {
      if (::renameat(from, name.c_str(), to, name.c_str()) != 0)
        io::throw_errno("cannot write", display_name + "/" + name, errno, resume_hint);
    }
  }
  if (to_disk) to_disk_now(to, display_name, resume_hint);
}

class directory_append final : public staged_append {
 public:
  directory_append(std::string store, bool sync);
  ~directory_append() override;

  std::string folder() const override { return append_path() + "/" + staged_store; }
  bool is_complete() const override;
  void remove_from_store(const std::vector<std::string>& keys) override;
  void discard() override;

 private:
  std::string append_path() const { return store() + "/" + text::append_folder; }
  bool is_staged(const std::string& key) const;
  std::string store_text(const std::string& key) override { return text_at(root_.get(), key, store() + "/" + key); }
  std::string staged_text(const std::string& key) override {
    return text_at(append_folder_.get(), std::string(staged_store) + "/" + key, folder() + "/" + key);
  }
  std::string list() override { return text_at(append_folder_.get(), declared_list, append_path() + "/" + declared_list); }
  void put_list(const std::string& text, std::uint64_t chunk_bytes) override;
  void remove_list() override;
  void move_chunks() override;
  void move_metadata(const replaced_metadata& metadata) override;

  const bool sync_;
  io::file_descriptor root_, append_folder_, lock_;
};

directory_append::directory_append(std::string path, bool to_disk) : staged_append(std::move(path)), sync_(to_disk) {
  root_ = io::file_descriptor(::open(store().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  const auto exists = [&](const char* key) { return root_ && ::fstatat(root_.get(), key, &info, 0) == 0; };
  if (!exists("zarr.json")) refuse_store(exists(".zgroup") || exists(".zarray"));
  for (int tries = 0; !lock_; ++tries) {
    if (tries == 100) io::throw_errno("cannot write to the store", store(), errno);
    if (::mkdirat(root_.get(), text::append_folder, 0777) != 0 && errno != EEXIST)
      io::throw_errno("cannot write to the store", store(), errno);
    append_folder_ = open_folder(root_.get(), text::append_folder);
    if (!append_folder_ && errno != ENOENT) io::throw_errno("cannot use the folder", append_path(), errno, "remove it");
    if (!append_folder_) continue;
    lock_ = io::file_descriptor(::openat(append_folder_.get(), text::lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!lock_) continue;
    const io::lock_state state = io::take_lock(lock_.get(), append_folder_.get(), text::lock_name, false);
    if (state == io::lock_state::contended)
      throw zarrbits::error(errc::busy, "another process is appending to \"" + store() + "\"; wait until it ends, then append",
                            {store()});
    if (state == io::lock_state::removed) lock_ = io::file_descriptor();
  }
}

directory_append::~directory_append() {
  if (is_complete()) return;
  try {
    discard();
    ::unlinkat(append_folder_.get(), text::lock_name, 0);
    ::unlinkat(root_.get(), text::append_folder, AT_REMOVEDIR);
  } catch (...) {  // the next run tries again
  }
}

bool directory_append::is_complete() const {
  struct stat info {};
  return ::fstatat(append_folder_.get(), declared_list, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

bool directory_append::is_staged(const std::string& key) const {
  struct stat info {};
  return ::fstatat(append_folder_.get(), (std::string(staged_store) + "/" + key).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

void directory_append::remove_from_store(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const io::file_descriptor parent = is_staged(key) ? io::file_descriptor() : folder_of(root_.get(), key, false);
    if (!parent) continue;
    if (::unlinkat(parent.get(), leaf(key).c_str(), 0) != 0 && errno != ENOENT)
      io::throw_errno("cannot remove", store() + "/" + key, errno);
  }
}

void directory_append::put_list(const std::string& text, std::uint64_t) {
  const std::string temporary = std::string(declared_list) + ".tmp";
  io::file_descriptor fd(
      ::openat(append_folder_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  int error = fd ? io::write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size()))) : errno;
  if (!error && sync_ && ::fsync(fd.get()) != 0) error = errno;
  if (const int closing = fd.close(); !error) error = closing;
  if (!error && ::renameat(append_folder_.get(), temporary.c_str(), append_folder_.get(), declared_list) != 0) error = errno;
  if (error) io::throw_errno("cannot write", append_path() + "/" + declared_list, error);
  if (sync_) to_disk_now(append_folder_.get(), store());
}

void directory_append::remove_list() {
  if (::unlinkat(append_folder_.get(), declared_list, 0) != 0 && errno != ENOENT)
    io::throw_errno("cannot remove", append_path() + "/" + declared_list, errno, resume_hint);
}

void directory_append::move_chunks() {
  const io::file_descriptor staged = open_folder(append_folder_.get(), staged_store);
  if (!staged) refuse("its new chunks are gone");
  append::move_chunks(staged.get(), root_.get(), store(), sync_);
}

void directory_append::move_metadata(const replaced_metadata& metadata) {
  const std::string& key = metadata.key;
  const io::file_descriptor staged = open_folder(append_folder_.get(), staged_store);
  const io::file_descriptor source = staged ? folder_of(staged.get(), key, false) : io::file_descriptor(),
                            target = folder_of(root_.get(), key, false);
  if (source && target && ::renameat(source.get(), leaf(key).c_str(), target.get(), leaf(key).c_str()) != 0 && errno != ENOENT)
    io::throw_errno("cannot write", store() + "/" + key, errno, resume_hint);
  if (!target) refuse("there is no folder of \"" + key + "\"");
  if (sync_) to_disk_now(target.get(), store() + "/" + key, resume_hint);
}

void directory_append::discard() {
  std::error_code e;
  fs::remove_all(folder(), e);
  if (e) io::throw_errno("cannot remove", folder(), e.value());
  ::unlinkat(append_folder_.get(), (std::string(declared_list) + ".tmp").c_str(), 0);
}

}  // namespace

std::unique_ptr<staged_append> append_in_directory(std::string store, const zarr::store_writer_options& options) {
  return std::make_unique<directory_append>(std::move(store), options.sync);
}

}  // namespace zarrbits::append
