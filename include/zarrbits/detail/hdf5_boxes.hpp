// SPDX-License-Identifier: BSL-1.0
//
// Boxes of a dataset, by whole chunks where that is possible. For <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_BOXES_HPP
#define ZARRBITS_DETAIL_HDF5_BOXES_HPP

#include <zarrbits/detail/box_chunks.hpp>
#include <zarrbits/detail/hdf5_rows.hpp>
#include <zarrbits/hdf5_box.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5::detail {

// The values of one dataset in a box.
class dataset_boxes : private dataset_rows {
 public:
  using dataset_chunks::chunks, dataset_chunks::libhdf5_values;
  using dataset_rows::dataset_rows;

  // The values of a box, in C order.
  void write(const hdf5_box& requested, std::span<const std::byte> values, std::size_t threads) const {
    const silence no_messages;
    const hdf5_box box = checked(requested, values.size());
    if (is_rows(box)) return dataset_rows::write(box.first[0], values, threads);
    require_representable(values);
    if (values.empty()) return;
    const std::optional<hdf5_box> whole = whole_chunks_of(box);
    if (whole) {
      const box_chunks list(*whole, chunk_);
      const hsize_t size = fill_.size();
      encode_chunks(
          list.size(), threads, [&](std::size_t i) { return list.start_of<hsize_t>(i); },
          [&](const std::vector<hsize_t>& at, place& here) -> std::span<const std::byte> {
            here.values.resize(chunk_bytes_);
            fill(here.values);
            list.each_run(at, [&](std::size_t from, std::size_t to, std::size_t n) {
              const std::size_t element = element_in(box, *whole, from);
              std::memcpy(here.values.data() + to * size, values.data() + element * size, n * size);
            });
            return here.values;
          });
    }
    if (!missing_.empty() && !(whole && whole->count == box.count))
      fail(errc::io_failed, dataset_, "parts of chunks cannot be written: " + missing_);
    // around the whole chunks: a slab before and one behind them along each dimension
    hdf5_box rest = box;
    for (std::size_t d = 0; whole && d < shape_.size(); ++d) {
      const std::uint64_t end = rest.first[d] + rest.count[d], inner_end = whole->first[d] + whole->count[d];
      for (const auto& [first, last] : {std::pair{rest.first[d], whole->first[d]}, std::pair{inner_end, end}}) {
        if (first == last) continue;
        hdf5_box slab = rest;
        slab.first[d] = first;
        slab.count[d] = last - first;
        write_part(box, slab, values);
      }
      rest.first[d] = whole->first[d];
      rest.count[d] = whole->count[d];
    }
    if (!whole) write_part(box, box, values);
  }

  void read(const hdf5_box& requested, std::span<std::byte> values, std::size_t threads) const {
    const silence no_messages;
    const hdf5_box box = checked(requested, values.size());
    if (is_rows(box)) return dataset_rows::read(box.first[0], values, threads);
    if (values.empty()) return;
    const auto by_libhdf5 = [&](hid_t type) {
      transfer(box, box, [&](hid_t m, hid_t f) { return H5Dread(dataset_, type, m, f, H5P_DEFAULT, values.data()); });
    };
    const std::optional<box_chunks> list = chunk_.empty() ? std::nullopt : std::optional<box_chunks>(std::in_place, box, chunk_);
    // libhdf5 has a cache of decoded chunks, for boxes within one
    if (!list || (list->size() == 1 && missing_.empty())) {
      by_libhdf5(memory_);
    } else {
      const std::size_t size = fill_.size();
      decode_chunks(
          list->size(), threads, [&](std::size_t i) { return list->start_of<hsize_t>(i); },
          [&](const std::vector<hsize_t>& at, place& here) {
        here.values.resize(chunk_bytes_);
        decode(here, here.values, at);
        list->each_run(at, [&](std::size_t to, std::size_t from, std::size_t n) {
          std::memcpy(values.data() + to * size, here.values.data() + from * size, n * size);
        });
          });
    }
    if (other_sign_ >= 0 && has_top_bit(values)) by_libhdf5(other_sign_);
  }

 private:
  // The box with its steps, when it lies in the dataset and has so many values.
  hdf5_box checked(const hdf5_box& requested, std::size_t bytes) const {
    hdf5_box box = requested;
    const std::size_t rank = shape_.size(), size = H5Tget_size(memory_);
    if (box.step.empty()) box.step.assign(rank, 1);
    if (box.first.size() != rank || box.count.size() != rank || box.step.size() != rank)
      fail(errc::invalid_range, dataset_, "the box does not have the " + std::to_string(rank) + " dimensions of the dataset");
    std::size_t values = 1;
    bool is_larger = false;
    for (std::size_t d = 0; d < rank; ++d) {
      if (box.step[d] == 0) fail(errc::invalid_range, dataset_, "a step of the box is 0; use at least 1");
      const bool has_any = box.count[d] > 0;
      if (box.first[d] > shape_[d] ||
          (has_any && (box.first[d] == shape_[d] || box.count[d] - 1 > (shape_[d] - 1 - box.first[d]) / box.step[d])))
        fail(errc::invalid_range, dataset_,
             "the box ends after the " + std::to_string(shape_[d]) + " elements of dimension " + std::to_string(d) +
                 "; extend the dataset first (H5Dset_extent)");
      is_larger = is_larger || (values != 0 && box.count[d] > bytes / size / values);
      values *= static_cast<std::size_t>(box.count[d]);
    }
    const bool is_empty = std::find(box.count.begin(), box.count.end(), 0) != box.count.end();
    if (is_empty ? bytes != 0 : is_larger || values * size != bytes)
      fail(errc::element_count_mismatch, dataset_,
           std::to_string(bytes) + " bytes are not the values of the box, of " + std::to_string(size) + " bytes each");
    return box;
  }

  // Whether a box has whole rows, one after the other.
  bool is_rows(const hdf5_box& box) const {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (box.step[d] != 1 || (d > 0 && box.count[d] != shape_[d])) return false;
    }
    return true;
  }

  // The chunks that lie in a box with all of their elements in the dataset; empty if none does.
  std::optional<hdf5_box> whole_chunks_of(const hdf5_box& box) const {
    if (chunk_.empty()) return {};
    hdf5_box whole = box;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const std::uint64_t end = box.first[d] + box.count[d], begin = (box.first[d] + chunk_[d] - 1) / chunk_[d] * chunk_[d],
                          stop = end == shape_[d] ? end : end / chunk_[d] * chunk_[d];
      if (box.step[d] != 1 || begin >= stop) return {};
      whole.first[d] = begin;
      whole.count[d] = stop - begin;
    }
    return whole;
  }

  // The number of an element in `box`, that has this number in a part of it. Both have no steps.
  static std::size_t element_in(const hdf5_box& box, const hdf5_box& part, std::size_t number) {
    std::uint64_t element = 0, factor = 1;
    for (std::size_t d = box.count.size(); d-- > 0;) {
      element += (part.first[d] - box.first[d] + number % part.count[d]) * factor;
      number /= static_cast<std::size_t>(part.count[d]);
      factor *= box.count[d];
    }
    return static_cast<std::size_t>(element);
  }

  void write_part(const hdf5_box& box, const hdf5_box& part, std::span<const std::byte> values) const {
    transfer(box, part, [&](hid_t m, hid_t f) { return H5Dwrite(dataset_, memory_, m, f, H5P_DEFAULT, values.data()); });
  }

  // A part of a box whose values are in memory; one with steps is its own only part.
  template <class Call>
  void transfer(const hdf5_box& box, const hdf5_box& part, const Call& call) const {
    const std::vector<hsize_t> all(box.count.begin(), box.count.end()), first(part.first.begin(), part.first.end()),
        count(part.count.begin(), part.count.end()), step(part.step.begin(), part.step.end());
    std::vector<hsize_t> in_memory;
    for (std::size_t d = 0; d < first.size(); ++d) in_memory.push_back(part.first[d] - box.first[d]);
    libhdf5_values_ += product(count, 0, count.size());
    const handle file(H5Dget_space(dataset_), H5Sclose);
    const handle memory(H5Screate_simple(static_cast<int>(all.size()), all.data(), nullptr), H5Sclose);
    check(H5Sselect_hyperslab(file, H5S_SELECT_SET, first.data(), step.data(), count.data(), nullptr), dataset_,
          "select the box");
    check(H5Sselect_hyperslab(memory, H5S_SELECT_SET, in_memory.data(), nullptr, count.data(), nullptr), dataset_,
          "select the box");
    check(call(memory, file), dataset_, "transfer the box");
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
