// SPDX-License-Identifier: BSL-1.0
//
// What a growing store already has of an array: its form, its values, its shards.
//
#ifndef ZARRBITS_APPEND_EXISTING_ARRAY_HPP
#define ZARRBITS_APPEND_EXISTING_ARRAY_HPP

#include "compressors/buffer.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/source_files.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "io/byte_source.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::append {

// A shard in the store. A shard that replaces it begins with the same bytes, so a reader that has the old index still finds its
// chunks.
struct stored_shard {
  std::shared_ptr<const io::byte_source> bytes;
  std::uint64_t size = 0;        // bytes before the index
  std::vector<std::byte> index;  // offset and size of each chunk; all bits set if absent, or if it must be re-encoded
};

// The values that an array of a growing store already has, before its first part.
class existing_array {
 public:
  virtual ~existing_array() = default;

  std::uint64_t count = 0;                  // length along the axis
  std::vector<std::uint64_t> shape, chunk;  // shape of the array, and of its chunks (inner chunks if it has shards)
  array::extents per_shard;                 // chunks per shard; all 1 without shards
  // Chunks along the axis that are full, and stay as they are.
  std::uint64_t whole_chunks = 0;
  // If the grid is rectilinear: lengths of the chunks along the axis, and how many have each. Their sum is `count`.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks_along_axis;
  text::json data_type, fill_value, codecs;  // as in its zarr.json; the codecs are those of a chunk
  hdf5::handle number;                       // numbers only: their HDF5 type, in the store's byte order
  std::optional<std::pair<hdf5::handle, compressors::buffer>> missing;  // numbers only: the value for missing ones, and its type

  // As chunk_source::read_block(); writes to the beginning of `out`.
  virtual void read_block(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                          const array::extents& out_shape, compressors::buffer& out, hdf5::vlen_allocator* strings) const = 0;
  // Empty if the store has no such shard. `index`: its place in the grid of shards. Throws zarrbits::error.
  virtual std::optional<stored_shard> shard(const array::extents& index) const = 0;
};

}  // namespace zarrbits::append

#endif
