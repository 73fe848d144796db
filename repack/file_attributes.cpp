// SPDX-License-Identifier: BSL-1.0
#include "repack/file_attributes.hpp"

#include "io/files.hpp"

#include <zarrbits/error.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#ifdef __linux__
#include <sys/xattr.h>
#endif

namespace zarrbits::repacking {

namespace {

// Access lists are such attributes, too.
void copy_extended_attributes([[maybe_unused]] const std::string& from, [[maybe_unused]] const std::string& to) {
#ifdef __linux__
  const ssize_t length = ::listxattr(from.c_str(), nullptr, 0);
  if (length <= 0) return;
  std::vector<char> names(static_cast<std::size_t>(length));
  const ssize_t listed = ::listxattr(from.c_str(), names.data(), names.size());
  for (ssize_t i = 0; i < listed;) {
    const std::string name(names.data() + i);
    i += static_cast<ssize_t>(name.size()) + 1;
    const ssize_t size = ::getxattr(from.c_str(), name.c_str(), nullptr, 0);
    std::vector<char> value(size > 0 ? static_cast<std::size_t>(size) : 0);
    if (size > 0 && ::getxattr(from.c_str(), name.c_str(), value.data(), value.size()) != size) continue;
    if (size >= 0) (void)::setxattr(to.c_str(), name.c_str(), value.data(), value.size(), 0);  // some belong to the system
  }
#endif
}

}  // namespace

std::string file_to_replace(const std::string& path) {
  std::error_code e;
  const std::filesystem::path real = std::filesystem::canonical(path, e);
  struct stat info;
  if (e || ::stat(real.c_str(), &info) != 0)
    throw error(errc::not_found, "cannot open \"" + path + "\": it does not exist; check the name", {path});
  if (!S_ISREG(info.st_mode)) throw error(errc::refused, "\"" + path + "\" is not a file; name a file", {path});
  if (info.st_nlink > 1)
    throw error(errc::refused,
                "\"" + path + "\" has " + std::to_string(info.st_nlink) +
                    " names (hard links), of which the others would keep the old file; name a target",
                {path});
  return real.native();
}

void copy_file_attributes(const std::string& from, const std::string& to) {
  struct stat info;
  if (::stat(from.c_str(), &info) != 0)
    io::throw_errno("cannot read the attributes of", from, errno, "check the permissions there");
  copy_extended_attributes(from, to);
  if (::chown(to.c_str(), info.st_uid, info.st_gid) != 0) (void)::chown(to.c_str(), static_cast<uid_t>(-1), info.st_gid);
  if (::chmod(to.c_str(), info.st_mode & 07777) != 0)
    io::throw_errno("cannot set the mode of", to, errno, "check the permissions there");
  const timespec times[] = {info.st_atim, info.st_mtim};
  (void)::utimensat(AT_FDCWD, to.c_str(), times, 0);
}

}  // namespace zarrbits::repacking
