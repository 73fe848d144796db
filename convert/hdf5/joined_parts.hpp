// SPDX-License-Identifier: BSL-1.0
//
// One array of the datasets of many files, one after the other along an axis. Its object is that of the first file
// (source_object::joined); what is stored and what it reads as comes from the parts.
//
//   const joined_parts& parts = *object.joined;
//   for (std::size_t i = parts.first_over(0); i < parts.list.size(); ++i) parts.files->dataset(parts.list[i])->read_block(...);
//
#ifndef ZARRBITS_CONVERT_HDF5_JOINED_PARTS_HPP
#define ZARRBITS_CONVERT_HDF5_JOINED_PARTS_HPP

#include "convert/codecs/chunk_bytes.hpp"
#include "convert/hdf5/source_dataset.hpp"
#include "convert/hdf5/source_file.hpp"
#include "convert/text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

// Makes values of a part mean in the array what they mean in their file.
class value_change {
 public:
  virtual ~value_change() = default;
  // The types of one value before and after: native numbers.
  virtual hid_t from() const = 0;
  virtual hid_t to() const = 0;
  // `n` values. Throws damaged_chunk where one has no such value.
  virtual void apply(const std::byte* before, std::byte* after, std::size_t n) const = 0;
};

struct joined_part {
  std::size_t file = 0;                             // of joined_files
  haddr_t address = 0;                              // of the dataset in its file
  hsize_t first = 0;                                // where it begins along the axis
  hsize_t count = 0;                                // how much it has of it
  bool stored_alike = false;                        // its chunks are chunks of the array, where they lie on the array's grid
  std::shared_ptr<const value_change> change = {};  // null: its values are the array's
};

// A file of which only bytes are read; closed when the last reference goes.
class raw_file {
 public:
  explicit raw_file(int descriptor) noexcept : descriptor_(descriptor) {}
  ~raw_file();
  raw_file(const raw_file&) = delete;
  raw_file& operator=(const raw_file&) = delete;
  int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// The files, few of them open at a time.
class joined_files {
 public:
  struct entry {
    std::string name;
    file_state state;  // when its metadata were read; not regular: it could not be, and no part is of it
  };
  // `most_open` at a time: few where they come in their order, for libhdf5 keeps decoded chunks of each.
  joined_files(source_options options, std::uint64_t largest_expansion, std::size_t most_open = 8)
      : options_(std::move(options)), largest_expansion_(largest_expansion), most_open_(most_open) {}

  // Opens a file anew. Throws convert_error.
  std::shared_ptr<source_file> open(const std::string& name) const;
  void add(entry file) { files_.push_back(std::move(file)); }
  const std::vector<entry>& list() const { return files_; }

  // The dataset of a part. Throws convert_error, h5::failure. The caller holds h5::lock, or is alone.
  std::shared_ptr<const source_dataset> dataset(const joined_part& part) const;
  // By any thread. Throws convert_error.
  std::shared_ptr<const raw_file> raw(std::size_t file) const;
  // Throws convert_error where one is not as it was.
  void require_unchanged() const;

 private:
  // Of what was asked for last, the newest first.
  template <class Key, class Value>
  using recent = std::list<std::pair<Key, std::shared_ptr<Value>>>;
  std::shared_ptr<source_file> opened(std::size_t file) const;

  source_options options_;
  std::uint64_t largest_expansion_;
  std::size_t most_open_;
  std::vector<entry> files_;
  mutable recent<std::size_t, source_file> open_;
  mutable recent<std::pair<std::size_t, haddr_t>, const source_dataset> datasets_;
  mutable std::mutex raw_turn_;
  mutable recent<std::size_t, const raw_file> raw_;
};

// A shard that a store has: a shard that takes its place begins with the same bytes, so that who has read its index before finds
// its chunks where that says.
struct stored_shard {
  std::shared_ptr<const raw_file> file;
  std::uint64_t size = 0;        // bytes before the index
  std::vector<std::byte> index;  // offset and size of each chunk; all bits set where there is none, or it has to be made anew
};

// What an array of a store that grows has already, before its first part.
class stored_values {
 public:
  virtual ~stored_values() = default;

  hsize_t count = 0;                                     // along the axis
  std::vector<std::uint64_t> shape, chunk;               // of the array, and of its chunks: those inside of shards
  std::vector<hsize_t> per_shard;                        // chunks in a shard; all 1 without shards
  json data_type, fill_value, codecs;                    // as its zarr.json has them; the codecs are those of a chunk
  h5::handle number;                                     // of numbers: their HDF5 type, in the store's byte order
  std::optional<std::pair<h5::handle, buffer>> missing;  // of numbers: what stands for those that are missing, and its type

  // As source_dataset::read_block(), at the beginning of `out`.
  virtual void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                          const std::vector<hsize_t>& room, buffer& out, variable_memory* strings) const = 0;
  // Nothing where the store has no such shard. `at`: its place in the grid of shards. Throws convert_error.
  virtual std::optional<stored_shard> shard(const std::vector<hsize_t>& at) const = 0;
};

struct joined_parts {
  std::size_t axis = 0;
  std::string added;  // the axis is a new one, the first, of this name: a part is one step of it; "": the datasets have it
  std::shared_ptr<const stored_values> before = {};  // of a store that grows; null: the array begins with the first part
  hsize_t length = 0;                                // along the axis, of all
  std::vector<hsize_t> chunk;     // the shape that the chunks of most parts have; empty: they are not stored in chunks
  std::vector<joined_part> list;  // in the order of `first`, which do not overlap; between them there may be gaps, of fill values
  std::uint64_t stored_bytes = 0;
  h5::handle type;                   // of the array, where it is not that of the first file
  bool missing_is_nan = false;       // then its fill value is NaN
  std::vector<std::string> without;  // names of attributes that the array must not have
  std::shared_ptr<const joined_files> files;

  hsize_t stored_count() const { return before ? before->count : 0; }
  // The first part that ends behind this position; list.size() where none does.
  std::size_t first_over(hsize_t position) const;
  bool has_gaps() const;
};

}  // namespace zarrbits::conversion

#endif
