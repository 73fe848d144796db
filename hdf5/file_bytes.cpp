// SPDX-License-Identifier: BSL-1.0
#include "hdf5/file_bytes.hpp"

#include "io/files.hpp"
#include "remote/remote_file.hpp"

#include <fcntl.h>

namespace zarrbits::hdf5 {

file_bytes::file_bytes(chunk_locator chunks) : chunks_(chunks), bytes_(chunks_.remote()) {
  if (!bytes_)
    bytes_ = std::make_shared<const io::local_bytes>(io::file_descriptor(::fcntl(chunks_.descriptor(), F_DUPFD_CLOEXEC, 0)));
}

void file_bytes::require_range(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t file_size = chunks_.opened().size;
  if (offset > file_size || size > file_size - offset) throw io::read_error("the file ends before the range that was to be read");
}

}  // namespace zarrbits::hdf5
