// SPDX-License-Identifier: BSL-1.0
//
// What a dataset is for <zarrbits/hdf5.hpp>: its rows, and whether its chunks can be made without libhdf5.
//
#ifndef ZARRBITS_DETAIL_HDF5_FORM_HPP
#define ZARRBITS_DETAIL_HDF5_FORM_HPP

#include <zarrbits/detail/hdf5_after.hpp>
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

static_assert(H5_VERSION_GE(1, 10, 5), "<zarrbits/hdf5.hpp> needs HDF5 1.10.5 or newer, which says where chunks are");

namespace zarrbits::hdf5::detail {

class handle {
 public:
  using closer = herr_t (*)(hid_t);
  handle(hid_t id, closer close) : id_(id), close_(close) {}
  handle(handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  handle& operator=(handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  closer close_;
};

// HDF5 prints no errors where they are looked for.
class silence {
 public:
  silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;
  ~silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// The innermost message on HDF5's error stack.
inline std::string reason() {
  std::string text;
  const auto innermost = [](unsigned n, const H5E_error2_t* e, void* out) -> herr_t {
    if (n == 0 && e->desc) *static_cast<std::string*>(out) = e->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &text);
  return text.empty() ? "HDF5 gives no reason" : text;
}

inline std::string name_of(hid_t dataset) {
  std::string name(1024, '\0');
  const ssize_t size = H5Iget_name(dataset, name.data(), name.size());
  name.resize(size > 0 ? (std::min)(static_cast<std::size_t>(size), name.size() - 1) : 0);
  return name;
}

[[noreturn]] inline void fail(errc code, hid_t dataset, const std::string& what) {
  const std::string name = name_of(dataset);
  throw error(code, "dataset " + (name.empty() ? std::string("without a name") : "\"" + name + "\"") + ": " + what, {{}, name});
}

inline void check(herr_t status, hid_t dataset, const char* doing) {
  if (status < 0) fail(errc::io_failed, dataset, std::string("HDF5 cannot ") + doing + ": " + reason());
}

// What a C++ type is in memory: a number, or just some bytes.
struct memory_type {
  enum class class_type : unsigned char { integer, boolean, floating, other } kind = class_type::other;
  bool is_signed = false;
  std::size_t size = 1;
  hid_t number = -1;  // HDF5's own type of it
};

template <class T>
memory_type memory_of() {
  using kind = memory_type::class_type;
  memory_type m{kind::other, false, sizeof(T), -1};
  if constexpr (std::same_as<T, bool>) {
    m.kind = kind::boolean;
    m.number = H5T_NATIVE_UINT8;
  } else if constexpr (std::integral<T>) {
    m.kind = kind::integer;
    m.is_signed = std::is_signed_v<T>;
    const hid_t types[2][4] = {{H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64},
                               {H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32, H5T_NATIVE_INT64}};
    m.number = types[m.is_signed][std::countr_zero(sizeof(T))];
  } else if constexpr (std::floating_point<T>) {
    m.kind = kind::floating;
    m.number = std::same_as<T, float> ? H5T_NATIVE_FLOAT : std::same_as<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_LDOUBLE;
  }
  return m;
}

// A dataset, and the type that its values have in memory.
class dataset_form {
 protected:
  dataset_form(hid_t dataset, const memory_type& memory) : dataset_(dataset), memory_(-1, H5Tclose) {
    const silence no_messages;
    const handle space(H5Dget_space(dataset), H5Sclose);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (rank < 0) fail(errc::io_failed, dataset, "it is not an open dataset: " + reason());
    if (rank == 0) fail(errc::invalid_range, dataset, "it has no dimension, and so no rows");
    shape_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space, shape_.data(), nullptr);
    const handle type(H5Dget_type(dataset), H5Tclose);
    choose_memory(type, memory);
    row_bytes_ = H5Tget_size(memory_);
    for (std::size_t d = 1; d < shape_.size(); ++d) row_bytes_ *= static_cast<std::size_t>(shape_[d]);
    const handle properties(H5Dget_create_plist(dataset), H5Pclose);
    choose_chunks(properties, type);
  }

  hid_t dataset_;
  handle memory_;
  std::vector<hsize_t> shape_, chunk_;
  std::size_t row_bytes_ = 0, chunk_bytes_ = 0, packed_bytes_ = 0, unit_ = 1;
  std::vector<std::byte> fill_;  // one value in memory
  std::optional<codec> packed_;
  std::vector<after_filter> after_;           // the filters after packbits or bytes
  bool leaves_absent_ = false;                // a chunk that was never written has no values at all
  bool is_reversed_ = false;                  // the datatype's byte order is not this machine's
  std::optional<bool> filtered_is_reversed_;  // the same of what the filter bytes makes

 private:
  // Both types are the same numbers, but for their byte order in the file.
  void choose_memory(hid_t type, const memory_type& wanted) {
    using kind = memory_type::class_type;
    handle native(H5Tget_native_type(type, H5T_DIR_ASCEND), H5Tclose);
    if (native < 0) fail(errc::unsupported_data_type, dataset_, "its datatype is not one of this machine's: " + reason());
    const H5T_class_t native_class = H5Tget_class(native);
    const bool is_enum = native_class == H5T_ENUM;
    const bool integer = is_enum || native_class == H5T_INTEGER || native_class == H5T_BITFIELD;
    const bool same_size = H5Tget_size(native) == wanted.size;
    bool same = false;
    switch (wanted.kind) {
      case kind::boolean: same = is_enum; break;
      case kind::integer:  // HDF5 converts none to an enumeration
        same = integer && (native_class != H5T_INTEGER || (H5Tget_sign(native) == H5T_SGN_2) == wanted.is_signed);
        break;
      case kind::floating: same = native_class == H5T_FLOAT; break;
      case kind::other: same = H5Tdetect_class(native, H5T_VLEN) == 0 && H5Tdetect_class(native, H5T_REFERENCE) == 0; break;
    }
    if (same && same_size) {
      memory_ = std::move(native);
      return;
    }
    if (wanted.number < 0)
      fail(errc::unsupported_data_type, dataset_,
           "its elements have " + std::to_string(H5Tget_size(native)) + " bytes in memory, and those given " +
               std::to_string(wanted.size) + "; give values of its own type, or numbers that HDF5 converts");
    memory_ = handle(H5Tcopy(wanted.number), H5Tclose);
  }

  // Decides whether chunks are made here: chunk_ is empty otherwise.
  void choose_chunks(hid_t properties, hid_t type) {
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
    if (filters >= 1) {
      unsigned flags = 0, cd[16] = {};
      std::size_t n = 16;
      const H5Z_filter_t id = H5Pget_filter2(properties, 0, &flags, &n, cd, 0, nullptr, nullptr);
      if (!(id == ZARRBITS_HDF5_PACKBITS_ID && choose_packbits(n, cd, elements)) &&
          !(id == ZARRBITS_HDF5_BYTES_ID && choose_bytes(n, cd)))
        return;
      if (!choose_after(properties, filters)) return;
    } else if (filters != 0) {
      return;
    }
    if (!packed_ && after_.empty() && !filtered_is_reversed_.value_or(is_reversed_))
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

  bool on_several_ranks() const {
#ifdef H5_HAVE_PARALLEL
    const handle file(H5Iget_file_id(dataset_), H5Fclose);
    const handle access(H5Fget_access_plist(file), H5Pclose);
    return H5Pget_driver(access) == H5FD_MPIO;
#else
    return false;
#endif
  }

  // How a value's bytes lie in the file: as in memory, or each component reversed.
  bool choose_order(hid_t type, std::size_t size) {
    if (H5Tequal(type, memory_) > 0) {
      unit_ = 1;
      return true;
    }
    const H5T_class_t kind = H5Tget_class(type);
    if (H5Tget_size(type) != size || (size != 2 && size != 4 && size != 8)) return false;
    if (kind == H5T_FLOAT) {
      const hid_t standard[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
      if (std::none_of(std::begin(standard), std::end(standard), [&](hid_t t) { return H5Tequal(type, t) > 0; })) return false;
    } else if (kind != H5T_INTEGER && kind != H5T_BITFIELD && kind != H5T_ENUM) {
      return false;
    }
    const H5T_order_t order = H5Tget_order(type);
    if (H5Tget_precision(type) != 8 * size || (order != H5T_ORDER_LE && order != H5T_ORDER_BE)) return false;
    unit_ = size;
    is_reversed_ = (order == H5T_ORDER_BE) != (std::endian::native == std::endian::big);
    return true;
  }

  // The resolved parameters of the filter, as docs/hdf5.md and filter/packbits.hpp have them.
  bool choose_packbits(std::size_t n, const unsigned* cd, std::size_t elements) {
    constexpr unsigned numcodecs = ZARRBITS_HDF5_MSB_FIRST, policy = 3u << 2, other = 1u << 19 | 1u << 20;
    if (n != 12 || cd[4] != 0x5A504201 || (cd[1] & numcodecs) || (cd[7] & other)) return false;
    const unsigned size = cd[7] & 0xff, type_bits = cd[7] >> 8 & 0xff;
    const bool is_signed = cd[7] >> 17 & 1, is_bool = cd[7] >> 18 & 1;
    // a damaged file: the plugin says so
    if ((cd[1] & 3) == 3 || cd[0] == 0 || cd[0] > type_bits || cd[2] > type_bits - cd[0]) return false;
    if ((cd[1] & policy) != ZARRBITS_HDF5_RANGE_RAW && (cd[1] & policy) != ZARRBITS_HDF5_RANGE_TRUNCATE) return false;
    if (!is_bool && type_bits != 8 * size) return false;  // of reduced precision: HDF5's form of their sign is another
    if (cd[6] == 0 || std::size_t{size} * cd[6] != H5Tget_size(memory_) || (cd[8] | std::uint64_t{cd[9]} << 32) != elements)
      return false;
    const std::string name = is_bool ? "bool" : (is_signed ? "int" : "uint") + std::to_string(8 * size);
    packed_ = packbits(data_type(name), {.padding_encoding = static_cast<padding>(cd[1] & 3),
                                         .first_bit = cd[2],
                                         .last_bit = cd[2] + cd[0] - 1,
                                         .truncate = (cd[1] & policy) == ZARRBITS_HDF5_RANGE_TRUNCATE});
    packed_bytes_ = static_cast<std::size_t>(packed_->encoded_size(std::uint64_t{elements} * cd[6]));
    return true;
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
    if (unit_ != 1 && unit != unit_) return false;
    unit_ = unit;
    filtered_is_reversed_ = unit > 1 && (cd[0] == ZARRBITS_HDF5_BIG_ENDIAN) != (std::endian::native == std::endian::big);
    return true;
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
