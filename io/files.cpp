// SPDX-License-Identifier: BSL-1.0
#include "io/files.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/sysmacros.h>
#endif
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace zarrbits::io {

namespace {

std::string reason(int error) { return std::system_category().message(error); }

errc code_of_errno(int error) {
  switch (error) {
    case ENOENT: return errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS: return errc::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return errc::no_space;
    case EEXIST: return errc::already_exists;
    default: return errc::io_failed;
  }
}

}  // namespace

void throw_errno(const std::string& action, const std::string& path, int error, const std::string& remedy) {
  throw zarrbits::error(code_of_errno(error), action + " \"" + path + "\": " + reason(error) + "; " + remedy, {path});
}

void require_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) throw_errno("cannot open", path, errno, "use the name of an HDF5 file");
  if (S_ISREG(info.st_mode)) return;
  throw zarrbits::error(errc::unsupported,
                        "\"" + path + "\" is " +
                            (S_ISDIR(info.st_mode)                              ? "a directory"
                             : S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) ? "a pipe"
                                                                                : "a device") +
                            ", not a regular file; use the name of an HDF5 file" +
                            (S_ISDIR(info.st_mode) ? "" : "; save the data to a file first"),
                        {path});
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

std::string path_of(int descriptor) {
#ifdef __APPLE__
  char path[PATH_MAX];
  return ::fcntl(descriptor, F_GETPATH, path) == 0 ? path : std::string();
#else
  std::error_code e;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), e).string();
#endif
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

std::optional<std::vector<std::byte>> read_regular_file(int folder, const std::string& name, const std::string& display_name) {
  constexpr const char* remedy = "check the permissions there";
  const file_descriptor fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) throw_errno("cannot read", display_name, errno, remedy);
  if (!S_ISREG(info.st_mode))
    throw zarrbits::error(errc::damaged_store, "\"" + display_name + "\" is not a file; remove it", {display_name});
  if (static_cast<std::uint64_t>(info.st_size) > max_read_back)
    throw zarrbits::error(errc::damaged_store, "\"" + display_name + "\" is larger than any file that zarrbits writes; remove it",
                          {display_name});
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  try {
    read_range(fd.get(), 0, bytes);
  } catch (const read_error& e) {
    throw zarrbits::error(errc::io_failed, "cannot read \"" + display_name + "\": " + e.what(), {display_name});
  }
  return bytes;
}

lock_state take_lock(int fd, bool shared) noexcept {
  while (::flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK || errno == EACCES ? lock_state::contended : lock_state::unsupported;
  }
  return lock_state::acquired;
}

file_descriptor open_without_links(const std::string& root, std::string_view key) {
  file_descriptor current(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (current && !key.empty()) {
    const std::size_t end = std::min(key.find('/'), key.size());
    const std::string name(key.substr(0, end));
    const bool last = end == key.size();
    key.remove_prefix(last ? end : end + 1);
    struct stat info {};
    if (::fstatat(current.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
    if (S_ISLNK(info.st_mode)) return errno = ELOOP, file_descriptor();
    current = file_descriptor(
        ::openat(current.get(), name.c_str(), O_RDONLY | (last ? O_NONBLOCK : O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC));
  }
  return current;
}

namespace {

std::string text_of_small_file(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The process that holds the lock of this file; 0: unknown.
long holder_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return 0;
  char place[64];
  std::snprintf(place, sizeof place, "%02x:%02x:%llu ", major(info.st_dev), minor(info.st_dev),
                static_cast<unsigned long long>(info.st_ino));
  std::istringstream lines(text_of_small_file("/proc/locks"));  // "1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF"
  for (std::string line; std::getline(lines, line);) {
    const auto position = line.find(place);
    if (position == std::string::npos || position < 2 || line.find("FLOCK") == std::string::npos ||
        line.find("->") != std::string::npos)
      continue;
    const auto begin = line.rfind(' ', position - 2);
    return begin == std::string::npos ? 0 : std::strtol(line.c_str() + begin, nullptr, 10);
  }
  return 0;
}

// True if the process that holds the lock was started by a process of the same program that has ended. It then ends by itself
// (command/child_process.hpp), but not at once.
bool holder_ends(int fd) {
  const long holder = holder_of(fd);
  if (holder <= 0) return false;
  const std::string folder = "/proc/" + std::to_string(holder);
  const std::string stat = text_of_small_file(folder + "/stat");  // "4711 (name) S 4710 ..."
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos || stat.size() < name_end + 5) return true;  // it is gone, and a child of it has the lock
  const char state = stat[name_end + 2];
  if (state == 'Z' || state == 'X') return true;
  std::error_code e;
  const auto program = [&](const std::string& process) { return std::filesystem::read_symlink(process + "/exe", e); };
  const std::filesystem::path executable = program(folder);
  if (e == std::errc::no_such_file_or_directory) return true;  // its memory is gone, its files are not yet
  const long parent = std::strtol(stat.c_str() + name_end + 4, nullptr, 10);
  return executable != program("/proc/" + std::to_string(parent));
}

}  // namespace

lock_state take_lock(int fd, int folder, const std::string& name, bool shared) {
  constexpr auto longest = std::chrono::seconds(5);
  lock_state state = take_lock(fd, shared);
  const auto begin = std::chrono::steady_clock::now();
  for (bool ends = true; ends && state == lock_state::contended && std::chrono::steady_clock::now() - begin < longest;) {
    ends = holder_ends(fd);
    if (ends) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    state = take_lock(fd, shared);  // also if it has no holder: that may have ended since the lock was tried
  }
  if (state == lock_state::contended) return state;
  struct stat locked {
  }, current{};
  const bool is_same = ::fstat(fd, &locked) == 0 && ::fstatat(folder, name.c_str(), &current, AT_SYMLINK_NOFOLLOW) == 0 &&
                       locked.st_dev == current.st_dev && locked.st_ino == current.st_ino;
  return is_same ? state : lock_state::removed;
}

void require_range(int fd, std::uint64_t offset, std::uint64_t size) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw read_error(reason(errno));
  const auto end = static_cast<std::uint64_t>(std::max<off_t>(0, info.st_size));
  if (S_ISREG(info.st_mode) && (offset > end || size > end - offset))
    throw read_error("the file ends before the range that was to be read");
}

void read_range(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw read_error(reason(errno));
    if (n == 0) throw read_error("the file ends before the range that was to be read");
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

int copy_range(int from, std::uint64_t offset, std::uint64_t size, int to) {
  constexpr std::uint64_t small = 16 << 10;  // a copy through memory is faster
#ifdef __linux__
  while (size > small) {
    auto position = static_cast<off_t>(offset);
    const ssize_t n =
        ::copy_file_range(from, &position, to, nullptr, static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 30)), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) return errno;
    if (n <= 0) break;  // two file systems, one that does not support the call, or the end of the file: pread() shows which
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

}  // namespace zarrbits::io
