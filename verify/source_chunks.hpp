// SPDX-License-Identifier: BSL-1.0
//
// Chunks of an HDF5 dataset, read and decoded without libhdf5 and its lock, by decoders that no other command uses. What they
// cannot read is left to H5Dread, which also decides about everything that is damaged.
//
//   const auto chunks = source_chunks::open(dataset, properties, type, dims);  // null: only H5Dread can read the dataset
//   const auto place = chunks->find(start, count);   // in the thread that calls libhdf5; empty: H5Dread must read it
//   std::vector<std::byte> values;
//   if (!chunks->read(*place, values)) ...           // in any thread; false: H5Dread must read it
//
#ifndef ZARRBITS_VERIFY_SOURCE_CHUNKS_HPP
#define ZARRBITS_VERIFY_SOURCE_CHUNKS_HPP

#include "hdf5/file_bytes.hpp"
#include "verify/source_values.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace zarrbits::verification {

class source_chunks {
 public:
  using index = std::vector<std::uint64_t>;

  // Null if the layout, a filter or the type is one that only libhdf5 knows, or if the file is not a local one. Throws
  // source_error.
  static std::shared_ptr<const source_chunks> open(hid_t dataset, hid_t properties, const source_type& type, const index& dims);

  struct place {
    std::uint64_t offset = 0, size = 0;  // in the file
    unsigned mask = 0;                   // filters that were not applied
    bool is_filtered = true;
    index count;  // elements, from the first one of the chunk
  };
  // Empty if these elements are not a whole chunk, or its part inside the dataset, or if the chunk was never written.
  std::optional<place> find(const index& start, const index& count) const;

  // Those elements, as H5Dread has them in memory. False if they cannot be decoded.
  bool read(const place& p, std::vector<std::byte>& values) const;

  // Limit of the memory that read() takes.
  std::uint64_t memory(const place& p) const { return p.size + 4 * chunk_bytes_; }

 private:
  enum class filter { deflate, shuffle, fletcher32, bzip2, blosc, zstd };
  struct step {
    filter kind;
    std::size_t element = 1;  // shuffle
  };

  source_chunks(hid_t dataset, hdf5::file_bytes bytes) : dataset_(dataset), bytes_(std::move(bytes)) {}
  bool read_filters(hid_t properties);
  void crop(const index& count, std::vector<std::byte>& values) const;

  hid_t dataset_;
  hdf5::file_bytes bytes_;
  index dims_, chunk_;
  std::vector<step> filters_;  // in the order of encoding
  bool are_edges_filtered_ = true;
  std::size_t element_ = 1, word_ = 1;  // bytes; of the part that is reversed in each element
  std::uint64_t chunk_bytes_ = 0;
};

}  // namespace zarrbits::verification

#endif
