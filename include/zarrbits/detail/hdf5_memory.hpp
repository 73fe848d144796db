// SPDX-License-Identifier: BSL-1.0
//
// C++ types as HDF5 has them, and when their bytes are those of a datatype. For <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_MEMORY_HPP
#define ZARRBITS_DETAIL_HDF5_MEMORY_HPP

#include <zarrbits/detail/hdf5_calls.hpp>

#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace zarrbits::hdf5::detail {

// What a C++ type is in memory: numbers, or just some bytes.
struct memory_type {
  enum class class_type : unsigned char { integer, boolean, floating, complex, bytes } kind = class_type::bytes;
  bool is_signed = false;
  std::size_t size = 1;   // of all of it
  std::size_t count = 1;  // of its numbers: std::array has several
  hid_t number = -1;      // HDF5's own type of a number, or of the parts of a complex one

  const char* name() const {
    if (count != 1) return "arrays";
    if (kind == class_type::complex) return "complex numbers";
    return kind == class_type::bytes ? "structs" : "numbers";
  }
};

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_std_complex = false;
template <class T>
inline constexpr bool is_std_complex<std::complex<T>> = true;

// Numbers that HDF5 has no type for, such as __int128 and _Float16, are bytes: no number is taken for another one.
template <class T>
memory_type memory_of() {
  using kind = memory_type::class_type;
  memory_type m{kind::bytes, false, sizeof(T), 1, -1};
  if constexpr (is_std_array<T>) {
    m = memory_of<typename T::value_type>();
    m.count *= sizeof(T) / m.size;
  } else if constexpr (std::is_array_v<T>) {
    m = memory_of<std::remove_all_extents_t<T>>();
    m.count *= sizeof(T) / m.size;
  } else if constexpr (is_std_complex<T>) {
    m = memory_of<typename T::value_type>();
    if (m.kind == kind::floating) m.kind = kind::complex;
  } else if constexpr (std::is_enum_v<T>) {
    m = memory_of<std::underlying_type_t<T>>();
  } else if constexpr (std::same_as<T, bool>) {
    m.kind = kind::boolean;
    m.number = H5T_NATIVE_UINT8;
  } else if constexpr (std::integral<T> && sizeof(T) <= 8) {
    m.kind = kind::integer;
    m.is_signed = std::is_signed_v<T>;
    const hid_t types[2][4] = {{H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64},
                               {H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32, H5T_NATIVE_INT64}};
    m.number = types[m.is_signed][std::countr_zero(sizeof(T))];
  } else if constexpr (std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, long double>) {
    m.kind = kind::floating;
    m.number = std::same_as<T, float> ? H5T_NATIVE_FLOAT : std::same_as<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_LDOUBLE;
  }
  m.size = sizeof(T);
  return m;
}

inline bool has_only_zero_and_one(hid_t enumeration) {
  if (H5Tget_size(enumeration) != 1) return false;
  for (int i = H5Tget_nmembers(enumeration); i-- > 0;) {
    unsigned char value = 2;
    if (H5Tget_member_value(enumeration, static_cast<unsigned>(i), &value) < 0 || value > 1) return false;
  }
  return true;
}

// HDF5's complex numbers: since 2.0 a class of their own, and compounds of two floats before, of any names.
inline handle complex_in_memory(hid_t type, const memory_type& wanted) {
#if H5_VERSION_GE(2, 0, 0)
  if (H5Tget_class(type) == H5T_COMPLEX) return {H5Tcomplex_create(wanted.number), H5Tclose};
#endif
  handle whole(-1, H5Tclose);
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2) return whole;
  const std::size_t part = H5Tget_size(wanted.number);
  whole = handle(H5Tcreate(H5T_COMPOUND, 2 * part), H5Tclose);
  for (unsigned i = 0; i < 2; ++i) {
    char* name = H5Tget_member_name(type, i);
    const bool inserted =
        name && H5Tget_member_class(type, i) == H5T_FLOAT && H5Tinsert(whole, name, i * part, wanted.number) >= 0;
    H5free_memory(name);
    if (!inserted) return {-1, H5Tclose};
  }
  return whole;
}

// The type for H5Dwrite() or H5Dread() of such values in a dataset of `type`, negative if there is none. HDF5 converts numbers to
// numbers, and an enumeration to numbers; an integer as large as a bitfield is one, and as large as an enumeration can be written
// as one of its values.
inline handle memory_for(hid_t type, const memory_type& wanted, bool to_write) {
  using kind = memory_type::class_type;
  const H5T_class_t file_class = H5Tget_class(type);
  if (file_class == H5T_ARRAY && wanted.number >= 0) {
    std::vector<hsize_t> dims(static_cast<std::size_t>((std::max)(H5Tget_array_ndims(type), 1)));
    if (H5Tget_array_dims2(type, dims.data()) < 0) return {-1, H5Tclose};
    std::size_t count = 1;
    for (const hsize_t n : dims) count *= static_cast<std::size_t>(n);
    memory_type one = wanted;
    one.size /= wanted.count;
    one.count = 1;
    const handle element(H5Tget_super(type), H5Tclose);
    if (one.kind == kind::complex && count == 2 * wanted.count) one.kind = kind::floating;
    else if (count != wanted.count) return {-1, H5Tclose};
    if (one.kind == kind::floating) one.size = H5Tget_size(one.number);
    const handle part = memory_for(element, one, to_write);
    return {part < 0 ? -1 : H5Tarray_create2(part, static_cast<unsigned>(dims.size()), dims.data()), H5Tclose};
  }
  handle native(H5Tget_native_type(type, H5T_DIR_ASCEND), H5Tclose);
  const bool same_size = native >= 0 && H5Tget_size(native) == wanted.size;
  if (wanted.count == 1) {
    if (same_size && file_class == H5T_BITFIELD && wanted.kind == kind::integer) return native;
    if (same_size && file_class == H5T_ENUM &&
        (wanted.kind == kind::integer || (wanted.kind == kind::boolean && has_only_zero_and_one(native)))) {
      if (to_write) return native;
      return {H5Tget_super(native), H5Tclose};
    }
    if (wanted.number >= 0 && wanted.kind != kind::complex) return {H5Tcopy(wanted.number), H5Tclose};
    if (wanted.kind == kind::complex && file_class != H5T_OPAQUE && file_class != H5T_STRING)
      return complex_in_memory(type, wanted);
  }
  switch (file_class) {
    case H5T_COMPOUND:
    case H5T_ARRAY:
    case H5T_OPAQUE:
    case H5T_STRING:
      if (same_size && H5Tdetect_class(native, H5T_VLEN) == 0 && H5Tdetect_class(native, H5T_REFERENCE) == 0) return native;
      break;
    default: break;
  }
  return {-1, H5Tclose};
}

inline std::string class_name(hid_t type) {
  static const char* const names[] = {"integers",
                                      "floats",
                                      "times",
                                      "strings",
                                      "bitfields",
                                      "opaque",
                                      "compounds",
                                      "references",
                                      "values of an enumeration",
                                      "of variable length",
                                      "arrays",
                                      "complex numbers"};
  const int number = static_cast<int>(H5Tget_class(type));
  return number >= 0 && static_cast<std::size_t>(number) < std::size(names) ? names[number] : "of an unknown class";
}

// Whether values of `file` are those of `memory`, byte by byte (false), or with the bytes of each reversed (true); nothing if
// HDF5 has to convert them. H5Tequal() compares all there is: class, size, sign, precision, offset, padding, the fields and the
// bias of floats, members.
inline std::optional<bool> is_in_reverse(hid_t file, hid_t memory) {
  if (H5Tequal(file, memory) > 0) return false;
  const H5T_class_t kind = H5Tget_class(file), wanted_kind = H5Tget_class(memory);
  if (kind == H5T_ENUM && wanted_kind == H5T_INTEGER)  // HDF5 converts the integers under it
    return is_in_reverse(handle(H5Tget_super(file), H5Tclose), memory);
  if (kind != wanted_kind || (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_BITFIELD)) return {};
  const H5T_order_t order = H5Tget_order(file), wanted = H5Tget_order(memory);
  const auto is_plain = [](H5T_order_t o) { return o == H5T_ORDER_LE || o == H5T_ORDER_BE; };
  const handle in_order(H5Tcopy(file), H5Tclose);
  if (!is_plain(order) || !is_plain(wanted) || H5Tset_order(in_order, wanted) < 0 || H5Tequal(in_order, memory) <= 0) return {};
  return order != wanted && H5Tget_size(file) > 1;
}

}  // namespace zarrbits::hdf5::detail

#endif
