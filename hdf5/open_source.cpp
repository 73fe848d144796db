// SPDX-License-Identifier: BSL-1.0
#include "hdf5/open_source.hpp"

#include "io/files.hpp"
#include "io/remote_file.hpp"
#include "io/remote_name.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

// Name of the driver (family, split or multi) that wrote the file: each puts its name near the superblock of the first file. ""
// for all other files.
std::string driver_of(const std::string& name) noexcept {
  try {
    const io::file_descriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const io::file_state there = io::state_of(fd.get());
    if (!fd || !there.regular) return "";
    std::string head(static_cast<std::size_t>(std::min<std::uint64_t>(there.size, 4096)), '\0');
    io::read_range(fd.get(), 0, std::as_writable_bytes(std::span(head)));
    if (head.find("NCSAfami") != head.npos) return "family";
    if (head.find("NCSAmult") != head.npos) return "split or multi";
  } catch (...) {  // libhdf5 then reports what is wrong
  }
  return "";
}

// libhdf5's own message suggests h5clear even for a file that another process is writing to.
std::string why_not_open(const std::string& name, bool remote, io::lock_state lock) {
  const std::string reason = last_error(), driver = remote ? "" : driver_of(name);
  if (!remote && lock == io::lock_state::busy) return "another process has it open for writing; convert it when it is closed";
  if (!driver.empty()) {
    return "it is a part of an HDF5 file that the driver " + driver + " divides into several; \"h5repack " +
           (driver == "family" ? "NAME%d.h5 WHOLE.h5\"" : "NAME WHOLE.h5\", of NAME-m.h5 and NAME-r.h5,") +
           " merges them into one file";
  }
  if (remote || writer_mark_of(name) == writer_mark::none)
    return "as an HDF5 file: " + reason + "; check that it is an HDF5 file, and complete";
  if (lock != io::lock_state::taken) return "it is marked as open for writing; convert it when its writer closes it";
  return "it is marked as open for writing, and no process has it locked; if its writer was killed, \"h5clear -s\" removes the "
         "mark";
}

}  // namespace

writer_mark writer_mark_of(const std::string& file) noexcept {
  try {
    const io::file_descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const io::file_state there = io::state_of(fd.get());
    if (!fd || !there.regular) return writer_mark::none;
    // behind a user block of 512, 1024, 2048 ... bytes: signature, version, sizes of offsets and lengths, the mark
    constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    std::array<std::byte, 12> head;
    for (std::uint64_t at = 0; at <= there.size - std::min(there.size, head.size()); at = at ? 2 * at : 512) {
      if (there.size < head.size()) break;
      io::read_range(fd.get(), at, head);
      if (std::memcmp(head.data(), signature.data(), signature.size()) != 0) continue;
      constexpr unsigned writing = 1, swmr = 4;
      const auto mark = std::to_integer<unsigned>(head[11]);
      if (std::to_integer<unsigned>(head[8]) < 3 || !(mark & writing)) return writer_mark::none;
      return mark & swmr ? writer_mark::swmr_writer : writer_mark::writer;
    }
  } catch (...) {  // libhdf5 then reports what is wrong
  }
  return writer_mark::none;
}

opened_source::opened_source(std::string path, hid_t access, const remote_access& where, std::uint64_t cache,
                             const std::vector<std::string>& external, bool lock, io::read_extent wanted)
    : path_(std::move(path)) {
  const bool remote = io::is_remote(path_);
  if (remote) remote_ = std::make_shared<const io::remote_file>(path_, where, cache, std::nullopt, wanted);
  else io::require_file(path_);
  gate_ = std::make_shared<file_gate>(path_, remote, external);
  const auto locks = std::make_shared<source_lock>(source_lock{lock, io::lock_state::unknown});
  try {
    chunk_locator::set_driver(access, gate_, remote_, locks);
  } catch (const failure& e) {
    throw zarrbits::error(errc::unsupported,
                          "cannot open \"" + path_ + "\": " + e.what() + "; build zarrbits with another libhdf5", {path_});
  }
  file_ = handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access));
  if (!file_ && !remote && locks->state != io::lock_state::busy && writer_mark_of(path_) == writer_mark::swmr_writer) {
    // Metadata with a wrong checksum may be half written. libhdf5 reads it again after a pause of 1 ns, 2 ns, 4 ns ..., by
    // default 100 times, which is forever for a damaged file. After 24 times it has waited 17 ms.
    H5Pset_metadata_read_attempts(access, 24);
    file_ = handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access));
    swmr_ = static_cast<bool>(file_);
  }
  gate_->source_is_open();
  if (!file_) {
    require_no_server_trouble();
    const std::string why = why_not_open(path_, remote, locks->state);
    throw zarrbits::error(!remote && locks->state == io::lock_state::busy ? errc::busy : errc::damaged_source,
                          "cannot open \"" + path_ + "\"" + (why.starts_with("as ") ? " " : ": ") + why, {path_});
  }
  chunks_ = chunk_locator(file_);
  opened_ = chunks_.opened();
}

void opened_source::require_no_server_trouble() const {
  if (const read_trouble now = known_trouble(); now.count != trouble_before_ && now.of_server)
    throw zarrbits::error(*now.of_server);
}

void opened_source::require_unchanged() const {
  require_no_server_trouble();
  const read_trouble now = known_trouble();
  if (now.count != trouble_before_) throw zarrbits::error(errc::server_failed, "the source " + now.last, {path_});
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
