// SPDX-License-Identifier: BSL-1.0
//
// Where in the file the bytes of a chunk are, so that they can be read (or copied by the kernel) without libhdf5 and its lock.
//
// libhdf5's functions that return a chunk's address take time proportional to the number of chunks in each call, and are wrong
// for some indexes (chunk_index.cpp). H5Dread_chunk has neither problem. So the file is opened with our driver, which forwards
// everything to libhdf5's own (sec2). To find an address, H5Dread_chunk looks the chunk up, and our driver notes the range that
// it asks for instead of reading it.
//
// The driver does its own reads, of local files and of those on a server (remote_file.hpp), for which libhdf5 needs no driver:
// sec2 returns zeros beyond the end of a file, and libhdf5 treats a failed read as damage of the file and continues. Failed reads
// inside of the file are noted, because nothing that was made since can be trusted.
//
#ifndef ZARRBITS_HDF5_CHUNK_LOCATOR_HPP
#define ZARRBITS_HDF5_CHUNK_LOCATOR_HPP

#include "hdf5/external_files.hpp"
#include "hdf5/h5.hpp"
#include "io/files.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zarrbits {
class error;
}

namespace zarrbits::remote {
class remote_file;
}

namespace zarrbits::hdf5 {

// For all files that libhdf5 read in this process: how often a read failed, or another process had the file open for writing, or
// it had changed when it was closed; and the last sentence.
struct driver_error_state {
  std::uint64_t count = 0;
  std::string last = {};
  std::shared_ptr<const zarrbits::error> server_error = {};  // the last one, if a server is the reason
};
driver_error_state driver_errors();

// The lock of the source, and of other files opened for it: readers share it, a writer has it alone.
struct source_lock {
  bool requested = true;
  io::lock_state state = io::lock_state::unsupported;  // of the source
};

// Lets netCDF-3 files be read as HDF5 files (netcdf3_view.hpp): the source, and what libhdf5 opens for it, such as the parts of a
// virtual dataset that combines them.
struct netcdf3_access {
  std::uint64_t cache = 0;  // bytes of a file on a server that are kept
  std::string reason = {};  // why the source cannot be read
};

class chunk_locator {
 public:
  // Makes `access` open files through our driver: the source, which may be remote, and any other file that libhdf5 opens for it
  // if `gate` permits. Without `lock` no file is locked, without `netcdf3` no netCDF-3 file is read. Throws failure if
  // libhdf5 rejects the driver: nothing would be checked then.
  static void set_driver(hid_t access, std::shared_ptr<external_file_policy> gate,
                         std::shared_ptr<const remote::remote_file> remote = {}, std::shared_ptr<source_lock> lock = {},
                         std::shared_ptr<netcdf3_access> netcdf3 = {});

  chunk_locator() = default;
  // For a file that was opened this way; for any other file it finds nothing.
  explicit chunk_locator(hid_t file) noexcept;
  // The descriptor that libhdf5 reads from; negative if the file was not opened this way.
  int descriptor() const noexcept;
  // The remote file that libhdf5 reads; null if it is not one.
  std::shared_ptr<const remote::remote_file> remote() const noexcept;
  // State of the file when it was opened, before anything was read.
  io::file_state opened() const noexcept;

  // The largest address of metadata (objects, indexes of chunks; not values in heaps) that libhdf5 has read since the last call;
  // 0 if it has read none. The caller holds lock, or is alone.
  std::uint64_t take_last_metadata() noexcept;

  // Where the bytes of a chunk are in the file, and its filter mask. Empty if unknown, or if the file does not have them as one
  // range: call H5Dread_chunk then. For chunks
  // without filters in a damaged file, libhdf5 reports one size and reads another: this is the one that it reads. The caller
  // holds lock, or is alone.
  struct range {
    std::uint64_t offset, size;
  };
  std::optional<range> find(hid_t dataset, const array::extents& first, unsigned& mask) const noexcept;

 private:
  struct driver;
  void* file_ = nullptr;  // the driver's
};

}  // namespace zarrbits::hdf5

#endif
