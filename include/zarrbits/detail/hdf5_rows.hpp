// SPDX-License-Identifier: BSL-1.0
//
// Rows of a dataset, by whole chunks where that is possible. For <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_ROWS_HPP
#define ZARRBITS_DETAIL_HDF5_ROWS_HPP

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/detail/hdf5_form.hpp>
#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::hdf5::detail {

// The values of one dataset, by rows of its first dimension.
class dataset_rows : private dataset_form {
 public:
  dataset_rows(hid_t dataset, const memory_type& memory, bool to_write) : dataset_form(dataset, memory, to_write) {}

  void write(hsize_t first, std::span<const std::byte> rows, std::size_t threads) const {
    if (other_sign_ >= 0 && has_top_bit(rows))
      fail(errc::value_does_not_fit, dataset_,
           "a value is not one of the enumeration, whose integers have the other sign; use values of its own type");
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

  // Chunks that were encoded or decoded here, and values that libhdf5 read or wrote.
  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t libhdf5_values() const { return libhdf5_values_; }

 private:
  mutable std::uint64_t chunks_ = 0, libhdf5_values_ = 0;  // of the calling thread alone

  // Whether an integer is negative, or would be if it were signed.
  bool has_top_bit(std::span<const std::byte> values) const {
    const std::size_t size = H5Tget_size(memory_), top = std::endian::native == std::endian::big ? 0 : size - 1;
    std::byte any{};
    for (std::size_t i = top; i < values.size(); i += size) any |= values[i];
    return (any & std::byte{0x80}) != std::byte{};
  }

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
  static hsize_t product(const std::vector<hsize_t>& of, std::size_t first, std::size_t last) {
    hsize_t n = 1;
    for (std::size_t d = first; d < last; ++d) n *= of[d];
    return n;
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

  // The chunk that begins at an element, in a sentence.
  static std::string chunk_at(const std::vector<hsize_t>& at) {
    std::string text = "the chunk at (";
    for (std::size_t d = 0; d < at.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(at[d]);
    return text + ")";
  }
  void check_chunk(herr_t status, const std::vector<hsize_t>& at, const char* doing) const {
    if (status < 0) fail(errc::io_failed, dataset_, "HDF5 cannot " + std::string(doing) + " " + chunk_at(at) + ": " + reason());
  }
  // What is wrong with a chunk, from a thread that may not call HDF5: the calling one asks it for names.
  struct chunk_failure {
    errc code;
    std::string what;
  };
  template <class Work>
  void with_names(const Work& work) const {
    try {
      work();
    } catch (const chunk_failure& f) {
      fail(f.code, dataset_, f.what);
    }
  }

  void fill(std::span<std::byte> chunk) const {
    for (std::size_t i = 0; i < chunk.size(); i += fill_.size()) std::memcpy(chunk.data() + i, fill_.data(), fill_.size());
  }
  void reverse(std::span<const std::byte> from, std::span<std::byte> to) const {
    (void)zarrbits::decode_chunk(bytes(data_type("uint" + std::to_string(8 * unit_)),
                                       {.endian = std::endian::native == std::endian::big ? endian::little : endian::big}),
                                 from, to);
  }

  struct place {
    std::vector<std::byte> values, stored, other;
    std::span<const std::byte> ready;  // what is to be written
    std::uint32_t mask = 0;
    bool via_libhdf5 = false;
  };

  void write_chunks(hsize_t begin, hsize_t end, std::span<const std::byte> rows, std::size_t threads) const {
    const chunk_list list = chunks_of(begin, end);
    ordered_work work(list.size, threads);
    std::vector<place> places(work.places());
    with_names([&] {
      work.make_then_use(
          [&](std::size_t i, std::size_t p) {
        place& here = places[p];
        const std::vector<hsize_t> at = start_of(list, i);
        std::span<const std::byte> values;
        if (const auto piece = one_piece(list, at)) {
          values = rows.subspan(*piece, chunk_bytes_);
        } else {
          here.values.resize(chunk_bytes_);
          fill(here.values);
          each_line(list, at, [&](std::size_t from, std::size_t to, std::size_t n) {
            std::memcpy(here.values.data() + to, rows.data() + from, n);
          });
          values = here.values;
        }
        here.ready = values;
        encode(here, values);
        if (has_others()) encode_others(here, at);
        else apply_after(here, at);
          },
          [&](std::size_t i, std::size_t p) {
        const place& here = places[p];
        const std::vector<hsize_t> at = start_of(list, i);
        ++chunks_;
        drop_mask(at, here);
        check_chunk(H5Dwrite_chunk(dataset_, H5P_DEFAULT, here.mask, at.data(), here.ready.size(), here.ready.data()), at,
                    "write");
      });
    });
  }

  // libhdf5 keeps the filter mask of a chunk that another one of the same size replaces, so that readers would undo other filters
  // than those of the new one. One of another size is written first, which takes no place of its own. Chunks that are packed, and
  // no more, need no mask: their size says it.
  void drop_mask(const std::vector<hsize_t>& at, const place& here) const {
    if (after_.empty() && !has_others() && !filtered_is_reversed_) return;
    hsize_t size = 0;
    if (H5Dget_chunk_storage_size(dataset_, at.data(), &size) < 0 || size != here.ready.size()) return;
    const std::byte other[2] = {};
    check_chunk(H5Dwrite_chunk(dataset_, H5P_DEFAULT, here.mask, at.data(), size == 1 ? 2 : 1, other), at, "write");
  }

  void encode(place& here, std::span<const std::byte> values) const {
    if (packed_) {
      here.stored.resize(packed_bytes_);
      if (encode_chunk(*packed_, values, here.stored)) {
        here.ready = here.stored;
        return;
      }
    }
    if (packed_ ? is_reversed_ : filtered_is_reversed_.value_or(is_reversed_)) {
      here.stored.resize(chunk_bytes_);
      reverse(values, here.stored);
      here.ready = here.stored;
    }
  }

  void encode_others([[maybe_unused]] place& here, [[maybe_unused]] const std::vector<hsize_t>& at) const {
#ifdef ZARRBITS_HDF5_DECODERS
    here.mask = 0;
    try {
      here.other = zarrbits::hdf5::encode_chunk(others_, here.ready);
    } catch (const error& e) {
      throw chunk_failure{e.kind(), chunk_at(at) + " cannot be written: " + e.what()};
    }
    here.ready = here.other;
#endif
  }

  void apply_after(place& here, const std::vector<hsize_t>& at) const {
    here.mask = 0;
    for (std::size_t i = 0; i < after_.size(); ++i) {
      if (after_[i].apply(here.ready, here.stored, here.other)) continue;
      if (!after_[i].is_optional) throw chunk_failure{errc::io_failed, "zlib cannot compress " + chunk_at(at)};
      here.mask |= 2U << i;
    }
  }

  void read_chunks(hsize_t begin, hsize_t end, std::span<std::byte> rows, std::size_t threads) const {
    const chunk_list list = chunks_of(begin, end);
    ordered_work work(list.size, threads);
    std::vector<place> places(work.places());
    with_names([&] {
      work.use_then_make([&](std::size_t i, std::size_t p) { read_stored(start_of(list, i), places[p]); },
                         [&](std::size_t i, std::size_t p) {
        place& here = places[p];
        if (here.stored.empty() && leaves_absent_) return;
        const std::vector<hsize_t> at = start_of(list, i);
        const auto piece = one_piece(list, at);
        if (!piece) here.values.resize(chunk_bytes_);
        const std::span<std::byte> values = piece ? rows.subspan(*piece, chunk_bytes_) : std::span(here.values);
        decode(here, values, at);
        if (piece) return;
        each_line(list, at, [&](std::size_t to, std::size_t from, std::size_t n) {
          std::memcpy(rows.data() + to, here.values.data() + from, n);
        });
      });
    });
  }

  // Whether HDF5's last error is that a chunk was never written. Only its words tell.
  static bool is_absent() {
    const std::string why = reason();
    return why.find("chunk storage is not allocated") != std::string::npos ||
           why.find("chunk address isn't defined") != std::string::npos;
  }

  // The chunk as it is in the file; or its values in memory, where only libhdf5 can decode it, or says what is wrong.
  void read_stored(const std::vector<hsize_t>& at, place& here) const {
    hsize_t size = 0;
    here.mask = 0;
    here.via_libhdf5 = false;
    // looks one chunk up in the index; H5Dget_chunk_info_by_coord() goes through all of them
    const bool is_found = H5Dget_chunk_storage_size(dataset_, at.data(), &size) >= 0;
    if (is_found ? size == 0 : is_absent()) return here.stored.clear();
    if (is_found && (has_others()     ? size <= largest_foreign()
                     : after_.empty() ? size == chunk_bytes_ || (packed_ && size == packed_bytes_)
                                      : size <= largest_stored())) {
      here.stored.resize(static_cast<std::size_t>(size));
#if H5_VERSION_GE(2, 0, 0)
      std::size_t room = here.stored.size();
      const herr_t status = H5Dread_chunk2(dataset_, H5P_DEFAULT, at.data(), &here.mask, here.stored.data(), &room);
#else
      const herr_t status = H5Dread_chunk(dataset_, H5P_DEFAULT, at.data(), &here.mask, here.stored.data());
#endif
      if (status < 0 && is_absent()) return here.stored.clear();  // HDF5 has it in its cache, as nothing but fill values
      check_chunk(status, at, "read");
      // HDF5 1.10 gives all bits for the only chunk of a dataset that is not in the file yet, or not long enough
      if (here.mask == 0 || (here.mask != UINT32_MAX && (has_others() || (after_.empty() && size == chunk_bytes_)))) {
        ++chunks_;
        return;
      }
    }
    here.via_libhdf5 = true;
    here.stored.resize(chunk_bytes_);
    fill(here.stored);
    std::vector<hsize_t> inside(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) inside[d] = (std::min)(chunk_[d], shape_[d] - at[d]);
    libhdf5_values_ += product(inside, 0, inside.size());
    const handle file(H5Dget_space(dataset_), H5Sclose);
    const handle memory(H5Screate_simple(static_cast<int>(chunk_.size()), chunk_.data(), nullptr), H5Sclose);
    const std::vector<hsize_t> zero(at.size(), 0);
    check(H5Sselect_hyperslab(file, H5S_SELECT_SET, at.data(), nullptr, inside.data(), nullptr), dataset_, "select a chunk");
    check(H5Sselect_hyperslab(memory, H5S_SELECT_SET, zero.data(), nullptr, inside.data(), nullptr), dataset_, "select a chunk");
    check_chunk(H5Dread(dataset_, memory_, memory, file, H5P_DEFAULT, here.stored.data()), at, "read");
  }

  // The most bytes that a chunk has after any of its filters.
  std::size_t largest_stored() const {
    std::size_t size = (std::max)(chunk_bytes_, packed_bytes_);
    for (std::size_t i = 0; i < after_.size(); ++i) size = after_filter::most(size);
    return size;
  }

  // The most bytes that other filters make of a chunk: they expand it less than this, if it has no pattern.
  std::size_t largest_foreign() const { return 2 * chunk_bytes_ + (std::size_t{1} << 16); }

  void decode_others([[maybe_unused]] place& here, [[maybe_unused]] const std::vector<hsize_t>& at) const {
#ifdef ZARRBITS_HDF5_DECODERS
    here.other.resize(chunk_bytes_);
    try {
      zarrbits::hdf5::decode_chunk(others_, here.mask, here.stored, here.other);
    } catch (const error& e) {
      damaged(at, e.what());
    }
    std::swap(here.stored, here.other);
#endif
  }

  void undo_after(place& here, const std::vector<hsize_t>& at) const {
    for (std::size_t i = after_.size(); i-- > 0;) {
      if (const char* wrong = after_[i].undo(here.stored, largest_stored(), here.other)) damaged(at, wrong);
    }
    if (here.stored.size() != chunk_bytes_ && !(packed_ && here.stored.size() == packed_bytes_))
      damaged(at, "its filters make " + std::to_string(here.stored.size()) + " bytes of it");
  }

  void decode(place& here, std::span<std::byte> values, const std::vector<hsize_t>& at) const {
    if (here.stored.empty()) return fill(values);
    if (!here.via_libhdf5 && has_others()) decode_others(here, at);
    else if (!here.via_libhdf5) undo_after(here, at);
    if (here.via_libhdf5) {
      std::memcpy(values.data(), here.stored.data(), values.size());
    } else if (packed_ && here.mask == 0 && here.stored.size() == packed_bytes_) {
      if (const auto r = decode_chunk(*packed_, here.stored, values); !r) damaged(at, packed_->explain(r.failure));
    } else if (here.mask == 0 && !packed_ ? filtered_is_reversed_.value_or(is_reversed_) : is_reversed_) {
      reverse(here.stored, values);
    } else {
      std::memcpy(values.data(), here.stored.data(), values.size());
    }
  }
  [[noreturn]] static void damaged(const std::vector<hsize_t>& at, const std::string& what) {
    throw chunk_failure{errc::damaged_source, chunk_at(at) + " is damaged: " + what};
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
