// SPDX-License-Identifier: BSL-1.0
//
// One array of the datasets of many files, one after the other along an axis. Its object is that of the first file
// (source_object::joined); stored bytes and values come from the parts.
//
//   const joined_parts& parts = *object.joined;
//   for (std::size_t i = parts.first_over(0); i < parts.list.size(); ++i) parts.files->dataset(parts.list[i])->read_block(...);
//
#ifndef ZARRBITS_HDF5_JOINED_PARTS_HPP
#define ZARRBITS_HDF5_JOINED_PARTS_HPP

#include "compression/chunk_bytes.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/source_file.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

// A value that the array cannot have. what() is a reason: "its value 7 does not fit in the terms of the first file".
struct no_counterpart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Converts values of a part so that they mean in the array what they mean in their file.
class value_change {
 public:
  virtual ~value_change() = default;
  // The types of a value before and after: native numbers.
  virtual hid_t from() const = 0;
  virtual hid_t to() const = 0;
  // Converts `n` values. Throws no_counterpart.
  virtual void apply(const std::byte* before, std::byte* after, std::size_t n) const = 0;
};

// Where the bytes of a stored chunk are in its file.
struct stored_place {
  std::uint64_t offset = 0, size = 0;  // size 0: it was never written
  unsigned mask = 0;                   // of filters that were left out
};

struct joined_part {
  std::size_t file = 0;                             // index in joined_files
  haddr_t address = 0;                              // address of the dataset in its file
  hsize_t first = 0;                                // start along the axis
  hsize_t count = 0;                                // length along the axis
  bool stored_alike = false;                        // its chunks are chunks of the array, if they lie on the array's grid
  std::shared_ptr<const value_change> change = {};  // null: its values are those of the array
  std::vector<stored_place> chunks = {};            // all of its dataset, in C order; empty: ask its file
};

// A file of which only bytes are read; closed with its last reference.
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

// The files, local or in S3. Only a few are open at a time.
class joined_files {
 public:
  struct entry {
    std::string name;
    file_state state;  // state when its metadata was read; not regular: it was unreadable, and no part uses it
  };
  // Opens `most_open` files at a time: few if they are read in order, because libhdf5 keeps decoded chunks of each.
  joined_files(source_options options, std::uint64_t largest_expansion, std::size_t most_open = 8)
      : options_(std::move(options)), largest_expansion_(largest_expansion), most_open_(most_open) {}

  // Opens a file again. Throws zarrbits::error.
  std::shared_ptr<source_file> open(const std::string& name) const;
  void add(entry file);
  const std::vector<entry>& list() const { return files_; }

  // The dataset of a part. Throws zarrbits::error, h5::failure. The caller holds h5::lock, or is alone.
  std::shared_ptr<const source_dataset> dataset(const joined_part& part) const;
  // Of a local file. Callable from any thread. Throws zarrbits::error.
  std::shared_ptr<const raw_file> raw(std::size_t file) const;
  // Throws zarrbits::error if a file has changed. Asks S3 once for each file that is there.
  void require_unchanged() const;
  bool any_in_s3() const { return any_in_s3_; }

 private:
  // The last requested values, newest first.
  template <class Key, class Value>
  using recent = std::list<std::pair<Key, std::shared_ptr<Value>>>;
  std::shared_ptr<source_file> opened(std::size_t file) const;

  source_options options_;
  std::uint64_t largest_expansion_;
  std::size_t most_open_;
  std::vector<entry> files_;
  bool any_in_s3_ = false;
  mutable recent<std::size_t, source_file> open_;
  mutable recent<std::pair<std::size_t, haddr_t>, const source_dataset> datasets_;
  mutable std::mutex raw_turn_;
  mutable recent<std::size_t, const raw_file> raw_;
};

// A shard in the store. A shard that replaces it begins with the same bytes, so a reader that has the old index still finds its
// chunks.
struct stored_shard {
  std::shared_ptr<const raw_file> file;
  std::uint64_t size = 0;        // bytes before the index
  std::vector<std::byte> index;  // offset and size of each chunk; all bits set if there is none, or it must be made again
};

// The values that an array of a growing store already has, before its first part.
class stored_values {
 public:
  virtual ~stored_values() = default;

  hsize_t count = 0;                                     // length along the axis
  std::vector<std::uint64_t> shape, chunk;               // shape of the array, and of its chunks (inner chunks if it has shards)
  std::vector<hsize_t> per_shard;                        // chunks per shard; all 1 without shards
  json data_type, fill_value, codecs;                    // as in its zarr.json; the codecs are those of a chunk
  h5::handle number;                                     // numbers only: their HDF5 type, in the store's byte order
  std::optional<std::pair<h5::handle, buffer>> missing;  // numbers only: the value for missing ones, and its type

  // As source_dataset::read_block(); writes to the beginning of `out`.
  virtual void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                          const std::vector<hsize_t>& room, buffer& out, variable_memory* strings) const = 0;
  // Empty if the store has no such shard. `at`: its place in the grid of shards. Throws zarrbits::error.
  virtual std::optional<stored_shard> shard(const std::vector<hsize_t>& at) const = 0;
};

struct joined_parts {
  std::size_t axis = 0;
  std::string added;  // name of a new first axis, along which a part is one step; "": the datasets have the axis
  std::shared_ptr<const stored_values> before = {};  // for a growing store; null: the array begins with the first part
  hsize_t length = 0;                                // total length along the axis
  std::vector<hsize_t> chunk;                        // chunk shape of most parts; empty: they are not chunked
  std::vector<joined_part> list;                     // ordered by `first`, without overlap; gaps between them read as fill values
  std::uint64_t stored_bytes = 0;
  h5::handle type;                   // type of the array, if it differs from the first file's
  bool missing_is_nan = false;       // if set, its fill value is NaN
  std::vector<std::string> without;  // names of attributes that the array must not have
  std::shared_ptr<const joined_files> files;

  hsize_t stored_count() const { return before ? before->count : 0; }
  // The first part that ends after this position; list.size() if there is none.
  std::size_t first_over(hsize_t position) const;
  bool has_gaps() const;
};

}  // namespace zarrbits::conversion

#endif
