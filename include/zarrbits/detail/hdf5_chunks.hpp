// SPDX-License-Identifier: BSL-1.0
//
// Chunks of a dataset, encoded and decoded outside of libhdf5. For <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_CHUNKS_HPP
#define ZARRBITS_DETAIL_HDF5_CHUNKS_HPP

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/detail/hdf5_form.hpp>
#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5::detail {

class dataset_chunks : protected dataset_form {
 public:
  // Chunks that were encoded or decoded here, and values that libhdf5 read or wrote.
  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t libhdf5_values() const { return libhdf5_values_; }

 protected:
  using dataset_form::dataset_form;

  mutable std::uint64_t chunks_ = 0, libhdf5_values_ = 0;  // of the calling thread alone

  // Whether an integer is negative, or would be if it were signed.
  bool has_top_bit(std::span<const std::byte> values) const {
    const std::size_t size = H5Tget_size(memory_), top = std::endian::native == std::endian::big ? 0 : size - 1;
    std::byte any{};
    for (std::size_t i = top; i < values.size(); i += size) any |= values[i];
    return (any & std::byte{0x80}) != std::byte{};
  }

  void require_representable(std::span<const std::byte> values) const {
    if (other_sign_ >= 0 && has_top_bit(values))
      fail(errc::value_does_not_fit, dataset_,
           "a value is not one of the enumeration, whose integers have the other sign; use values of its own type");
  }

  static hsize_t product(const std::vector<hsize_t>& of, std::size_t first, std::size_t last) {
    hsize_t n = 1;
    for (std::size_t d = first; d < last; ++d) n *= of[d];
    return n;
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

  // start(i) is where chunk i begins, and gather(start, place) its values.
  template <class Start, class Gather>
  void encode_chunks(std::size_t count, std::size_t threads, const Start& start, const Gather& gather) const {
    ordered_work work(count, threads);
    std::vector<place> places(work.places());
    with_names([&] {
      work.make_then_use(
          [&](std::size_t i, std::size_t p) {
        place& here = places[p];
        const std::vector<hsize_t> at = start(i);
        const std::span<const std::byte> values = gather(at, here);
        here.ready = values;
        encode(here, values);
        if (has_others()) encode_others(here, at);
        else apply_after(here, at);
          },
          [&](std::size_t i, std::size_t p) {
        const place& here = places[p];
        const std::vector<hsize_t> at = start(i);
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

  // start(i) is where chunk i begins, and scatter(start, place) decodes it to where its values belong.
  template <class Start, class Scatter>
  void decode_chunks(std::size_t count, std::size_t threads, const Start& start, const Scatter& scatter) const {
    ordered_work work(count, threads);
    std::vector<place> places(work.places());
    with_names([&] {
      work.use_then_make([&](std::size_t i, std::size_t p) { read_stored(start(i), places[p]); },
                         [&](std::size_t i, std::size_t p) {
        if (places[p].stored.empty() && leaves_absent_) return;
        scatter(start(i), places[p]);
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
