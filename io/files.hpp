// SPDX-License-Identifier: BSL-1.0
//
// Files of the local file system, and parts of them.
//
#ifndef ZARRBITS_IO_FILES_HPP
#define ZARRBITS_IO_FILES_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace zarrbits::io {

// No file that the converter writes for itself and reads back (a plan, a journal, a zarr.json) is larger than this.
constexpr std::uint64_t max_read_back = std::uint64_t{1} << 30;

// Bytes of a file that cannot be read. what() is a reason, not a sentence.
struct read_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "cannot write "x": No space left on device; check ..." as zarrbits::error.
[[noreturn]] void throw_errno(const std::string& action, const std::string& path, int error,
                              const std::string& remedy = "check the space and the permissions there");

// Throws an error if `path` is not a regular file: reading a pipe or a device could block, or never end.
void require_file(const std::string& path);

// 16 hexadecimal digits that no other process on any machine has.
std::string unique_token();

// A descriptor that is closed when it goes out of scope.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int fd) noexcept : fd_(fd) {}
  file_descriptor(file_descriptor&& other) noexcept : fd_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept;
  ~file_descriptor() { close(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  int close() noexcept;  // 0, or errno

 private:
  int fd_ = -1;
};

// Identifies the state of a file: a write changes it.
struct file_state {
  bool regular = false;
  std::uint64_t size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  // of the last change; 0 in S3
  std::string etag = {};                      // in S3: if it differs, the content differs
  bool operator==(const file_state&) const = default;
};
file_state state_in(const struct stat& info) noexcept;
file_state state_of(int descriptor) noexcept;  // not regular if fstat() fails

// Where an open file is, without symbolic links; empty if the system does not tell.
std::string path_of(int descriptor);

// 0, or errno. A disk that accepts nothing more is ENOSPC.
int write_all(int fd, std::span<const std::byte> bytes) noexcept;

// A whole file in a folder (a descriptor, or AT_FDCWD). Empty if absent. Anything but a regular file (a symbolic link, too),
// or a file larger than max_read_back, throws zarrbits::error, which calls it `display_name`.
std::optional<std::vector<std::byte>> read_regular_file(int folder, const std::string& name, const std::string& display_name);

// Opens a file below a folder for reading, without following a symbolic link on the way. Sets errno if it cannot: ELOOP for a
// link.
file_descriptor open_without_links(const std::string& root, std::string_view key);

// The lock of an open file, which the kernel releases when the process ends.
enum class lock_state {
  acquired,
  contended,    // another process holds it
  removed,      // its holder has removed the file: `name` in `folder` is a different file, or missing
  unsupported,  // the file system does not support locks
};
// Waits some seconds for a process that is about to end, because the one that started it was killed.
lock_state take_lock(int fd, int folder, const std::string& name, bool shared);
lock_state take_lock(int fd, bool shared) noexcept;  // whatever name the file has: never `removed`

// Throws read_error if a file does not have these bytes.
void require_range(int fd, std::uint64_t offset, std::uint64_t size);
void read_range(int fd, std::uint64_t offset, std::span<std::byte> out);

// Appends bytes of a file to another at its position, in the kernel if possible. 0, or errno of writing; what cannot be
// read throws read_error.
int copy_range(int from, std::uint64_t offset, std::uint64_t size, int to);

}  // namespace zarrbits::io

#endif
