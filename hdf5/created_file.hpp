// SPDX-License-Identifier: BSL-1.0
//
// A new HDF5 file, which is whole only if every object that was written could be closed.
//
//   created_file file(name, creation, access);
//   ...                        // datasets are made, written and closed by this thread
//   file.finish();             // throws failure if anything could not be written
//
#ifndef ZARRBITS_HDF5_CREATED_FILE_HPP
#define ZARRBITS_HDF5_CREATED_FILE_HPP

#include "hdf5/h5.hpp"

#include <cstdint>
#include <string>

namespace zarrbits::hdf5 {

// Whether the reason of a failure names an error of the system: libhdf5 does that only where a system call failed.
inline bool is_of_system(const std::string& reason) { return reason.find("errno") != std::string::npos; }

class created_file {
 public:
  // `access` gets no lock of libhdf5's: the unfinished file is its writer's, who has one.
  created_file(const std::string& name, hid_t creation, hid_t access);

  operator hid_t() const noexcept { return file_; }

  // Flushes and closes it.
  void finish();

 private:
  const std::uint64_t failed_before_ = closes_that_failed().count;
  handle file_;
};

}  // namespace zarrbits::hdf5

#endif
