// SPDX-License-Identifier: BSL-1.0
//
// A file for values between two passes, which is gone when it is closed, even if the process is killed.
//
//   scratch_file file("/data");
//   file.write(offset, bytes);   // any thread, anywhere; what was never written takes no space
//
#ifndef ZARRBITS_IO_SCRATCH_FILE_HPP
#define ZARRBITS_IO_SCRATCH_FILE_HPP

#include "io/files.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zarrbits::io {

class scratch_file {
 public:
  // Throws zarrbits::error.
  explicit scratch_file(std::string folder);
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string folder_;
  file_descriptor file_;
};

// Where it is, unless an option says it: the folder of a local target, else that for temporary files.
std::string scratch_folder_for(const std::string& target);

}  // namespace zarrbits::io

#endif
