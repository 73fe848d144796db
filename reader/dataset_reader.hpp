// SPDX-License-Identifier: BSL-1.0
//
// Reads boxes of one dataset. The calling thread and its helpers find, read and decode chunks; libhdf5 only looks up where they
// are, and reads what nothing here can.
//
//   const dataset_reader values(file, address, "/a/b", cache, counters);
//   values.read({{0, 0}, {10, 10}, {1, 2}}, out, 2);
//
#ifndef ZARRBITS_READER_DATASET_READER_HPP
#define ZARRBITS_READER_DATASET_READER_HPP

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/source_files.hpp"
#include "hdf5/virtual_dataset.hpp"
#include "reader/chunk_cache.hpp"
#include "reader/object_paths.hpp"
#include "reader/value_layout.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace zarrbits::reader {

// How the values of a file were read.
struct read_counters {
  std::atomic<std::uint64_t> decoded_chunks = 0;  // by our decoders
  std::atomic<std::uint64_t> cached_chunks = 0;   // decoded before
  std::atomic<std::uint64_t> empty_chunks = 0;    // never written
  std::atomic<std::uint64_t> plain_bytes = 0;     // of values without filters
  std::atomic<std::uint64_t> libhdf5_values = 0;  // that H5Dread read
};

// Thread-safe.
class dataset_reader {
 public:
  // Throws hdf5::failure, zarrbits::error. The caller holds hdf5::lock.
  dataset_reader(std::shared_ptr<hdf5::source_file> file, haddr_t address, const std::string& path,
                 std::shared_ptr<chunk_cache> cache, std::shared_ptr<read_counters> counters);

  const hdf5::chunk_source& dataset() const { return *data_; }
  const value_layout& values() const { return values_; }
  // The fill value as in memory; empty if undefined, or if values are variable.
  const std::string& fill_value() const { return fill_; }

  // `out` gets the values in C order. Throws zarrbits::error, hdf5::failure, hdf5::unsupported_dataset, io::read_error,
  // compressors::corrupt_chunk.
  void read(const array::strided_box& selected, std::span<std::byte> out, unsigned threads) const;
  // Values of any type, packed.
  std::string read_packed(const array::strided_box& selected, object_paths& paths) const;
  // Converts values in memory to the type `target`, which has `size` bytes.
  void convert(std::span<const std::byte> values, hid_t target, std::size_t size, std::span<std::byte> out) const;

 private:
  struct axis_part;
  struct output;
  using block_visitor = std::function<void(const array::strided_box& part, const array::extents& target,
                                           compressors::buffer& hull, const array::box& of_hull)>;

  void require_readable(const array::strided_box& selected) const;
  void require_unchanged() const;
  static std::uint64_t bytes_at_once(const output& to, std::uint64_t threads);
  void read_chunks(const output& to, unsigned threads) const;
  void read_chunk(const array::extents& index, const array::strided_box& part, const array::extents& target,
                  const output& to) const;
  void read_contiguous(std::uint64_t address, const output& to, unsigned threads) const;
  // Elements of a box that are stored one after the other, without filters, from `offset` on.
  void read_plain(std::uint64_t offset, const array::box& of_stored, const array::strided_box& part, const array::extents& target,
                  const output& to) const;
  void fill(const array::extents& shape, const array::extents& target, const output& to) const;
  void read_blocks(const array::strided_box& selected, hdf5::vlen_allocator* strings, const block_visitor& visit) const;
  chunk_cache::key key_of(const array::extents& index) const;
  hdf5::stored_place locate(const array::extents& index) const;
  compressors::buffer decode(const array::extents& index, const hdf5::stored_place& place) const;
  compressors::buffer converted(compressors::buffer values) const;

  const std::shared_ptr<hdf5::source_file> file_;
  hdf5::source_object object_;
  std::unique_ptr<hdf5::chunk_source> data_;
  value_layout values_;
  std::string fill_;
  array::chunk_grid grid_;
  bool by_chunks_ = false;
  std::optional<std::uint64_t> address_;  // of contiguous values
  const std::shared_ptr<chunk_cache> cache_;
  const std::shared_ptr<read_counters> counters_;
  mutable std::mutex places_mutex_;
  mutable std::unordered_map<std::uint64_t, hdf5::stored_place> places_;
};

}  // namespace zarrbits::reader

#endif
