// SPDX-License-Identifier: BSL-1.0
//
// Where the sources have the values of a block of a virtual dataset: nowhere, in one stored chunk of one source, or anywhere.
//
//   const std::unique_ptr<const virtual_parts> mapped = parts_of_virtual(data);
//   if (mapped && mapped->intersects(first, count)) ...
//
#ifndef ZARRBITS_HDF5_VIRTUAL_PARTS_HPP
#define ZARRBITS_HDF5_VIRTUAL_PARTS_HPP

#include "array/chunk_grid.hpp"
#include "hdf5/opened_dataset.hpp"
#include "hdf5/source_files.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace zarrbits::hdf5 {

// Regular elements along one dimension: `count` blocks of `block` elements, `stride` apart.
struct strided_blocks {
  std::uint64_t start = 0, stride = 1, count = 1, block = 0;
  bool unlimited = false;  // it grows with the dataset
  bool intersects(std::uint64_t first, std::uint64_t n) const;
  // Saturates at the largest number.
  std::uint64_t elements() const;
  std::uint64_t end() const;
  // The number of elements of the strided_blocks before `first`, if `first` is one of them and the next `n` are without a gap.
  std::optional<std::uint64_t> number_of(std::uint64_t first, std::uint64_t n) const;
  // The inverse: the position of the element with this number, if the next `n` are without a gap.
  std::optional<std::uint64_t> position_of(std::uint64_t number, std::uint64_t n) const;
};

class virtual_parts {
 public:
  struct part {
    std::vector<strided_blocks> virtual_blocks;      // the elements of the virtual dataset that it fills
    std::vector<strided_blocks> source_blocks = {};  // the elements of its source; empty: no chunk of it is a chunk of the array
    array::extents extent = {};                      // of its source
    array::extents chunk = {};  // shape of its source's chunks, in dimensions of the virtual dataset; empty with `source_blocks`
    std::size_t file = 0;       // index in files()
    haddr_t address = 0;        // address of the source in its file
    bool is_available = true;   // otherwise its elements read as fill value
  };
  // `chunk`: empty, or the chunk shape of most sources that have `source_blocks`, in dimensions of the virtual dataset.
  virtual_parts(std::vector<part> list, array::extents chunk, std::shared_ptr<const source_files> files);

  // True if a block can hold mapped values. Of a virtual dataset of terabytes with few sources, only such blocks are read.
  bool intersects(const array::extents& first, const array::extents& count) const;
  // Adds the files whose chunks may be in a block.
  void add_files(const array::extents& first, const array::extents& count, std::set<std::size_t>& numbers) const;
  // The shape of chunks that may be chunks of the array; empty if none may be.
  const array::extents& chunk() const { return chunk_; }
  // The chunk of a source that a chunk of the grid is.
  std::optional<chunk_in_files> find(const array::chunk_grid& grid, const array::extents& index) const;
  // As in chunk_source. No counts if blocks repeat within a part.
  std::optional<array::chunk_grid> grid_of_parts(const array::chunk_grid& regular) const;
  reused_chunks reuse_on(const array::chunk_grid& grid) const;
  const source_files& files() const { return *files_; }

 private:
  // Calls `f` with each part that intersects a block, until `f` returns false.
  template <class F>
  void for_each_over(const array::extents& first, const array::extents& count, const F& f) const;

  std::vector<part> list_;  // by their start along axis_
  std::size_t axis_ = 0;    // the axis along which most of them begin at different places
  array::extents ends_;     // largest end along axis_ of a part and all before it
  array::extents chunk_;
  std::shared_ptr<const source_files> files_;
};

// Null if the mapping of a virtual dataset is unknown, or it has no dimensions. Throws zarrbits::error, failure.
std::unique_ptr<const virtual_parts> parts_of_virtual(const opened_dataset& data);

}  // namespace zarrbits::hdf5

#endif
