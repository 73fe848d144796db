// SPDX-License-Identifier: BSL-1.0
#include "command/report_file.hpp"

#include "command/command_line.hpp"
#include "command/html_report.hpp"
#include "io/files.hpp"
#include "io/remote_url.hpp"
#include "zarr/write/atomic_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::command {

namespace {

[[noreturn]] void cannot_write(const std::string& report, int error, const std::string& kind) {
  io::throw_errno("cannot write the " + kind, report, error, "check the place given with --" + kind);
}

}  // namespace

void require_distinct_path(const std::string& report, const std::string& source_name, const std::string& store,
                           const std::string& kind) {
  namespace fs = std::filesystem;
  std::error_code e;
  const auto is_same_file = [&](const std::string& path) {
    return fs::equivalent(report, path, e) || fs::weakly_canonical(report, e) == fs::weakly_canonical(path, e);
  };
  const auto refuse = [&](const std::string& problem) {
    throw zarrbits::error(errc::refused, "the " + kind + " " + quote(report) + " " + problem + "; write it to another place",
                          {report});
  };
  if (const std::string source = split_source(source_name).file; !io::is_object_store(source) && is_same_file(source))
    refuse("is the source");
  if (io::is_object_store(store)) return;
  if (is_same_file(store) || is_same_file(zarr::unfinished_name(store)))
    refuse(zarr::is_hdf5_name(store) ? "is the file that is written" : "is the store");
  const fs::path inside = fs::weakly_canonical(report, e).lexically_relative(fs::weakly_canonical(store, e));
  if (!inside.empty() && *inside.begin() != "..") refuse("lies in the store");
}

void require_json_report(const std::string& report, const std::string& source_name, const std::string& target) {
  if (report.empty()) return;
  if (report.ends_with(".html"))
    throw usage_error("--report writes JSON where the target is an HDF5 file; use a name such as report.json");
  require_distinct_path(report, source_name, target);
  try_report(report);
}

void try_report(const std::string& path, const std::string& kind) {
  struct stat info {};
  const bool path_exists = ::stat(path.c_str(), &info) == 0;
  if (path_exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;  // /dev/stdout, a pipe
  int error = path_exists && S_ISDIR(info.st_mode) ? EISDIR : 0;
  const std::string probe_path = path + ".zarrbits-" + std::to_string(::getpid()) + ".try";
  if (!error) {
    const int fd = ::open(probe_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) error = errno;
    else ::close(fd), ::unlink(probe_path.c_str());
  }
  if (error) cannot_write(path, error, kind);
}

std::string with_exit_status(std::string report, int status) {
  // after the version, which each report has in its second line
  report.insert(report.find(',') + 1, "\n \"exit_status\": " + std::to_string(status) + ",");
  return report;
}

void write_report(const std::string& path, const std::string& json, const std::string& kind) {
  const std::string text = kind == "report" && path.ends_with(".html") ? html_report(json) : json;
  struct stat info {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);  // /dev/stdout, a pipe
  const std::string temporary = special ? path : path + ".zarrbits-" + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_EXCL), 0666);
  if (fd < 0) cannot_write(path, errno, kind);
  int error = io::write_all(fd, std::as_bytes(std::span(text)));
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && !special && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!special) ::unlink(temporary.c_str());
  cannot_write(path, error, kind);
}

}  // namespace zarrbits::command
