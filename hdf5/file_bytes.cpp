// SPDX-License-Identifier: BSL-1.0
#include "hdf5/file_bytes.hpp"

#include "io/files.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace zarrbits::conversion {

file_bytes::file_bytes(chunk_locator chunks) noexcept : chunks_(chunks) {
  if (chunks_.descriptor() >= 0) descriptor_ = ::fcntl(chunks_.descriptor(), F_DUPFD_CLOEXEC, 0);
}

file_bytes::~file_bytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void file_bytes::require_range(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t all = chunks_.opened().size;
  if (offset > all || size > all - offset) throw unreadable_range("the file ends before the range that was to be read");
}

}  // namespace zarrbits::conversion
