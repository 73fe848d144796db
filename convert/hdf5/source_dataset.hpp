// SPDX-License-Identifier: BSL-1.0
//
// An open HDF5 dataset: its type, extent, layout and filters, and its values as libhdf5 reads them.
//
#ifndef ZARRBITS_CONVERT_HDF5_SOURCE_DATASET_HPP
#define ZARRBITS_CONVERT_HDF5_SOURCE_DATASET_HPP

#include "convert/hdf5/chunk_grid.hpp"
#include "convert/hdf5/chunk_index.hpp"
#include "convert/hdf5/filters.hpp"
#include "convert/hdf5/heap_strings.hpp"
#include "convert/hdf5/source_file.hpp"
#include "convert/hdf5/variable_memory.hpp"

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
class raw_file;
class virtual_parts;

// What stands in the way of one dataset; the rest of the file goes on. what() is the reason.
struct skip_dataset : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Because of the filters that pipeline::missing() names.
skip_dataset missing_filter(const std::string& names);

// Calls `f`. What may cost a dataset, but not the conversion, as its reason; what `f` throws else is thrown on.
std::optional<std::string> reason_to_skip(const std::function<void()>& f);

struct source_dataset {
  // Throws h5::failure.
  source_dataset(source_file& file, const source_object& object);

  source_file& file;
  const source_object& object;
  std::shared_ptr<const file_bytes> bytes;  // of the file that it lies in, while the dataset is open
  h5::handle dataset, stored_type, space, dcpl;
  type_tree type;
  bool null = false;  // a null dataspace; then there is no extent
  std::vector<hsize_t> dims, max_dims;
  H5D_layout_t layout = H5D_CONTIGUOUS;
  pipeline filters;
  pipeline source_filters;  // of a virtual dataset: of its sources
  bool external = false;
  std::shared_ptr<const conversion::beside> beside;  // what it needs of other files
  std::shared_ptr<const virtual_parts> mapped;       // of a virtual dataset; null where its mapping is not known
  std::uint64_t stored_bytes = 0;
  std::size_t element_size = 0;  // of the stored type
  // After use_grid(): of the array that is made of it, and its shards.
  chunk_grid grid, shards;

  // The type of one value: what is inside of array types.
  const type_tree& leaf() const;
  // `rechunked`: the source's chunks are others, or it has none.
  void use_grid(chunk_grid chunks, chunk_grid of_shards, bool rechunked);
  // The chunks of the source are those of the array. Of a virtual dataset: some chunks of its sources are, and the filters are
  // theirs.
  bool keeps_chunks() const { return (layout == H5D_CHUNKED || chunks_of_sources()) && !rechunked_; }
  bool chunks_of_sources() const;
  // The datasets of several files that this one stands for; null: it is one dataset.
  const joined_parts* joined() const { return object.joined.get(); }
  // Its chunks lie in other datasets, or have to be put together.
  bool in_parts() const { return joined() || chunks_of_sources(); }
  // A file that chunks of other datasets lie in: see stored_chunk. By any thread. Throws convert_error.
  std::shared_ptr<const raw_file> raw(std::size_t number) const;
  // Throws convert_error where a file that the chunks of a virtual dataset are copied from is not as it was.
  void require_unchanged() const;
  bool sharded() const { return shards.chunk_elements() > 1; }
  bool nothing_stored() const;
  // Of an array that grows: all of the chunk is in the store, or a part of it.
  bool is_in_store(const std::vector<hsize_t>& at) const;
  bool goes_on_in_store(const std::vector<hsize_t>& at) const;

  // Where the values begin in the file of bytes->descriptor(), where they are one range of it that needs no libhdf5 to be read.
  std::optional<std::uint64_t> contiguous_address() const;

  // Reads a block of the dataset, with strings and sequences in `strings`, `size` bytes of the type `memory` for each element,
  // into the corner of an array of extent `room`, or to `corner` in it. Throws h5::failure, damaged_chunk, skip_dataset.
  void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out, variable_memory* strings = nullptr,
                  const std::vector<hsize_t>& corner = {}) const;
  // Of the chunks of these shards: each that is stored, with its size; each that has to be put together from several parts, with
  // nothing. Returns how many are passed over, which a store that grows has. The caller holds h5::lock, or is alone. Throws
  // h5::failure.
  std::uint64_t for_each_chunk_here(
      std::uint64_t first, std::uint64_t count,
      const std::function<bool(const std::vector<hsize_t>& at, std::optional<hsize_t> size)>& visit) const;
  // Of a virtual dataset of which parts are known: the boxes of chunks that may have values of sources.
  box_test boxes_with_values() const;
  // The stored bytes of a chunk, `size` of them, or where they are in the file of bytes->descriptor(); and its filter mask.
  // Throws h5::failure, damaged_chunk. The caller holds h5::lock, or is alone.
  struct stored_chunk {
    std::optional<std::uint64_t> offset = {};
    buffer bytes = {};
    unsigned mask = 0;
    std::size_t file = no_file;  // for raw(): that the offset is in
  };
  static constexpr std::size_t no_file = static_cast<std::size_t>(-1);
  stored_chunk find_chunk(const std::vector<hsize_t>& first, std::uint64_t size) const;

  // For a chunk of this stored size: throws damaged_chunk where to decode it would take memory out of all proportion.
  void require_sensible(std::uint64_t stored) const;
  // Counts the bytes of strings and sequences that were read. Throws skip_dataset where they are out of all proportion to the
  // file.
  void count_variable(std::uint64_t read) const;
  // True where values of this chunk do not come back from the type that they have in memory.
  bool chunk_loses(const std::vector<hsize_t>& at) const;

 private:
  // Where a chunk is one chunk of another dataset: that one, and the chunk's first element in it.
  std::optional<std::pair<const joined_part*, std::vector<hsize_t>>> chunk_elsewhere(const std::vector<hsize_t>& at) const;
  // Whether any value of a chunk that is none of another dataset is stored.
  bool is_stored(const std::vector<hsize_t>& at) const;
  const joined_files& other_files() const;
  void stand_for_all();
  void read_parts(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out, variable_memory* strings) const;
  // Decodes the stored chunks of a block, each once, for H5Dread does not look at how long they become. Throws damaged_chunk,
  // unreadable_range.
  void require_whole_chunks(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) const;
  void require_whole_chunk(const std::vector<hsize_t>& first) const;
  // Of a stored chunk the elements as they are in the file; nothing where it is not stored.
  std::optional<buffer> decoded_chunk(const std::vector<hsize_t>& first) const;
  // Strings of one stored chunk, or of a range of all, without libhdf5; false where that is not for us.
  bool read_strings(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, const std::vector<hsize_t>& room,
                    buffer& out, variable_memory& strings) const;
  std::optional<buffer> elements_of(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                    const std::vector<hsize_t>& room) const;

  bool rechunked_ = false;
  mutable std::atomic<std::uint64_t> variable_bytes_ = 0;
  std::vector<hsize_t> stored_chunk_;  // extent of the source's chunks
  std::uint64_t element_in_file_ = 1;  // bytes
  std::optional<heap_format> heap_;    // where its strings can be read without libhdf5
  struct seen_chunks {
    std::mutex mutex;
    std::set<std::vector<hsize_t>> whole;
  };
  std::unique_ptr<seen_chunks> seen_ = std::make_unique<seen_chunks>();
};

}  // namespace zarrbits::conversion

#endif
