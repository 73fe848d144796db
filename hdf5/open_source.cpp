// SPDX-License-Identifier: BSL-1.0
#include "hdf5/open_source.hpp"

#include "hdf5/foreign_format.hpp"
#include "io/files.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <span>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t head_bytes = 4096;

// The beginning of the file; nothing if it cannot be read, which libhdf5 then reports. `remote`: null for a local file.
std::optional<std::string> head_of(const std::string& name, const remote::remote_file* remote) noexcept {
  try {
    const io::file_descriptor fd(remote ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!remote && !fd) return {};
    const io::file_state state = remote ? remote->state() : io::state_of(fd.get());
    if (!state.regular) return {};
    std::string head(static_cast<std::size_t>(std::min(state.size, head_bytes)), '\0');
    const auto bytes = std::as_writable_bytes(std::span(head));
    if (remote) remote->read(0, bytes);
    else io::read_range(fd.get(), 0, bytes);
    return head;
  } catch (...) {
    return {};
  }
}

// Name of the driver (family, split or multi) that wrote the file: each puts its name near the superblock of the first file. ""
// for all other files.
std::string driver_of(const std::string& head) {
  if (head.find("NCSAfami") != head.npos) return "family";
  if (head.find("NCSAmult") != head.npos) return "split or multi";
  return "";
}

// libhdf5's own message suggests h5clear even for a file that another process is writing to.
std::string why_not_open(const std::string& name, const remote::remote_file* remote, io::lock_state lock) {
  const std::string reason = last_error();
  if (!remote && lock == io::lock_state::contended)
    return "another process has it open for writing; convert it when it is closed";
  const auto head = head_of(name, remote);
  const std::string driver = head && !remote ? driver_of(*head) : "", format = head ? foreign_format(*head) : "";
  if (!format.empty()) return format;
  if (!driver.empty()) {
    return "it is a part of an HDF5 file that the driver " + driver + " divides into several; \"h5repack " +
           (driver == "family" ? "NAME%d.h5 WHOLE.h5\"" : "NAME WHOLE.h5\", of NAME-m.h5 and NAME-r.h5,") +
           " merges them into one file";
  }
  if (remote || writer_mark_of(name) == writer_mark::none)
    return "as an HDF5 file: " + reason + "; check that it is an HDF5 file, and complete";
  if (lock != io::lock_state::acquired) return "it is marked as open for writing; convert it when its writer closes it";
  return "it is marked as open for writing, and no process has it locked; if its writer was killed, \"h5clear -s\" removes the "
         "mark";
}

}  // namespace

writer_mark writer_mark_of(const std::string& file) noexcept {
  try {
    const io::file_descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const io::file_state state = io::state_of(fd.get());
    if (!fd || !state.regular) return writer_mark::none;
    // behind a user block of 512, 1024, 2048 ... bytes: signature, version, sizes of offsets and lengths, the mark
    constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    std::array<std::byte, 12> head;
    for (std::uint64_t offset = 0; offset <= state.size - std::min(state.size, head.size()); offset = offset ? 2 * offset : 512) {
      if (state.size < head.size()) break;
      io::read_range(fd.get(), offset, head);
      if (std::memcmp(head.data(), signature.data(), signature.size()) != 0) continue;
      constexpr unsigned writing = 1, swmr = 4;
      const auto mark = std::to_integer<unsigned>(head[11]);
      if (std::to_integer<unsigned>(head[8]) < 3 || !(mark & writing)) return writer_mark::none;
      return mark & swmr ? writer_mark::swmr_writer : writer_mark::writer;
    }
  } catch (...) {  // libhdf5 then reports the error
  }
  return writer_mark::none;
}

opened_source::opened_source(std::string path, hid_t access, const remote_access& server_access, std::uint64_t cache,
                             const std::vector<std::string>& external, bool lock, io::access_hint hint, bool netcdf3)
    : path_(std::move(path)) {
  const bool remote = io::is_remote(path_);
  if (remote) remote_ = std::make_shared<const remote::remote_file>(path_, server_access, cache, std::nullopt, hint);
  else io::require_file(path_);
  policy_ = std::make_shared<external_file_policy>(path_, remote, external, server_access);
  const auto locks = std::make_shared<source_lock>(source_lock{lock, io::lock_state::unsupported});
  const auto as_netcdf3 = netcdf3 ? std::make_shared<netcdf3_access>(netcdf3_access{cache}) : nullptr;
  try {
    chunk_locator::set_driver(access, policy_, remote_, locks, as_netcdf3);
  } catch (const failure& e) {
    throw zarrbits::error(errc::unsupported,
                          "cannot open \"" + path_ + "\": " + e.what() + "; build zarrbits with another libhdf5", {path_});
  }
  file_ = handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access));
  if (!file_ && !remote && locks->state != io::lock_state::contended && writer_mark_of(path_) == writer_mark::swmr_writer) {
    // Metadata with a wrong checksum may be half written. libhdf5 reads it again after a pause of 1 ns, 2 ns, 4 ns ..., by
    // default 100 times, which is forever for a damaged file. After 24 times it has waited 17 ms.
    H5Pset_metadata_read_attempts(access, 24);
    file_ = handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access));
    swmr_ = static_cast<bool>(file_);
  }
  policy_->source_is_open();
  if (!file_) {
    require_no_server_error();
    const std::string reason =
        !as_netcdf3 || as_netcdf3->reason.empty() ? why_not_open(path_, remote_.get(), locks->state) : as_netcdf3->reason;
    throw zarrbits::error(!remote && locks->state == io::lock_state::contended ? errc::busy : errc::damaged_source,
                          "cannot open \"" + path_ + "\"" + (reason.starts_with("as ") ? " " : ": ") + reason, {path_});
  }
  chunks_ = chunk_locator(file_);
  opened_ = chunks_.opened();
}

void opened_source::require_no_server_error() const {
  if (const driver_error_state errors = driver_errors(); errors.count != errors_before_ && errors.server_error)
    throw zarrbits::error(*errors.server_error);
}

void opened_source::require_unchanged() const {
  require_no_server_error();
  const driver_error_state errors = driver_errors();
  if (errors.count != errors_before_) throw zarrbits::error(errc::server_failed, "the source " + errors.last, {path_});
  if (!remote_ && io::state_of(chunks_.descriptor()) != opened_) changed();
}

void opened_source::require_same_on_server() const {
  if (remote_ && remote_->state_now() != opened_) changed();
}

void opened_source::changed() const {
  throw zarrbits::error(
      errc::changed, "the source \"" + path_ + "\" changed while it was read; convert it again when no process is writing to it",
      {path_});
}

}  // namespace zarrbits::hdf5
