// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/atomic_file.hpp"

#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <zarrbits/error.hpp>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

std::string unfinished_name(const std::string& store) {
  return text::strip_trailing_slashes(store) + text::unfinished_folder;  // of a folder: beside it, not in it
}

io::file_descriptor lock_leftover(const std::string& temporary, const std::string& target, leftover_kind kind) {
  const bool folder = kind == leftover_kind::folder;
  struct stat info {};
  if (::lstat(temporary.c_str(), &info) != 0) return {};
  if (folder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode) || info.st_nlink != 1) {
    throw zarrbits::error(errc::already_exists,
                          "\"" + temporary + "\" is in the way, and is not a " + (folder ? "folder" : "file") +
                              " of a conversion; remove it or choose another target",
                          {temporary});
  }
  io::file_descriptor fd(
      ::open(temporary.c_str(), (folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return {};
  if (!fd) io::throw_errno("cannot open what an earlier run left,", temporary, errno, "remove it or choose another target");
  const io::lock_state state = io::take_lock(fd.get(), AT_FDCWD, temporary, false);
  if (state == io::lock_state::removed) return {};
  if (state != io::lock_state::acquired)
    throw zarrbits::error(errc::busy, "another conversion is writing to \"" + target + "\"; wait for it or choose another name",
                          {target});
  return fd;
}

atomic_file::atomic_file(std::string path, std::string temporary, const store_writer_options& options, kind replaceable)
    : path_(std::move(path)), temporary_(std::move(temporary)), replaceable_(std::move(replaceable)), sync_(options.sync) {
  replaces_ =
      options.target == store_writer_options::if_exists::replace || options.target == store_writer_options::if_exists::append;
  check_target(options);
  open_temporary();
  try {
    check_target(options);  // another run may have been faster
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

void atomic_file::check_target(const store_writer_options& options) const {
  std::error_code e;
  if (!fs::exists(fs::symlink_status(path_, e))) return;
  if (!replaces_)
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + path_ + "\" exists; choose another name, or replace it with `overwrite`", {path_});
  if (!fs::is_regular_file(path_, e) || !replaceable_.matches(path_)) {
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + path_ + "\" exists and is not " + replaceable_.description +
                              ", so `overwrite` does not replace it; "
                              "choose another name or remove it yourself",
                          {path_});
  }
  if (!options.source.empty() && fs::equivalent(options.source, path_, e)) {
    throw zarrbits::error(errc::refused, "the source \"" + options.source + "\" is also the target; choose another target",
                          {path_});
  }
}

// Creates a new file that no other process takes for an abandoned one.
void atomic_file::open_temporary() {
  for (int tries = 0; tries < 200; ++tries) {
    fd_ = io::file_descriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd_) {
      const io::lock_state state = io::take_lock(fd_.get(), AT_FDCWD, temporary_, false);
      if (state == io::lock_state::acquired || state == io::lock_state::unsupported) return;
      continue;
    }
    if (errno != EEXIST)
      io::throw_errno("cannot create the store", path_, errno, "choose a place that exists and that you may write to");
    if (const io::file_descriptor previous = lock_leftover(temporary_, path_, leftover_kind::file)) ::unlink(temporary_.c_str());
  }
  throw zarrbits::error(errc::busy, "another conversion is writing to \"" + path_ + "\"; wait for it or choose another name",
                        {path_});
}

bool atomic_file::remove_unfinished(const std::string& path, const std::string& temporary) {
  const io::file_descriptor previous = lock_leftover(temporary, path, leftover_kind::file);
  return previous && ::unlink(temporary.c_str()) == 0;
}

atomic_file::~atomic_file() {
  if (!finished_ && fd_) ::unlink(temporary_.c_str());
}

void atomic_file::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) io::throw_errno("cannot write", path_, n < 0 ? errno : ENOSPC);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void atomic_file::finish() {
  if (sync_ && ::fsync(fd_.get()) != 0) io::throw_errno("cannot flush to the disk", path_, errno, "check the disk");
  // a server may report only now that there is no room; the other descriptor keeps the lock until the file has its name
  const io::file_descriptor lock(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (const int error = fd_.close()) {
    ::unlink(temporary_.c_str());
    io::throw_errno("cannot write", path_, error);
  }
  rename_to_target();
  finished_ = true;
  if (!sync_) return;
  const fs::path folder = fs::absolute(path_).parent_path();
  const io::file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL)) return;
  const int error = errno;
  if (!replaces_) ::unlink(path_.c_str());  // after a failure, there is no store
  io::throw_errno("cannot flush to the disk", folder.native(), error, "check the disk");
}

void atomic_file::rename_to_target() {
  int error = ENOSYS;
#ifdef RENAME_NOREPLACE
  if (!replaces_) error = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
#endif
  if (error == ENOSYS || error == EINVAL) error = ::rename(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno;
  if (!error) return;
  ::unlink(temporary_.c_str());
  io::throw_errno("cannot finish the store", path_, error, "choose another name");
}

}  // namespace zarrbits::zarr
