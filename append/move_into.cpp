// SPDX-License-Identifier: BSL-1.0
#include "append/move_into.hpp"

#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "text/sha256.hpp"
#include "text/shown.hpp"
#include "zarr/write/sink.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace zarrbits::conversion {

namespace {

namespace fs = std::filesystem;
constexpr const char *own_folder = ".zarrbits-append", *store_folder = "store", *list_name = "metadata";
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

file_descriptor open_folder(int above, const std::string& name) {
  return file_descriptor(::openat(above, name.c_str(), folder_flags));
}

// The folder of a key, reached without a symbolic link; an invalid descriptor if there is no such folder.
file_descriptor folder_of(int root, std::string_view key, bool make) {
  file_descriptor at(::openat(root, ".", folder_flags));
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
  const file_descriptor folder = folder_of(root, key, false);
  if (!folder) return "";
  const auto bytes = read_regular_file(folder.get(), leaf(key), shown);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

std::string checksum_of(std::string_view text) {
  sha256 sum;
  sum.add(text);
  return sum.hex();
}

// Where the new files are moving to their places.
constexpr const char* again =
    "find out why, and run it again: it continues where this run stopped, and until then arrays may differ in length";

void to_disk_now(int fd, const std::string& shown, const char* remedy = "check the disk") {
  if (::fsync(fd) != 0 && errno != EINVAL) fail_file("cannot flush to the disk", shown, errno, remedy);
}

// Moves every file except a node's metadata from one folder into another.
void move_chunks(int from, int to, const std::string& shown, bool to_disk) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(::dup(from)), ::closedir);
  if (!list) fail_file("cannot list", shown, errno, again);
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(list.get()); errno = 0) names.emplace_back(entry->d_name);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || name == "zarr.json") continue;
    struct stat info {};
    if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      fail_file("cannot read", shown + "/" + name, errno, again);
    if (S_ISDIR(info.st_mode)) {
      if (::mkdirat(to, name.c_str(), 0777) != 0 && errno != EEXIST)
        fail_file("cannot create the folder", shown + "/" + name, errno, again);
      const file_descriptor inner_from = open_folder(from, name), inner_to = open_folder(to, name);
      if (!inner_from || !inner_to) fail_file("cannot open the folder", shown + "/" + name, errno, "it must not be a link");
      move_chunks(inner_from.get(), inner_to.get(), shown + "/" + name, to_disk);
    } else if (S_ISREG(info.st_mode)) {
      if (::renameat(from, name.c_str(), to, name.c_str()) != 0) fail_file("cannot write", shown + "/" + name, errno, again);
    }
  }
  if (to_disk) to_disk_now(to, shown, again);
}

}  // namespace

waiting_append::waiting_append(std::string store, bool to_disk) : store_(std::move(store)), sync_(to_disk) {
  while (store_.size() > 1 && store_.ends_with('/')) store_.pop_back();
  root_ = file_descriptor(::open(store_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!root_ || ::fstatat(root_.get(), "zarr.json", &info, 0) != 0) {
    throw zarrbits::error(
        errc::not_found,
        "nothing can be appended to \"" + store_ + "\": there is no such store in a directory; make it with `concat`", {store_});
  }
  for (int tries = 0; !lock_; ++tries) {
    if (tries == 100) fail_file("cannot write to the store", store_, errno);
    if (::mkdirat(root_.get(), own_folder, 0777) != 0 && errno != EEXIST) fail_file("cannot write to the store", store_, errno);
    own_ = open_folder(root_.get(), own_folder);
    if (!own_ && errno != ENOENT) fail_file("cannot use the folder", store_ + "/" + own_folder, errno, "remove it");
    if (!own_) continue;
    lock_ = file_descriptor(::openat(own_.get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!lock_) continue;
    const lock_state state = take_lock(lock_.get(), own_.get(), lock_name, false);
    if (state == lock_state::busy)
      throw zarrbits::error(errc::busy, "another process is appending to \"" + store_ + "\"; wait until it ends, then append",
                            {store_});
    if (state == lock_state::gone) lock_ = file_descriptor();
  }
}

waiting_append::~waiting_append() {
  if (keep_ || is_whole()) return;
  try {
    discard();
    ::unlinkat(own_.get(), lock_name, 0);
    ::unlinkat(root_.get(), own_folder, AT_REMOVEDIR);
  } catch (...) {  // the next run tries again
  }
}

std::string waiting_append::folder() const { return store_ + "/" + own_folder + "/" + store_folder; }

bool waiting_append::is_whole() const {
  struct stat info {};
  return ::fstatat(own_.get(), list_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

bool waiting_append::has(const std::string& key) const {
  struct stat info {};
  return ::fstatat(own_.get(), (std::string(store_folder) + "/" + key).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

void waiting_append::remove_from_store(const std::string& key) {
  const file_descriptor at = folder_of(root_.get(), key, false);
  if (!at) return;
  if (::unlinkat(at.get(), leaf(key).c_str(), 0) != 0 && errno != ENOENT) fail_file("cannot remove", store_ + "/" + key, errno);
}

void waiting_append::declare(const std::vector<std::string>& metadata) {
  json list = json::array();
  const file_descriptor from = open_folder(own_.get(), store_folder);
  for (const std::string& key : metadata) {
    list.push_back({{"key", key},
                    {"before", checksum_of(text_at(root_.get(), key, store_ + "/" + key))},
                    {"after", checksum_of(text_at(from.get(), key, folder() + "/" + key))}});
  }
  const std::string text = json_text(list) + "\n", temporary = std::string(list_name) + ".tmp";
  file_descriptor fd(::openat(own_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  int error = fd ? write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size()))) : errno;
  if (!error && sync_ && ::fsync(fd.get()) != 0) error = errno;
  if (const int closing = fd.close(); !error) error = closing;
  if (!error && ::renameat(own_.get(), temporary.c_str(), own_.get(), list_name) != 0) error = errno;
  if (error) fail_file("cannot write", store_ + "/" + own_folder + "/" + list_name, error);
  if (sync_) to_disk_now(own_.get(), store_);
}

void waiting_append::move() {
  const std::string shown = store_ + "/" + own_folder;
  const json list = parse_foreign_json(text_at(own_.get(), list_name, shown + "/" + list_name));
  const auto refuse = [&](const std::string& why) {
    throw zarrbits::error(errc::damaged_store,
                          "an append to \"" + store_ + "\" was cut off and cannot be resumed: " + why + "; remove \"" + shown +
                              "\" and append again",
                          {store_});
  };
  const auto text_of = [](const json& j, const char* key) {
    return j.is_object() && j.contains(key) && j[key].is_string() ? std::optional(j[key].get<std::string>()) : std::nullopt;
  };
  const file_descriptor from = open_folder(own_.get(), store_folder);
  if (!from || !list.is_array()) refuse("its list of metadata cannot be read");
  std::vector<std::string> keys;
  for (const json& each : list) {
    const auto key = text_of(each, "key"), before = text_of(each, "before"), after = text_of(each, "after");
    if (!key || !before || !after || !is_node_key(*key)) refuse("its list of metadata cannot be read");
    check_key(*key);
    const std::string now = checksum_of(text_at(root_.get(), *key, store_ + "/" + *key));
    if (now != *before && now != *after) refuse("\"" + *key + "\" of the store was changed by another program");
    keys.push_back(*key);
  }
  move_chunks(from.get(), root_.get(), store_, sync_);
  for (const std::string& key : keys) {
    const file_descriptor source = folder_of(from.get(), key, false), target = folder_of(root_.get(), key, false);
    if (source && target && ::renameat(source.get(), leaf(key).c_str(), target.get(), leaf(key).c_str()) != 0 && errno != ENOENT)
      fail_file("cannot write", store_ + "/" + key, errno, again);
    if (!target) refuse("there is no folder of \"" + key + "\"");
    if (sync_) to_disk_now(target.get(), store_ + "/" + key, again);
  }
  if (::unlinkat(own_.get(), list_name, 0) != 0 && errno != ENOENT)
    fail_file("cannot remove", shown + "/" + list_name, errno, again);
  discard();
}

void waiting_append::discard() {
  std::error_code e;
  fs::remove_all(folder(), e);
  if (e) fail_file("cannot remove", folder(), e.value());
  ::unlinkat(own_.get(), (std::string(list_name) + ".tmp").c_str(), 0);
}

}  // namespace zarrbits::conversion
