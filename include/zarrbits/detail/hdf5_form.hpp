// SPDX-License-Identifier: BSL-1.0
//
// What a dataset is for <zarrbits/hdf5.hpp>: its rows, and whether its chunks can be made without libhdf5.
//
#ifndef ZARRBITS_DETAIL_HDF5_FORM_HPP
#define ZARRBITS_DETAIL_HDF5_FORM_HPP

#include <zarrbits/detail/hdf5_after.hpp>
#include <zarrbits/detail/hdf5_memory.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/hdf5.h>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef ZARRBITS_HDF5_DECODERS
#include <zarrbits/hdf5_decoders.hpp>
#endif

static_assert(H5_VERSION_GE(1, 10, 5), "<zarrbits/hdf5.hpp> needs HDF5 1.10.5 or newer, which says where chunks are");

namespace zarrbits::hdf5::detail {

// A dataset, and the type that its values have in memory.
class dataset_form {
 protected:
  dataset_form(hid_t dataset, const memory_type& memory, bool to_write)
      : dataset_(dataset), memory_(-1, H5Tclose), other_sign_(-1, H5Tclose) {
    const silence no_messages;
    const handle space(H5Dget_space(dataset), H5Sclose);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (rank < 0) fail(errc::io_failed, dataset, "it is not an open dataset: " + reason());
    if (rank == 0) fail(errc::invalid_range, dataset, "it has no dimension, and so no rows");
    if (to_write) refuse_read_only();
    shape_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space, shape_.data(), nullptr);
    const handle type(H5Dget_type(dataset), H5Tclose);
    choose_memory(type, memory, to_write);
    row_bytes_ = H5Tget_size(memory_);
    for (std::size_t d = 1; d < shape_.size(); ++d) row_bytes_ *= static_cast<std::size_t>(shape_[d]);
    const handle properties(H5Dget_create_plist(dataset), H5Pclose);
    ask_for_filters(properties);
    choose_chunks(properties, type, to_write);
  }

  hid_t dataset_;
  handle memory_;
  handle other_sign_;  // the numbers given, where the integers under an enumeration have the other sign; else negative
  std::vector<hsize_t> shape_, chunk_;
  std::size_t row_bytes_ = 0, chunk_bytes_ = 0, packed_bytes_ = 0, unit_ = 1;
  std::vector<std::byte> fill_;  // one value in memory
  std::optional<codec> packed_;
  std::vector<after_filter> after_;  // the filters after packbits or bytes
#ifdef ZARRBITS_HDF5_DECODERS
  std::vector<chunk_filter> others_;  // all filters, if the program has decoders (to write: encoders) for them
#endif
  std::string missing_;                       // why HDF5 does not have the plugin of a filter; empty if it has
  bool leaves_absent_ = false;                // a chunk that was never written has no values at all
  bool is_reversed_ = false;                  // the datatype's byte order is not this machine's
  std::optional<bool> filtered_is_reversed_;  // the same of what the filter bytes makes

 private:
  // H5Dwrite_chunk() does not ask: it would keep chunks that never reach the file, and this process would read them back.
  void refuse_read_only() const {
    const handle file(H5Iget_file_id(dataset_), H5Fclose);
    unsigned intent = 0;
    if (H5Fget_intent(file, &intent) < 0) fail(errc::io_failed, dataset_, "HDF5 does not say how its file is open: " + reason());
    if ((intent & H5F_ACC_RDWR) == 0)
      fail(errc::io_failed, dataset_, "its file is open for reading only; open it with H5F_ACC_RDWR to write to it");
  }

  // HDF5 loads a plugin when a dataset is created or read, never when it is written: it would leave an optional filter out.
  void ask_for_filters(hid_t properties) {
    for (int i = properties < 0 ? 0 : H5Pget_nfilters(properties); i-- > 0;) {
      unsigned flags = 0;
      std::size_t n = 0;
      const H5Z_filter_t id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &n, nullptr, 0, nullptr, nullptr);
      const char* plugin = id == ZARRBITS_HDF5_PACKBITS_ID ? "libzarrbits_packbits.so"
                           : id == ZARRBITS_HDF5_BYTES_ID  ? "libzarrbits_bytes.so"
                                                           : nullptr;
      if (!plugin) H5Zfilter_avail(id);
      else if (zarrbits_hdf5_find(id, plugin) < 0) missing_ = reason(H5E_WALK_DOWNWARD);
    }
  }

  void choose_memory(hid_t type, const memory_type& wanted, bool to_write) {
    memory_ = memory_for(type, wanted, to_write);
    if (memory_ < 0)
      fail(errc::unsupported_data_type, dataset_,
           "its elements are " + class_name(type) + " of " + std::to_string(H5Tget_size(type)) + " bytes, and those given " +
               wanted.name() + " of " + std::to_string(wanted.size) +
               " bytes; use values of its own type, or numbers that HDF5 converts");
    if (H5Tget_class(type) == H5T_ENUM && wanted.kind == memory_type::class_type::integer &&
        H5Tget_size(memory_) == H5Tget_size(type) && (base_sign(type) == H5T_SGN_2) != wanted.is_signed)
      other_sign_ = handle(H5Tcopy(wanted.number), H5Tclose);
  }
  static H5T_sign_t base_sign(hid_t enumeration) { return H5Tget_sign(handle(H5Tget_super(enumeration), H5Tclose)); }

  // Decides whether chunks are made here: chunk_ is empty otherwise.
  void choose_chunks(hid_t properties, hid_t type, [[maybe_unused]] bool to_write) {
    if (properties < 0 || H5Pget_layout(properties) != H5D_CHUNKED || on_several_ranks()) return;
    std::vector<hsize_t> chunk(shape_.size());
    if (H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) < 0) return;
    unsigned options = 0;
    if (H5Pget_chunk_opts(properties, &options) < 0 || options != 0) return;
    if (H5Tdetect_class(type, H5T_STRING) != 0 && (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)) return;
    const std::size_t size = H5Tget_size(memory_);
    std::size_t elements = 1;
    for (const hsize_t n : chunk) elements *= static_cast<std::size_t>(n);
    if (!choose_order(type, size)) return;
    const int filters = H5Pget_nfilters(properties);
    if (filters >= 1 && !choose_others(properties, filters, to_write)) {
      unsigned flags = 0, cd[16] = {};
      std::size_t n = 16;
      const H5Z_filter_t id = H5Pget_filter2(properties, 0, &flags, &n, cd, 0, nullptr, nullptr);
      if (!(id == ZARRBITS_HDF5_PACKBITS_ID && choose_packbits(n, cd, elements)) &&
          !(id == ZARRBITS_HDF5_BYTES_ID && choose_bytes(n, cd)))
        return;
      if (!choose_after(properties, filters)) return;
    }
    if (filters < 0) return;
    if (!has_others() && !packed_ && after_.empty() && !filtered_is_reversed_.value_or(is_reversed_))
      return;  // nothing but copies, which HDF5 does as well
    fill_.resize(size);
    H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_IFSET;
    if (H5Pfill_value_defined(properties, &fill) < 0 || H5Pget_fill_time(properties, &when) < 0) return;
    // HDF5 then leaves the memory of who reads such chunks as it is, and what is beyond the edge zero
    leaves_absent_ = fill == H5D_FILL_VALUE_UNDEFINED || when == H5D_FILL_TIME_NEVER;
    if (!leaves_absent_ && H5Pget_fill_value(properties, memory_, fill_.data()) < 0) return;
    chunk_bytes_ = elements * size;
    chunk_ = std::move(chunk);
  }

  // Decoders, or encoders, for all filters, if the program has them.
  bool choose_others([[maybe_unused]] hid_t properties, [[maybe_unused]] int filters, [[maybe_unused]] bool to_write) {
#ifdef ZARRBITS_HDF5_DECODERS
    for (int i = 0; i < filters; ++i) {
      constexpr std::size_t max_values = 256;  // H5Pget_filter2() takes no more
      unsigned flags = 0;
      std::size_t n = max_values;
      std::vector<unsigned> values(n);
      const H5Z_filter_t id =
          H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &n, values.data(), 0, nullptr, nullptr);
      values.resize((std::min)(n, max_values));
      others_.push_back({id, std::move(values)});
    }
    if (!(to_write ? has_encoders(others_) : has_decoders(others_))) others_.clear();
#endif
    return has_others();
  }

 protected:
  bool has_others() const {
#ifdef ZARRBITS_HDF5_DECODERS
    return !others_.empty();
#else
    return false;
#endif
  }

 private:
  bool on_several_ranks() const {
#ifdef H5_HAVE_PARALLEL
    const handle file(H5Iget_file_id(dataset_), H5Fclose);
    const handle access(H5Fget_access_plist(file), H5Pclose);
    return H5Pget_driver(access) == H5FD_MPIO;
#else
    return false;
#endif
  }

  // How a value's bytes lie in the file: as in memory, or each number reversed.
  bool choose_order(hid_t type, std::size_t size) {
    const std::optional<bool> reversed = is_in_reverse(type, memory_);
    if (!reversed || (*reversed && size != 2 && size != 4 && size != 8)) return false;
    is_reversed_ = *reversed;
    unit_ = is_reversed_ ? size : 1;
    return true;
  }

  // The resolved parameters of the filter, as docs/reference/filters.md and filter/packbits.hpp have them.
  bool choose_packbits(std::size_t n, const unsigned* cd, std::size_t elements) {
    constexpr unsigned numcodecs = ZARRBITS_HDF5_MSB_FIRST, policy = 3u << 2, other = 1u << 19 | 1u << 20;
    if (n != 12 || cd[4] != 0x5A504201 || (cd[1] & numcodecs) || (cd[7] & other)) return false;
    const unsigned size = cd[7] & 0xff, type_bits = cd[7] >> 8 & 0xff;
    const bool is_signed = cd[7] >> 17 & 1, is_bool = cd[7] >> 18 & 1;
    // a damaged file: the plugin says so
    if ((cd[1] & 3) == 3 || cd[0] == 0 || cd[0] > type_bits || cd[2] > type_bits - cd[0]) return false;
    if ((cd[1] & policy) != ZARRBITS_HDF5_RANGE_RAW && (cd[1] & policy) != ZARRBITS_HDF5_RANGE_TRUNCATE) return false;
    if (cd[6] == 0 || std::size_t{size} * cd[6] != H5Tget_size(memory_) || (cd[8] | std::uint64_t{cd[9]} << 32) != elements)
      return false;
    if (size > 8 || !std::has_single_bit(size)) return false;
    // of reduced precision: HDF5's form of their sign is another
    if (is_bool ? size != 1 || type_bits != 1 : type_bits != 8 * size) return false;
    // decoded here, a number has this machine's order; decoded by the plugin, the one that the parameters say
    const bool is_swapped = size > 1 && (cd[7] >> 16 & 1) != (std::endian::native == std::endian::big);
    if (is_swapped != is_reversed_ || (is_reversed_ && size != unit_)) return false;
    const std::string name = is_bool ? "bool" : (is_signed ? "int" : "uint") + std::to_string(8 * size);
    packed_ = packbits(data_type(name), {.padding_encoding = static_cast<padding>(cd[1] & 3),
                                         .first_bit = cd[2],
                                         .last_bit = cd[2] + cd[0] - 1,
                                         .truncate = (cd[1] & policy) == ZARRBITS_HDF5_RANGE_TRUNCATE});
    packed_bytes_ = static_cast<std::size_t>(packed_->encoded_size(std::uint64_t{elements} * cd[6]));
    return cd[10] == static_cast<unsigned>(packed_bytes_);
  }

  bool choose_after(hid_t properties, int filters) {
    for (int i = 1; i < filters; ++i) {
      unsigned flags = 0, cd[16] = {};
      std::size_t n = 16;
      const H5Z_filter_t id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &n, cd, 0, nullptr, nullptr);
      const auto known = after_filter::from(id, flags, n, cd);
      if (!known) return false;
      after_.push_back(*known);
    }
    return true;
  }

  bool choose_bytes(std::size_t n, const unsigned* cd) {
    const std::size_t unit = cd[2];
    if (n != 7 || cd[1] != 0x5A424501 || cd[3] > 1 || unit == 0 || unit > 8 || std::popcount(unit) != 1 ||
        H5Tget_size(memory_) % unit != 0)
      return false;
    if (is_reversed_ && unit != unit_) return false;
    unit_ = unit;
    // the plugin reverses what its parameters say, and the datatype may say it once more
    filtered_is_reversed_ = unit > 1 && ((cd[0] == ZARRBITS_HDF5_BIG_ENDIAN) != (cd[3] != 0)) != is_reversed_;
    return true;
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
