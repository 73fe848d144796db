// SPDX-License-Identifier: BSL-1.0
//
// The part of HDF5's binary interface that a filter plugin touches, written down here so that the plugins need no hdf5.h to build
// and serve every libhdf5 from 1.8 on. tests/filter/filter_abi.cpp holds it against a real hdf5.h.
//
#ifndef ZARRBITS_FILTER_H5_ABI_HPP
#define ZARRBITS_FILTER_H5_ABI_HPP

#include <cstddef>
#include <cstdint>

namespace zarrbits::filter {

// hid_t: 64 bits since 1.10. HDF5 1.8 has 32 bits: only the low half of a register is then defined, see library::id().
using hid = std::int64_t;
using herr = int;
using htri = int;

// H5Z_class2_t. Version 1 is the only one that every HDF5 and netCDF release accepts.
struct filter_class {
  int version;
  int id;
  unsigned encoder_present;
  unsigned decoder_present;
  const char* name;
  htri (*can_apply)(hid dcpl, hid type, hid space);
  herr (*set_local)(hid dcpl, hid type, hid space);
  std::size_t (*filter)(unsigned flags, std::size_t cd_nelmts, const unsigned cd_values[], std::size_t nbytes,
                        std::size_t* buf_size, void** buf);
};

inline constexpr int class_version = 1;
inline constexpr int plugin_type_filter = 0;
inline constexpr int filter_fletcher32 = 3;
inline constexpr std::size_t checksum_size = 4;  // that fletcher32 appends
inline constexpr unsigned flag_optional = 0x1;
inline constexpr unsigned flag_reverse = 0x100;

// H5T_class_t
inline constexpr int class_integer = 0, class_float = 1, class_time = 2, class_string = 3, class_bitfield = 4, class_opaque = 5,
                     class_compound = 6, class_reference = 7, class_enum = 8, class_vlen = 9, class_array = 10,
                     class_complex = 11;
inline constexpr std::size_t object_reference_size = 8;  // of H5T_STD_REF_OBJ
// H5T_order_t, H5T_sign_t, H5T_pad_t, H5S_class_t
inline constexpr int order_le = 0, order_be = 1;
inline constexpr int sign_2 = 1;
inline constexpr int pad_zero = 0;
inline constexpr int space_simple = 1;

inline constexpr unsigned max_rank = 32;

// The library's functions that we call. H5Epush2 is variadic and must be called as such.
struct functions {
  herr (*get_libversion)(unsigned* major, unsigned* minor, unsigned* release);
  herr (*push_error)(hid stack, const char* file, const char* function, unsigned line, hid cls, hid major, hid minor,
                     const char* format, ...);
  int (*plist_nfilters)(hid plist);
  int (*plist_filter)(hid plist, unsigned index, unsigned* flags, std::size_t* cd_nelmts, unsigned cd_values[],
                      std::size_t name_size, char name[], unsigned* config);
  herr (*plist_filter_by_id)(hid plist, int id, unsigned* flags, std::size_t* cd_nelmts, unsigned cd_values[],
                             std::size_t name_size, char name[], unsigned* config);
  herr (*plist_modify_filter)(hid plist, int id, unsigned flags, std::size_t cd_nelmts, const unsigned cd_values[]);
  int (*space_class)(hid space);
  int (*space_rank)(hid space);
  int (*space_dims)(hid space, std::uint64_t* dims, std::uint64_t* maximum);
  int (*type_class)(hid type);
  std::size_t (*type_size)(hid type);
  int (*type_order)(hid type);
  std::size_t (*type_precision)(hid type);
  int (*type_offset)(hid type);
  int (*type_sign)(hid type);
  hid (*type_super)(hid type);
  int (*type_nmembers)(hid type);
  hid (*type_member_type)(hid type, unsigned index);
  std::size_t (*type_member_offset)(hid type, unsigned index);
  char* (*type_member_name)(hid type, unsigned index);
  htri (*type_equal)(hid a, hid b);
  herr (*type_close)(hid type);
  // These three are null if a program links libhdf5 statically, and uses no other function of their object files.
  htri (*type_is_variable_string)(hid type);
  herr (*type_pad)(hid type, int* low, int* high);
  herr (*type_member_value)(hid type, unsigned index, void* value);
  // Since 1.8.15 and 1.8.13; null in older ones, whose buffers are malloc's. The second parameter is hbool_t, at most as wide as
  // an int.
  void* (*allocate_memory)(std::size_t size, int clear);
  void* (*resize_memory)(void* memory, std::size_t size);
  herr (*free_memory)(void* memory);
};

}  // namespace zarrbits::filter

#endif
