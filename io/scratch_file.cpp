// SPDX-License-Identifier: BSL-1.0
#include "io/scratch_file.hpp"

#include "io/remote_url.hpp"

#include <zarrbits/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace zarrbits::io {

namespace {

const char* const remedy = "check the space and the permissions there, or choose another folder with `scratch`";

}  // namespace

scratch_file::scratch_file(std::string folder) : folder_(std::move(folder)) {
#ifdef O_TMPFILE
  file_ = file_descriptor(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file_) return;
#endif
  std::string name = folder_ + "/.zarrbits-scratch-XXXXXX";
  file_ = file_descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!file_) throw_errno("cannot create a scratch file in", folder_, errno, remedy);
  ::unlink(name.c_str());
}

void scratch_file::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_errno("cannot write a scratch file in", folder_, n < 0 ? errno : ENOSPC, remedy);
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void scratch_file::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  try {
    read_range(file_.get(), offset, bytes);
  } catch (const read_error& e) {
    throw zarrbits::error(errc::io_failed, "a scratch file in \"" + folder_ + "\" cannot be read: " + e.what(), {folder_});
  }
}

std::string scratch_folder_for(const std::string& target) {
  const char* const temporary = std::getenv("TMPDIR");
  if (is_object_store(target)) return temporary && *temporary ? temporary : "/tmp";
  std::filesystem::path path(target);
  while (path.has_relative_path() && path.filename().empty()) path = path.parent_path();
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

}  // namespace zarrbits::io
