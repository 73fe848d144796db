// SPDX-License-Identifier: BSL-1.0
#include "convert/io/files.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

void fail_file(const std::string& what, const std::string& path, int error, const std::string& remedy) {
  throw convert_error(what + " \"" + path + "\": " + reason(error) + "; " + remedy);
}

std::string why_no_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return "cannot open \"" + path + "\": " + reason(errno) + "; give the name of an HDF5 file";
  if (S_ISREG(info.st_mode)) return "";
  return "\"" + path + "\" is " +
         (S_ISDIR(info.st_mode)                              ? "a directory"
          : S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) ? "a pipe"
                                                             : "a device") +
         " and no regular file; give the name of an HDF5 file" +
         (S_ISDIR(info.st_mode) ? "" : ", to which what comes from there can be saved");
}

std::string unique_token() {
  std::random_device device;
  std::uniform_int_distribution<unsigned> digit(0, 15);
  std::string token;
  for (int i = 0; i < 16; ++i) token += "0123456789abcdef"[digit(device)];
  return token;
}

file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int file_descriptor::release() noexcept { return std::exchange(fd_, -1); }

int file_descriptor::close() noexcept {
  if (fd_ < 0) return 0;
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

file_state state_in(const struct stat& info) noexcept {
#ifdef __APPLE__
  const auto& time = info.st_mtimespec;
#else
  const auto& time = info.st_mtim;
#endif
  return {S_ISREG(info.st_mode), static_cast<std::uint64_t>(info.st_size), time.tv_sec, time.tv_nsec, {}};
}

file_state state_of(int descriptor) noexcept {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 ? state_in(info) : file_state();
}

int write_all(int fd, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

std::optional<std::vector<std::byte>> read_regular_file(int folder, const std::string& name, const std::string& shown) {
  constexpr const char* remedy = "check the permissions there";
  const file_descriptor fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) fail_file("cannot read", shown, errno, remedy);
  if (!S_ISREG(info.st_mode)) throw convert_error("\"" + shown + "\" is no file; remove it");
  if (static_cast<std::uint64_t>(info.st_size) > largest_read_back)
    throw convert_error("\"" + shown + "\" is larger than any that zarrbits writes; remove it");
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  try {
    read_range(fd.get(), 0, bytes);
  } catch (const unreadable_range& e) {
    throw convert_error("cannot read \"" + shown + "\": " + e.what());
  }
  return bytes;
}

lock_state take_lock(int fd, bool shared) noexcept {
  while (::flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK || errno == EACCES ? lock_state::busy : lock_state::unknown;
  }
  return lock_state::taken;
}

lock_state take_lock(int fd, int folder, const std::string& name, bool shared) {
  const lock_state state = take_lock(fd, shared);
  if (state == lock_state::busy) return state;
  struct stat ours {
  }, there{};
  const bool same = ::fstat(fd, &ours) == 0 && ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                    ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  return same ? state : lock_state::gone;
}

void require_range(int fd, std::uint64_t offset, std::uint64_t size) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw unreadable_range(reason(errno));
  const auto end = static_cast<std::uint64_t>(std::max<off_t>(0, info.st_size));
  if (S_ISREG(info.st_mode) && (offset > end || size > end - offset)) throw unreadable_range("the file ends before it");
}

void read_range(int fd, std::uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unreadable_range(reason(errno));
    if (n == 0) throw unreadable_range("the file ends before it");
    offset += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

int copy_range(int from, std::uint64_t offset, std::uint64_t size, int to) {
  constexpr std::uint64_t small = 16 << 10;  // the way through memory is shorter
#ifdef __linux__
  while (size > small) {
    auto at = static_cast<off_t>(offset);
    const ssize_t n =
        ::copy_file_range(from, &at, to, nullptr, static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 30)), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) return errno;
    if (n <= 0) break;  // two file systems, one that does not know the call, or the end of the file: pread() tells which
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
#endif
  if (size == 0) return 0;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 20)));
  while (size > 0) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, piece.size())));
    read_range(from, offset, part);
    if (const int error = write_all(to, part)) return error;
    offset += part.size();
    size -= part.size();
  }
  return 0;
}

}  // namespace zarrbits::conversion
