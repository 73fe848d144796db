// SPDX-License-Identifier: BSL-1.0
#include "append/waiting_append.hpp"

#include "io/files.hpp"
#include "text/reserved_names.hpp"
#include "zarr/write/sink.hpp"

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

io::file_descriptor open_folder(int above, const std::string& name) {
  return io::file_descriptor(::openat(above, name.c_str(), folder_flags));
}

// The folder of a key, reached without a symbolic link; an invalid descriptor if there is no such folder.
io::file_descriptor folder_of(int root, std::string_view key, bool make) {
  io::file_descriptor at(::openat(root, ".", folder_flags));
  for (std::size_t end = key.find('/'); at && end != std::string_view::npos; end = key.find('/')) {
    const std::string name(key.substr(0, end));
    key.remove_prefix(end + 1);
    if (make && ::mkdirat(at.get(), name.c_str(), 0777) != 0 && errno != EEXIST) return {};
    at = open_folder(at.get(), name);
  }
  return at;
}

std::string leaf(const std::string& key) { return key.substr(key.rfind('/') + 1); }

std::string text_at(int root, const std::string& key, const std::string& shown) {
  const io::file_descriptor folder = folder_of(root, key, false);
  if (!folder) return "";
  const auto bytes = io::read_regular_file(folder.get(), leaf(key), shown);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

// Where the new files are moving to their places.
constexpr const char* again =
    "find out why, and run it again: it continues where this run stopped, and until then arrays may differ in length";

void to_disk_now(int fd, const std::string& shown, const char* remedy = "check the disk") {
  if (::fsync(fd) != 0 && errno != EINVAL) io::fail_file("cannot flush to the disk", shown, errno, remedy);
}

// Moves every file except a node's metadata from one folder into another.
void move_chunks(int from, int to, const std::string& shown, bool to_disk) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(::dup(from)), ::closedir);
  if (!list) io::fail_file("cannot list", shown, errno, again);
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(list.get()); errno = 0) names.emplace_back(entry->d_name);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || name == "zarr.json") continue;
    struct stat info {};
    if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      io::fail_file("cannot read", shown + "/" + name, errno, again);
    if (S_ISDIR(info.st_mode)) {
      if (::mkdirat(to, name.c_str(), 0777) != 0 && errno != EEXIST)
        io::fail_file("cannot create the folder", shown + "/" + name, errno, again);
      const io::file_descriptor inner_from = open_folder(from, name), inner_to = open_folder(to, name);
      if (!inner_from || !inner_to) io::fail_file("cannot open the folder", shown + "/" + name, errno, "it must not be a link");
      move_chunks(inner_from.get(), inner_to.get(), shown + "/" + name, to_disk);
    } else if (S_ISREG(info.st_mode)) {
      if (::renameat(from, name.c_str(), to, name.c_str()) != 0) io::fail_file("cannot write", shown + "/" + name, errno, again);
    }
  }
  if (to_disk) to_disk_now(to, shown, again);
}

class directory_append final : public waiting_append {
 public:
  directory_append(std::string store, bool sync);
  ~directory_append() override;

  std::string folder() const override { return own_path() + "/" + waiting_store; }
  bool is_whole() const override;
  void remove_from_store(const std::vector<std::string>& keys) override;
  void discard() override;

 private:
  std::string own_path() const { return store() + "/" + text::append_folder; }
  bool is_waiting(const std::string& key) const;
  std::string text_in_store(const std::string& key) override { return text_at(root_.get(), key, store() + "/" + key); }
  std::string text_waiting(const std::string& key) override {
    return text_at(own_.get(), std::string(waiting_store) + "/" + key, folder() + "/" + key);
  }
  std::string list() override { return text_at(own_.get(), declared_list, own_path() + "/" + declared_list); }
  void put_list(const std::string& text, std::uint64_t chunk_bytes) override;
  void remove_list() override;
  void move_chunks() override;
  void move_metadata(const replaced_metadata& metadata) override;

  const bool sync_;
  io::file_descriptor root_, own_, lock_;
};

directory_append::directory_append(std::string path, bool to_disk) : waiting_append(std::move(path)), sync_(to_disk) {
  root_ = io::file_descriptor(::open(store().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  const auto has = [&](const char* key) { return root_ && ::fstatat(root_.get(), key, &info, 0) == 0; };
  if (!has("zarr.json")) refuse_store(has(".zgroup") || has(".zarray"));
  for (int tries = 0; !lock_; ++tries) {
    if (tries == 100) io::fail_file("cannot write to the store", store(), errno);
    if (::mkdirat(root_.get(), text::append_folder, 0777) != 0 && errno != EEXIST)
      io::fail_file("cannot write to the store", store(), errno);
    own_ = open_folder(root_.get(), text::append_folder);
    if (!own_ && errno != ENOENT) io::fail_file("cannot use the folder", own_path(), errno, "remove it");
    if (!own_) continue;
    lock_ = io::file_descriptor(::openat(own_.get(), text::lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!lock_) continue;
    const io::lock_state state = io::take_lock(lock_.get(), own_.get(), text::lock_name, false);
    if (state == io::lock_state::busy)
      throw zarrbits::error(errc::busy, "another process is appending to \"" + store() + "\"; wait until it ends, then append",
                            {store()});
    if (state == io::lock_state::gone) lock_ = io::file_descriptor();
  }
}

directory_append::~directory_append() {
  if (is_whole()) return;
  try {
    discard();
    ::unlinkat(own_.get(), text::lock_name, 0);
    ::unlinkat(root_.get(), text::append_folder, AT_REMOVEDIR);
  } catch (...) {  // the next run tries again
  }
}

bool directory_append::is_whole() const {
  struct stat info {};
  return ::fstatat(own_.get(), declared_list, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

bool directory_append::is_waiting(const std::string& key) const {
  struct stat info {};
  return ::fstatat(own_.get(), (std::string(waiting_store) + "/" + key).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

void directory_append::remove_from_store(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const io::file_descriptor at = is_waiting(key) ? io::file_descriptor() : folder_of(root_.get(), key, false);
    if (!at) continue;
    if (::unlinkat(at.get(), leaf(key).c_str(), 0) != 0 && errno != ENOENT)
      io::fail_file("cannot remove", store() + "/" + key, errno);
  }
}

void directory_append::put_list(const std::string& text, std::uint64_t) {
  const std::string temporary = std::string(declared_list) + ".tmp";
  io::file_descriptor fd(::openat(own_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  int error = fd ? io::write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size()))) : errno;
  if (!error && sync_ && ::fsync(fd.get()) != 0) error = errno;
  if (const int closing = fd.close(); !error) error = closing;
  if (!error && ::renameat(own_.get(), temporary.c_str(), own_.get(), declared_list) != 0) error = errno;
  if (error) io::fail_file("cannot write", own_path() + "/" + declared_list, error);
  if (sync_) to_disk_now(own_.get(), store());
}

void directory_append::remove_list() {
  if (::unlinkat(own_.get(), declared_list, 0) != 0 && errno != ENOENT)
    io::fail_file("cannot remove", own_path() + "/" + declared_list, errno, again);
}

void directory_append::move_chunks() {
  const io::file_descriptor from = open_folder(own_.get(), waiting_store);
  if (!from) refuse("its new chunks are gone");
  append::move_chunks(from.get(), root_.get(), store(), sync_);
}

void directory_append::move_metadata(const replaced_metadata& metadata) {
  const std::string& key = metadata.key;
  const io::file_descriptor from = open_folder(own_.get(), waiting_store);
  const io::file_descriptor source = from ? folder_of(from.get(), key, false) : io::file_descriptor(),
                        target = folder_of(root_.get(), key, false);
  if (source && target && ::renameat(source.get(), leaf(key).c_str(), target.get(), leaf(key).c_str()) != 0 && errno != ENOENT)
    io::fail_file("cannot write", store() + "/" + key, errno, again);
  if (!target) refuse("there is no folder of \"" + key + "\"");
  if (sync_) to_disk_now(target.get(), store() + "/" + key, again);
}

void directory_append::discard() {
  std::error_code e;
  fs::remove_all(folder(), e);
  if (e) io::fail_file("cannot remove", folder(), e.value());
  ::unlinkat(own_.get(), (std::string(declared_list) + ".tmp").c_str(), 0);
}

}  // namespace

std::unique_ptr<waiting_append> append_in_directory(std::string store, const zarr::sink_options& options) {
  return std::make_unique<directory_append>(std::move(store), options.sync);
}

}  // namespace zarrbits::append
