// SPDX-License-Identifier: BSL-1.0
//
// The chunks of a dataset that have elements of a box, and where those are in both. For <zarrbits/hdf5.hpp>, without HDF5.
//
#ifndef ZARRBITS_DETAIL_BOX_CHUNKS_HPP
#define ZARRBITS_DETAIL_BOX_CHUNKS_HPP

#include <zarrbits/hdf5_box.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zarrbits::hdf5::detail {

class box_chunks {
 public:
  using numbers = std::vector<std::uint64_t>;

  // `box`: in the dataset, with a step of at least 1 along each dimension, and not empty. `chunk`: the shape of its chunks.
  template <class Shape>
  box_chunks(const hdf5_box& box, const Shape& chunk) : box_(box), chunk_(chunk.begin(), chunk.end()), along_(chunk_.size()) {
    for (std::size_t d = 0; d < chunk_.size(); ++d) {
      const std::uint64_t last = box.first[d] + (box.count[d] - 1) * box.step[d];
      if (box.step[d] <= chunk_[d]) {
        for (std::uint64_t i = box.first[d] / chunk_[d]; i <= last / chunk_[d]; ++i) along_[d].push_back(i);
      } else {  // no two elements are in one chunk
        for (std::uint64_t k = 0; k < box.count[d]; ++k) along_[d].push_back((box.first[d] + k * box.step[d]) / chunk_[d]);
      }
      size_ *= along_[d].size();
    }
  }

  std::size_t size() const { return size_; }

  // The element of the dataset at which chunk i begins, in C order.
  template <class Index>
  std::vector<Index> start_of(std::size_t i) const {
    std::vector<Index> start(chunk_.size());
    for (std::size_t d = start.size(); d-- > 0;) {
      start[d] = along_[d][i % along_[d].size()] * chunk_[d];
      i /= along_[d].size();
    }
    return start;
  }

  // Calls copy(element of the box, element of the chunk, elements) for each run of elements that both have one after the other.
  // `start`: where the chunk begins.
  template <class Start, class Copy>
  void each_run(const Start& start, const Copy& copy) const {
    const std::size_t rank = chunk_.size(), last = rank - 1;
    numbers first(rank), end(rank);  // elements of the box that are in the chunk
    for (std::size_t d = 0; d < rank; ++d) {
      first[d] = start[d] <= box_.first[d] ? 0 : steps_to(d, start[d]);
      end[d] = (std::min)(box_.count[d], steps_to(d, start[d] + chunk_[d]));
    }
    numbers index = first;
    for (;;) {
      std::uint64_t in_box = 0, in_chunk = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        in_box = in_box * box_.count[d] + index[d];
        in_chunk = in_chunk * chunk_[d] + (box_.first[d] + index[d] * box_.step[d] - start[d]);
      }
      const auto n = static_cast<std::size_t>(end[last] - first[last]);
      if (box_.step[last] == 1) {
        copy(static_cast<std::size_t>(in_box), static_cast<std::size_t>(in_chunk), n);
      } else {
        for (std::size_t k = 0; k < n; ++k)
          copy(static_cast<std::size_t>(in_box) + k, static_cast<std::size_t>(in_chunk + k * box_.step[last]), 1);
      }
      std::size_t d = last;
      while (d > 0 && ++index[d - 1] == end[d - 1]) {
        --d;
        index[d] = first[d];
      }
      if (d == 0) return;
    }
  }

 private:
  // Steps from the box's first element to the first one that is not before `element`, which is behind it.
  std::uint64_t steps_to(std::size_t d, std::uint64_t element) const {
    return (element - box_.first[d] + box_.step[d] - 1) / box_.step[d];
  }

  hdf5_box box_;
  numbers chunk_;
  std::vector<numbers> along_;  // numbers of chunks
  std::size_t size_ = 1;
};

}  // namespace zarrbits::hdf5::detail

#endif
