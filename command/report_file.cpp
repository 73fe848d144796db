// SPDX-License-Identifier: BSL-1.0
#include "command/report_file.hpp"

#include "command/command_line.hpp"
#include "io/files.hpp"
#include "zarr/write/file_target.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::command {

namespace {

[[noreturn]] void cannot_write(const std::string& report, int error) {
  io::fail_file("cannot write the report", report, error, "check the place given with --report");
}

}  // namespace

void require_place_of_its_own(const std::string& report, const convert_options& options) {
  namespace fs = std::filesystem;
  std::error_code e;
  const auto is = [&](const std::string& other) {
    return fs::equivalent(report, other, e) || fs::weakly_canonical(report, e) == fs::weakly_canonical(other, e);
  };
  const auto refuse = [&](const std::string& what) {
    throw zarrbits::error(errc::refused, "the report " + quote(report) + " " + what + "; write it to another place", {report});
  };
  if (const std::string source = split_source(options.source).file; !source.starts_with("s3://") && is(source))
    refuse("is the source");
  if (options.store.starts_with("s3://")) return;
  if (is(options.store) || is(zarr::unfinished_name(options.store))) refuse("is the store");
  const fs::path inside = fs::weakly_canonical(report, e).lexically_relative(fs::weakly_canonical(options.store, e));
  if (!inside.empty() && *inside.begin() != "..") refuse("lies in the store");
}

void try_report(const std::string& path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;  // /dev/stdout, a pipe
  int error = there && S_ISDIR(info.st_mode) ? EISDIR : 0;
  const std::string beside = path + ".zarrbits-" + std::to_string(::getpid()) + ".try";
  if (!error) {
    const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) error = errno;
    else ::close(fd), ::unlink(beside.c_str());
  }
  if (error) cannot_write(path, error);
}

void write_report(const std::string& path, const std::string& text) {
  struct stat info {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);  // /dev/stdout, a pipe
  const std::string temporary = special ? path : path + ".zarrbits-" + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_EXCL), 0666);
  if (fd < 0) cannot_write(path, errno);
  int error = io::write_all(fd, std::as_bytes(std::span(text)));
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && !special && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!special) ::unlink(temporary.c_str());
  cannot_write(path, error);
}

}  // namespace zarrbits::command
