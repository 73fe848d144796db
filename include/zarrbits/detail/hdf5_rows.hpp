// SPDX-License-Identifier: BSL-1.0
//
// Rows of a dataset, by whole chunks where that is possible. For <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_ROWS_HPP
#define ZARRBITS_DETAIL_HDF5_ROWS_HPP

#include <zarrbits/detail/hdf5_chunks.hpp>

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

// The values of one dataset, by rows of its first dimension.
class dataset_rows : protected dataset_chunks {
 public:
  using dataset_chunks::chunks, dataset_chunks::libhdf5_values;
  dataset_rows(hid_t dataset, const memory_type& memory, bool to_write) : dataset_chunks(dataset, memory, to_write) {}

  void write(hsize_t first, std::span<const std::byte> rows, std::size_t threads) const {
    require_representable(rows);
    in_parts(first, rows.size(), [&](hsize_t begin, hsize_t end, bool chunks) {
      const std::span<const std::byte> part = rows.subspan((begin - first) * row_bytes_, (end - begin) * row_bytes_);
      if (chunks) return write_chunks(begin, end, part, threads);
      if (!missing_.empty()) fail(errc::io_failed, dataset_, "rows that are not whole chunks cannot be written: " + missing_);
      transfer(begin, end, [&](hid_t m, hid_t f) { return H5Dwrite(dataset_, memory_, m, f, H5P_DEFAULT, part.data()); });
    });
  }

  void read(hsize_t first, std::span<std::byte> rows, std::size_t threads) const {
    in_parts(first, rows.size(), [&](hsize_t begin, hsize_t end, bool chunks) {
      const std::span<std::byte> part = rows.subspan((begin - first) * row_bytes_, (end - begin) * row_bytes_);
      if (chunks) read_chunks(begin, end, part, threads);
      else transfer(begin, end, [&](hid_t m, hid_t f) { return H5Dread(dataset_, memory_, m, f, H5P_DEFAULT, part.data()); });
    });
    const silence no_messages;
    if (other_sign_ >= 0 && has_top_bit(rows))  // HDF5 converts such values: to 0, or to the largest one
      transfer(first, first + rows.size() / row_bytes_,
               [&](hid_t m, hid_t f) { return H5Dread(dataset_, other_sign_, m, f, H5P_DEFAULT, rows.data()); });
  }

 private:
  // Rows before the first whole chunk, those of whole chunks, and those after the last one.
  template <class Part>
  void in_parts(hsize_t first, std::size_t bytes, const Part& part) const {
    const silence no_messages;
    const hsize_t all = shape_[0];
    if (row_bytes_ == 0 ? bytes != 0 : bytes % row_bytes_ != 0)
      fail(errc::element_count_mismatch, dataset_,
           std::to_string(bytes) + " bytes are not a number of whole rows of " + std::to_string(row_bytes_) + " bytes each");
    const hsize_t rows = row_bytes_ == 0 ? 0 : bytes / row_bytes_;
    if (first > all || rows > all - first)
      fail(errc::invalid_range, dataset_,
           "rows " + std::to_string(first) + " to " + std::to_string(first + rows) + " of " + std::to_string(all) +
               "; extend it first (H5Dset_extent)");
    if (rows == 0) return;
    const hsize_t end = first + rows;
    hsize_t begin = end, stop = end;  // of whole chunks
    if (!chunk_.empty()) {
      const hsize_t each = chunk_[0];
      begin = (std::min)(end, (first + each - 1) / each * each);
      stop = end == all ? end : (std::max)(begin, end / each * each);
    }
    if (first < begin) part(first, begin, false);
    if (begin < stop) part(begin, stop, true);
    if (stop < end) part(stop, end, false);
  }

  template <class Call>
  void transfer(hsize_t begin, hsize_t end, const Call& call) const {
    std::vector<hsize_t> start(shape_.size(), 0), count = shape_;
    start[0] = begin;
    count[0] = end - begin;
    libhdf5_values_ += product(count, 0, count.size());
    const handle file(H5Dget_space(dataset_), H5Sclose);
    const handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    check(H5Sselect_hyperslab(file, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), dataset_, "select the rows");
    check(call(memory, file), dataset_, "transfer the rows");
  }

  // The chunks that cover some rows, in C order.
  struct chunk_list {
    std::vector<hsize_t> counts;
    std::size_t size = 1;
    hsize_t begin = 0, end = 0;  // rows
  };
  chunk_list chunks_of(hsize_t begin, hsize_t end) const {
    chunk_list list{std::vector<hsize_t>(shape_.size()), 1, begin, end};
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const hsize_t length = d == 0 ? end - begin : shape_[d];
      list.counts[d] = (length + chunk_[d] - 1) / chunk_[d];
      list.size *= static_cast<std::size_t>(list.counts[d]);
    }
    return list;
  }
  // Element of the dataset at which chunk i begins.
  std::vector<hsize_t> start_of(const chunk_list& list, std::size_t i) const {
    std::vector<hsize_t> at(shape_.size());
    for (std::size_t d = at.size(); d-- > 0;) {
      at[d] = i % list.counts[d] * chunk_[d];
      i /= static_cast<std::size_t>(list.counts[d]);
    }
    at[0] += list.begin;
    return at;
  }

  // Where a chunk's values are in the rows, if they are one piece of them.
  std::optional<std::size_t> one_piece(const chunk_list& list, const std::vector<hsize_t>& at) const {
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (d == 0 ? at[0] + chunk_[0] > list.end : at[d] + chunk_[d] > shape_[d]) return {};
      if (d > 0 && chunk_[d] != shape_[d] && product(chunk_, 0, d) != 1) return {};
    }
    return offset_of(list, at);
  }
  std::size_t offset_of(const chunk_list& list, const std::vector<hsize_t>& at) const {
    hsize_t element = at[0] - list.begin;
    for (std::size_t d = 1; d < at.size(); ++d) element = element * shape_[d] + at[d];
    return static_cast<std::size_t>(element) * fill_.size();
  }

  // Calls copy(offset in the rows, offset in the chunk, bytes) for each line of the chunk that lies in the dataset.
  template <class Copy>
  void each_line(const chunk_list& list, const std::vector<hsize_t>& at, const Copy& copy) const {
    const std::size_t last = at.size() - 1, size = fill_.size();
    std::vector<hsize_t> inside(at.size()), index(at.size(), 0);
    for (std::size_t d = 0; d < at.size(); ++d) inside[d] = (std::min)(chunk_[d], (d == 0 ? list.end : shape_[d]) - at[d]);
    for (;;) {
      std::vector<hsize_t> element = at;
      hsize_t in_chunk = 0;
      for (std::size_t d = 0; d < at.size(); ++d) {
        element[d] += index[d];
        in_chunk = in_chunk * chunk_[d] + index[d];
      }
      copy(offset_of(list, element), static_cast<std::size_t>(in_chunk) * size, static_cast<std::size_t>(inside[last]) * size);
      std::size_t d = last;
      while (d > 0 && ++index[d - 1] == inside[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

  void write_chunks(hsize_t begin, hsize_t end, std::span<const std::byte> rows, std::size_t threads) const {
    const chunk_list list = chunks_of(begin, end);
    encode_chunks(
        list.size, threads, [&](std::size_t i) { return start_of(list, i); },
        [&](const std::vector<hsize_t>& at, place& here) -> std::span<const std::byte> {
          if (const auto piece = one_piece(list, at)) return rows.subspan(*piece, chunk_bytes_);
          here.values.resize(chunk_bytes_);
          fill(here.values);
          each_line(list, at, [&](std::size_t from, std::size_t to, std::size_t n) {
            std::memcpy(here.values.data() + to, rows.data() + from, n);
          });
          return here.values;
        });
  }

  void read_chunks(hsize_t begin, hsize_t end, std::span<std::byte> rows, std::size_t threads) const {
    const chunk_list list = chunks_of(begin, end);
    decode_chunks(
        list.size, threads, [&](std::size_t i) { return start_of(list, i); },
        [&](const std::vector<hsize_t>& at, place& here) {
      const auto piece = one_piece(list, at);
      if (!piece) here.values.resize(chunk_bytes_);
      const std::span<std::byte> values = piece ? rows.subspan(*piece, chunk_bytes_) : std::span(here.values);
      decode(here, values, at);
      if (piece) return;
      each_line(list, at, [&](std::size_t to, std::size_t from, std::size_t n) {
        std::memcpy(rows.data() + to, here.values.data() + from, n);
      });
        });
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
