// SPDX-License-Identifier: BSL-1.0
//
// Opens the source as HDF5's own readers do, so that no process writes to it in the meantime: takes a shared lock (flock), and
// respects a writer's mark in the superblock. If a process still writes (without locks, or as SWMR), the file's size and time
// show it.
//
#ifndef ZARRBITS_HDF5_OPEN_SOURCE_HPP
#define ZARRBITS_HDF5_OPEN_SOURCE_HPP

#include "hdf5/chunk_locator.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/h5.hpp"
#include "io/byte_source.hpp"

#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {

class opened_source {
 public:
  // Opens a file, "s3://bucket/key" or "https://host/path", of which `cache` bytes are kept. `access`: the access properties,
  // with any cache. `external`: other files that may be read for it. Without `lock`, reads files that others have open for
  // writing. `hint`: how much of a file on a server will be read. `netcdf3`: files may be netCDF-3. Throws zarrbits::error.
  opened_source(std::string path, hid_t access, const remote_access& server_access, std::uint64_t cache,
                const std::vector<std::string>& external, bool lock, io::access_hint hint = io::access_hint::partial,
                bool netcdf3 = false);

  hid_t file() const { return file_; }
  const std::shared_ptr<external_file_policy>& policy() const { return policy_; }
  // Its writer is, or was, one that allows concurrent readers (SWMR).
  bool swmr() const { return swmr_; }
  // State when it was opened.
  const io::file_state& state() const { return opened_; }
  const chunk_locator& chunks() const { return chunks_; }
  // Throws zarrbits::error if something expected could not be read, or if the file was written to since it was opened: the
  // result cannot be trusted then, even if it looks right. Does not ask a server.
  void require_unchanged() const;
  // Asks the server, once; nothing for a local file. Throws zarrbits::error.
  void require_same_on_server() const;

 private:
  void require_no_server_error() const;
  [[noreturn]] void changed() const;

  std::string path_;
  std::shared_ptr<const remote::remote_file> remote_;  // null for a local file
  std::shared_ptr<external_file_policy> policy_;
  std::uint64_t errors_before_ = driver_errors().count;
  handle file_;
  bool swmr_ = false;
  chunk_locator chunks_;
  io::file_state opened_;
};

// A writer's mark in the superblock of an open file (HDF5 1.10's format): it removes the mark when it closes the file.
enum class writer_mark { none, writer, swmr_writer };
writer_mark writer_mark_of(const std::string& file) noexcept;

}  // namespace zarrbits::hdf5

#endif
