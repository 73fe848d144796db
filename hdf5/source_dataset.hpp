// SPDX-License-Identifier: BSL-1.0
//
// An open HDF5 dataset: its type, extent, layout and filters, and its values as libhdf5 reads them.
//
#ifndef ZARRBITS_HDF5_SOURCE_DATASET_HPP
#define ZARRBITS_HDF5_SOURCE_DATASET_HPP

#include "hdf5/chunk_grid.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/heap_strings.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/variable_memory.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

class joined_files;
struct joined_part;
struct stored_place;
class raw_file;
class virtual_parts;

// Why one dataset is skipped; the conversion continues with the rest of the file. what() is the reason.
struct skip_dataset : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// For the filters that pipeline::missing() names.
skip_dataset missing_filter(const std::string& names);

// Calls `f`. Returns the reason if `f` fails in a way that costs the dataset, but not the conversion; rethrows any other
// exception.
std::optional<std::string> reason_to_skip(const std::function<void()>& f);

struct source_dataset {
  // Throws h5::failure.
  source_dataset(source_file& file, const source_object& object);

  source_file& file;
  const source_object& object;
  std::shared_ptr<const file_bytes> bytes;  // of its file, while the dataset is open
  h5::handle dataset, stored_type, space, dcpl;
  type_tree type;
  bool null = false;  // a null dataspace has no extent
  std::vector<hsize_t> dims, max_dims;
  H5D_layout_t layout = H5D_CONTIGUOUS;
  pipeline filters;
  pipeline source_filters;  // virtual dataset: filters of its sources
  bool external = false;
  std::shared_ptr<const conversion::beside> beside;  // what it needs from other files
  std::shared_ptr<const virtual_parts> mapped;       // virtual dataset only; null if its mapping is unknown
  std::uint64_t stored_bytes = 0;
  std::size_t element_size = 0;  // in the stored type
  // After use_grid(): of the array made from the dataset, and its shards.
  chunk_grid grid, shards;

  // The type of one value: the element inside of array types.
  const type_tree& leaf() const;
  // `rechunked`: the source has other chunks, or none.
  void use_grid(chunk_grid chunks, chunk_grid of_shards, bool rechunked);
  // True if the chunks of the source are those of the array. For a virtual dataset: some chunks of its sources are, and it has
  // their filters.
  bool keeps_chunks() const { return (layout == H5D_CHUNKED || chunks_of_sources()) && !rechunked_; }
  bool chunks_of_sources() const;
  // The datasets of several files that this one represents; null: it is a single dataset.
  const joined_parts* joined() const { return object.joined.get(); }
  // Its chunks are in other datasets, or must be assembled.
  bool in_parts() const { return joined() || chunks_of_sources(); }
  // A file with chunks of other datasets: see stored_chunk. Callable from any thread. Throws zarrbits::error.
  std::shared_ptr<const raw_file> raw(std::size_t number) const;
  // Some of its stored chunks come into memory where find_chunk() looks for them.
  bool reads_chunks_at_once() const;
  // Throws zarrbits::error if a file has changed from which the chunks of a virtual dataset are copied.
  void require_unchanged() const;
  bool sharded() const { return shards.chunk_elements() > 1; }
  bool nothing_stored() const;
  // For a growing array: the whole chunk, or a part of it, is in the store.
  bool is_in_store(const std::vector<hsize_t>& at) const;
  bool overlaps_stored_part(const std::vector<hsize_t>& at) const;

  // Offset of the values in the file of bytes->descriptor(), or `also_in_s3`, if they are one range that can be read without
  // libhdf5.
  enum class where { in_file, also_in_s3 };
  std::optional<std::uint64_t> contiguous_address(where place) const;

  // Reads a block of the dataset, in the type `memory` with `size` bytes for each element, into the corner of an array of extent
  // `room`, or to `corner` in it. Strings and sequences go to `strings`. Throws h5::failure, damaged_chunk, skip_dataset.
  void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out, variable_memory* strings = nullptr,
                  const std::vector<hsize_t>& corner = {}) const;
  // Visits the chunks of these shards: each stored chunk with its size, each chunk to assemble from several parts with nothing.
  // Returns the number of skipped chunks, which a growing store already has. The caller holds h5::lock, or is alone. Throws
  // h5::failure.
  std::uint64_t for_each_chunk_here(
      std::uint64_t first, std::uint64_t count,
      const std::function<bool(const std::vector<hsize_t>& at, std::optional<hsize_t> size)>& visit) const;
  // For a virtual dataset with known parts: the boxes of chunks that may have values of sources.
  box_test boxes_with_values() const;
  // The stored bytes of a chunk, `size` of them, or their place in the file of bytes->descriptor(); and its filter mask. Throws
  // h5::failure, damaged_chunk. The caller holds h5::lock, or is alone.
  struct stored_chunk {
    std::optional<std::uint64_t> offset = {};
    buffer bytes = {};
    unsigned mask = 0;
    std::size_t file = no_file;  // the file of the offset, for raw()
  };
  static constexpr std::size_t no_file = static_cast<std::size_t>(-1);
  stored_chunk find_chunk(const std::vector<hsize_t>& first, std::uint64_t size) const;
  // The same of a chunk that lies in S3, which is not read; nothing of others, or where it cannot be told.
  std::optional<stored_chunk> find_in_s3(const std::vector<hsize_t>& first, std::uint64_t size) const;
  // The object in S3 that such an offset is in, and what it was when it was opened; nothing of a local file.
  std::optional<std::pair<std::string, file_state>> object_in_s3(std::size_t file) const;

  // For a chunk of this stored size: throws damaged_chunk if decoding would take far too much memory.
  void require_sensible(std::uint64_t stored) const;
  // Adds up the bytes of strings and sequences read. Throws skip_dataset if they are far too many for the size of the file.
  void count_variable(std::uint64_t read) const;
  // True if the memory type changes values of this chunk.
  bool chunk_loses(const std::vector<hsize_t>& at) const;
  // Where all its chunks are in the file, in C order; nothing where they are more than `most`, or that is not known. Throws
  // h5::failure.
  std::vector<stored_place> places_of_chunks(std::size_t most) const;

 private:
  // If a chunk is one chunk of another dataset: that dataset, and the chunk's first element in it.
  std::optional<std::pair<const joined_part*, std::vector<hsize_t>>> chunk_elsewhere(const std::vector<hsize_t>& at) const;
  const stored_place* known_place(const joined_part& part, const std::vector<hsize_t>& first) const;
  // True if any value is stored of a chunk that is not a chunk of another dataset.
  bool is_stored(const std::vector<hsize_t>& at) const;
  const joined_files& other_files() const;
  void stand_for_all();
  void read_parts(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out, variable_memory* strings) const;
  // Decodes the stored chunks of a block once each, because H5Dread does not check their decoded length. Throws damaged_chunk,
  // unreadable_range.
  void require_whole_chunks(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) const;
  void require_whole_chunk(const std::vector<hsize_t>& first) const;
  // The elements of a stored chunk in the stored type; empty if it is not stored.
  std::optional<buffer> decoded_chunk(const std::vector<hsize_t>& first) const;
  // Reads strings of one stored chunk, or of a range of all, without libhdf5; false if it cannot.
  bool read_strings(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, const std::vector<hsize_t>& room,
                    buffer& out, variable_memory& strings) const;
  std::optional<buffer> elements_of(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                    const std::vector<hsize_t>& room) const;

  bool rechunked_ = false;
  mutable std::atomic<std::uint64_t> variable_bytes_ = 0;
  std::vector<hsize_t> stored_chunk_;  // extent of the source's chunks
  std::uint64_t element_in_file_ = 1;  // bytes
  std::optional<heap_format> heap_;    // set if its strings can be read without libhdf5
  struct seen_chunks {
    std::mutex mutex;
    std::set<std::vector<hsize_t>> whole;
  };
  std::unique_ptr<seen_chunks> seen_ = std::make_unique<seen_chunks>();
};

}  // namespace zarrbits::conversion

#endif
