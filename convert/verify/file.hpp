// SPDX-License-Identifier: BSL-1.0
//
// A regular file that is read in pieces, for the stores that are in the file system.
//
#ifndef ZARRBITS_CONVERT_VERIFY_FILE_HPP
#define ZARRBITS_CONVERT_VERIFY_FILE_HPP

#include "convert/store/files.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zarrbits::verify {

class regular_file {
 public:
  // Null where there is no such file; store_error where it is of another kind.
  static std::unique_ptr<regular_file> open(const std::string& path);
  std::uint64_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  conversion::file_descriptor fd_;
  std::string path_;
  std::uint64_t size_ = 0;
};

}  // namespace zarrbits::verify

#endif
