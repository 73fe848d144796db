// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/atomic_directory.hpp"

#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

namespace {

void sync_entry(const std::string& name) {
  const io::file_descriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
    io::throw_errno("cannot flush to the disk", name, errno, "check the disk");
}

// What the folder that is replaced is called for a moment, if the file system cannot exchange two names.
std::string backup_name(const std::string& temporary) { return temporary + "-old"; }

// What a run left that was killed in that moment. Call it with the lock of `temporary`.
void restore_backup(const std::string& path, const std::string& temporary) {
  std::error_code e;
  const std::string backup = backup_name(temporary);
  if (!fs::exists(fs::symlink_status(backup, e))) return;
  if (fs::exists(fs::symlink_status(path, e))) fs::remove_all(backup, e);
  else fs::rename(backup, path, e);
}

}  // namespace

atomic_directory::atomic_directory(std::string path, std::string temporary, const store_writer_options& options,
                                   atomic_file::kind replaceable)
    : path_(text::strip_trailing_slashes(std::move(path))),
      temporary_(std::move(temporary)),
      replaceable_(std::move(replaceable)),
      sync_(options.sync) {
  replaces_ =
      options.target == store_writer_options::if_exists::replace || options.target == store_writer_options::if_exists::append;
  check_target(options);
  open_temporary();
}

void atomic_directory::check_target(const store_writer_options& options) const {
  std::error_code e;
  if (!fs::exists(fs::symlink_status(path_, e))) return;
  if (!replaces_)
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + path_ + "\" exists; choose another name, or replace it with `overwrite`", {path_});
  const bool holds_source =
      !options.source.empty() &&
      fs::weakly_canonical(options.source, e).native().starts_with(fs::weakly_canonical(path_, e).native() + "/");
  if (holds_source)
    throw zarrbits::error(errc::refused, "the source \"" + options.source + "\" lies in the target; choose another target",
                          {path_});
  if (!fs::is_directory(fs::symlink_status(path_, e)) || !replaceable_.matches(path_)) {
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + path_ + "\" exists and is not " + replaceable_.description +
                              ", so `overwrite` does not replace it; choose another name or remove it yourself",
                          {path_});
  }
}

void atomic_directory::open_temporary() {
  for (int tries = 0; tries < 200; ++tries) {
    if (::mkdir(temporary_.c_str(), 0777) == 0) {
      fd_ = io::file_descriptor(::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      const io::lock_state state = fd_ ? io::take_lock(fd_.get(), AT_FDCWD, temporary_, false) : io::lock_state::removed;
      if (state == io::lock_state::acquired || state == io::lock_state::unsupported) return restore_backup(path_, temporary_);
      fd_.close();
      continue;
    }
    if (errno != EEXIST)
      io::throw_errno("cannot create the store", path_, errno, "choose a place that exists and that you may write to");
    std::error_code e;
    if (const io::file_descriptor previous = lock_leftover(temporary_, path_, leftover_kind::folder))
      fs::remove_all(temporary_, e);
  }
  throw zarrbits::error(errc::busy, "another conversion is writing to \"" + path_ + "\"; wait for it or choose another name",
                        {path_});
}

bool atomic_directory::remove_unfinished(const std::string& path, const std::string& temporary) {
  std::error_code e;
  const io::file_descriptor previous = lock_leftover(temporary, path, leftover_kind::folder);
  if (!previous) return false;
  restore_backup(path, temporary);
  return fs::remove_all(temporary, e) > 0 && !e;
}

atomic_directory::~atomic_directory() {
  std::error_code e;
  if (!finished_ && fd_) fs::remove_all(temporary_, e);
}

void atomic_directory::write(const std::string& name, std::span<const std::byte> bytes) const {
  const fs::path file = fs::path(temporary_) / name;
  std::error_code e;
  fs::create_directories(file.parent_path(), e);
  io::file_descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  int error = fd ? io::write_all(fd.get(), bytes) : errno;
  if (const int closing = fd ? fd.close() : 0; !error) error = closing;
  if (error) io::throw_errno("cannot write", path_ + "/" + name, error);
}

void atomic_directory::sync_all() const {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) sync_entry(entry.path().string());
  sync_entry(temporary_);
}

void atomic_directory::finish() {
  if (sync_) sync_all();
  std::error_code e;
  const bool target_exists = replaces_ && fs::exists(fs::symlink_status(path_, e));
  int error = ENOSYS;
#ifdef RENAME_EXCHANGE
  error =
      ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), target_exists ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0
          ? 0
          : errno;
#endif
  if (error == ENOSYS || error == EINVAL) {  // a file system that cannot exchange two names: for a moment the target is missing
    const std::string backup = backup_name(temporary_);
    error = target_exists && ::rename(path_.c_str(), backup.c_str()) != 0 ? errno : 0;
    if (!error && ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      error = errno;
      if (target_exists && ::rename(backup.c_str(), path_.c_str()) != 0) error = errno;
    }
    if (!error && target_exists) fs::remove_all(backup, e);
  } else if (!error && target_exists) {
    fs::remove_all(temporary_, e);  // what was replaced
  }
  if (error) io::throw_errno("cannot finish the store", path_, error, "choose another name");
  finished_ = true;
  if (sync_) sync_entry(fs::absolute(path_).parent_path().string());
}

}  // namespace zarrbits::zarr
