// SPDX-License-Identifier: BSL-1.0
//
// The bytes of an open file, wherever it is.
//
//   const local_bytes file(std::move(descriptor));  // on a server: remote/remote_file.hpp
//   file.read(512, out);
//
#ifndef ZARRBITS_IO_BYTE_SOURCE_HPP
#define ZARRBITS_IO_BYTE_SOURCE_HPP

#include "io/files.hpp"

#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zarrbits::remote {
class remote_file;
}

namespace zarrbits::io {

// How much will be read of a file on a server: some places, in requests of at most 4 MiB; or all of it, in few of 16 MiB.
enum class access_hint { partial, full };

// Thread-safe.
class byte_source {
 public:
  byte_source() = default;
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;
  virtual ~byte_source() = default;

  // Its state now; of a remote file, as it was when it was opened.
  virtual file_state state() const = 0;
  // Throws read_error if the file does not have these bytes, and zarrbits::error if a server does not give them.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // For copies in the kernel; negative without a descriptor.
  virtual int descriptor() const noexcept { return -1; }
  // Itself, if it is remote; else null.
  virtual const remote::remote_file* remote() const noexcept { return nullptr; }
};

// A file of the local file system.
class local_bytes final : public byte_source {
 public:
  explicit local_bytes(file_descriptor file) noexcept : file_(std::move(file)) {}
  file_state state() const override { return state_of(file_.get()); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { read_range(file_.get(), offset, out); }
  int descriptor() const noexcept override { return file_.get(); }

 private:
  const file_descriptor file_;
};

}  // namespace zarrbits::io

#endif
