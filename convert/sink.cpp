// SPDX-License-Identifier: BSL-1.0
#include "convert/sink.hpp"

#include <zarrbits/convert.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::conversion {

namespace fs = std::filesystem;

namespace {

// Stands in the root of a store that is being written. A reader finds no zarr.json beside it; --overwrite knows what it may remove.
constexpr const char* marker = ".zarrbits-unfinished";

std::string reason(int error) { return std::system_category().message(error); }

[[noreturn]] void fail(const std::string& what, const std::string& path, int error, const char* remedy) {
  throw convert_error(what + " \"" + path + "\": " + reason(error) + "; " + remedy);
}

// Removes every zarr.json below `folder`, the outermost first: from then on no reader sees a node there.
void remove_metadata(const fs::path& folder) {
  fs::remove(folder / "zarr.json");
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) remove_metadata(entry.path());
  }
}

}  // namespace

directory_sink::directory_sink(std::string path, const parameters& p) : root_(std::move(path)) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  std::error_code e;
  const fs::file_status status = fs::symlink_status(root_, e);
  if (status.type() == fs::file_type::not_found || (e && e == std::errc::no_such_file_or_directory)) {
    if (::mkdir(root_.c_str(), 0777) != 0) {
      fail("cannot create the store", root_, errno, "choose a place that exists and that you may write to");
    }
    created_root_ = true;
  } else if (e) {
    fail("cannot look at the target", root_, e.value(), "choose another place");
  } else if (!fs::is_directory(root_, e)) {
    throw convert_error("the target \"" + root_ + "\" exists and is no directory; choose another name or remove it");
  } else if (!fs::is_empty(root_, e) || e) {
    if (e) fail("cannot list the target", root_, e.value(), "choose another place");
    if (!p.overwrite) throw convert_error("the target \"" + root_ + "\" exists; choose another name, or replace it with --overwrite");
    if (!fs::exists(fs::path(root_) / "zarr.json") && !fs::exists(fs::path(root_) / marker)) {
      throw convert_error("the target \"" + root_ + "\" exists and is no Zarr v3 store, so --overwrite does not remove it; "
                          "choose another name or remove it yourself");
    }
    const fs::path source = fs::weakly_canonical(p.source, e);
    const fs::path target = fs::weakly_canonical(root_, e);
    const auto relative = source.lexically_relative(target);
    if (!p.source.empty() && !relative.empty() && *relative.begin() != "..") {
      throw convert_error("the source \"" + p.source + "\" lies inside the target \"" + root_ + "\"; choose another target");
    }
    try {
      write_file(root_ + "/" + marker, {});
      remove_metadata(root_);
      for (const auto& entry : fs::directory_iterator(root_)) {
        if (entry.path().filename() != marker) fs::remove_all(entry.path());
      }
    } catch (const fs::filesystem_error& error) {
      throw convert_error("cannot remove the old store \"" + root_ + "\": " + error.code().message() +
                          "; remove it yourself or choose another name");
    }
  }
  try {
    write_file(root_ + "/" + marker, {});
    std::string upper = root_ + "/" + marker;
    for (std::size_t i = root_.size(); i < upper.size(); ++i) {
      if (upper[i] >= 'a' && upper[i] <= 'z') upper[i] = static_cast<char>(upper[i] - 'a' + 'A');
    }
    tells_case_apart_ = ::access(upper.c_str(), F_OK) != 0;
  } catch (...) {
    if (created_root_) ::rmdir(root_.c_str());
    throw;
  }
}

directory_sink::~directory_sink() {
  if (finished_) return;
  // A failed run leaves nothing that looks like a store: zarr.json files first, the marker last.
  try {
    remove_metadata(root_);
    for (const auto& entry : fs::directory_iterator(root_)) {
      if (entry.path().filename() != marker) fs::remove_all(entry.path());
    }
    fs::remove(fs::path(root_) / marker);
    if (created_root_) fs::remove(root_);
  } catch (...) {  // the marker still says that the store is not whole
  }
}

void directory_sink::write_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::size_t slash = path.rfind('/');
  // the name cannot be taken for a chunk key or a node
  const std::string temporary = path.substr(0, slash + 1) + ".zarrbits-" + std::to_string(::getpid()) + "-" +
                                std::to_string(next_temporary_++) + ".tmp";
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT) {
    std::error_code e;
    fs::create_directories(path.substr(0, slash), e);
    if (e) fail("cannot create the folder", path.substr(0, slash), e.value(), "check the space and the permissions there");
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (fd < 0) fail("cannot write", path, errno, "check the space and the permissions there");
  const auto give_up = [&](int error) {
    ::close(fd);
    ::unlink(temporary.c_str());
    fail("cannot write", path, error, "check the space and the permissions there");
  };
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) give_up(n < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  if (::close(fd) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail("cannot write", path, error, "check the space and the permissions there");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail("cannot write", path, error, "check the space and the permissions there");
  }
}

void directory_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  write_file(root_ + "/" + std::string(key), bytes);
  ++objects_;
  bytes_ += bytes.size();
}

void directory_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  std::error_code e;
  fs::remove_all(fs::path(root_) / folder, e);
  if (e) fail("cannot remove", root_ + "/" + std::string(folder), e.value(), "check the permissions there");
}

void directory_sink::finish() {
  if (::unlink((root_ + "/" + marker).c_str()) != 0) fail("cannot finish the store", root_, errno, "convert again");
  finished_ = true;
}

void write_whole_file(const std::string& path, std::string_view text) {
  struct stat info {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);  // /dev/stdout, a pipe
  const std::string temporary = special ? path : path + ".zarrbits-" + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail("cannot write the report", path, errno, "check the place given with --report");
  int error = 0;
  while (!text.empty() && !error) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) error = n < 0 ? errno : ENOSPC;
    else text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && !special && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) {
    if (!special) ::unlink(temporary.c_str());
    fail("cannot write the report", path, error, "check the place given with --report");
  }
}

}  // namespace zarrbits::conversion

bool zarrbits::remove_unfinished_store(const std::string& store) noexcept {
  namespace fs = std::filesystem;
  try {
    const fs::path root = store, mark = root / conversion::marker;
    if (!fs::exists(mark)) return false;
    fs::remove(root / "zarr.json");
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.path() != mark) fs::remove_all(entry.path());
    }
    fs::remove(mark);
    fs::remove(root);
    return true;
  } catch (...) {
    return false;
  }
}
