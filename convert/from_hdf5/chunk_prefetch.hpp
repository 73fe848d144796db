// SPDX-License-Identifier: BSL-1.0
//
// The stored bytes of a batch's chunks that lie on a server: their download begins when the batch is submitted, and continues
// next to those of other batches, until a thread makes the chunks.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_CHUNK_PREFETCH_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_CHUNK_PREFETCH_HPP

#include "convert/from_hdf5/zarr_chunk_sink.hpp"
#include "remote/remote_file.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>

namespace zarrbits::conversion {

struct chunk_batch;

class chunk_prefetch {
 public:
  // Begins to download the chunks that are not only referred to (`refers`). Throws zarrbits::error.
  chunk_prefetch(const chunk_batch& batch, bool refers);

  // The bytes of a range of the batch's chunks, as long as this object exists; nothing if it is in a local file. Waits for them.
  // Throws io::read_error, zarrbits::error.
  std::optional<std::span<const std::byte>> bytes(const stored_range& range) const;

 private:
  std::map<std::size_t, std::shared_ptr<const remote::remote_file::pending_fetch>> files_;
};

}  // namespace zarrbits::conversion

#endif
