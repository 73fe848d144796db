// SPDX-License-Identifier: BSL-1.0
//
// Our own declarations of HDF5's binary interface against a real hdf5.h: a difference does not compile.
#include "filter/h5_abi.hpp"

#include <hdf5.h>

#include <cstddef>
#include <type_traits>

namespace f = zarrbits::filter;

static_assert(std::is_same_v<f::herr, herr_t> && std::is_same_v<f::htri, htri_t>);
static_assert(sizeof(f::hid) == sizeof(hid_t) && std::is_signed_v<hid_t>);
static_assert(sizeof(hsize_t) == sizeof(std::uint64_t) && sizeof(hbool_t) <= sizeof(int));

static_assert(sizeof(f::filter_class) == sizeof(H5Z_class2_t));
static_assert(offsetof(f::filter_class, version) == offsetof(H5Z_class2_t, version));
static_assert(offsetof(f::filter_class, id) == offsetof(H5Z_class2_t, id));
static_assert(offsetof(f::filter_class, encoder_present) == offsetof(H5Z_class2_t, encoder_present));
static_assert(offsetof(f::filter_class, decoder_present) == offsetof(H5Z_class2_t, decoder_present));
static_assert(offsetof(f::filter_class, name) == offsetof(H5Z_class2_t, name));
static_assert(offsetof(f::filter_class, can_apply) == offsetof(H5Z_class2_t, can_apply));
static_assert(offsetof(f::filter_class, set_local) == offsetof(H5Z_class2_t, set_local));
static_assert(offsetof(f::filter_class, filter) == offsetof(H5Z_class2_t, filter));
static_assert(std::is_same_v<decltype(f::filter_class::filter), H5Z_func_t>);
static_assert(f::class_version == H5Z_CLASS_T_VERS && f::plugin_type_filter == H5PL_TYPE_FILTER);
static_assert(f::flag_optional == H5Z_FLAG_OPTIONAL && f::flag_reverse == H5Z_FLAG_REVERSE);
static_assert(f::max_rank == H5S_MAX_RANK);

static_assert(f::class_integer == H5T_INTEGER && f::class_float == H5T_FLOAT && f::class_time == H5T_TIME &&
              f::class_string == H5T_STRING && f::class_bitfield == H5T_BITFIELD && f::class_opaque == H5T_OPAQUE &&
              f::class_compound == H5T_COMPOUND && f::class_reference == H5T_REFERENCE && f::class_enum == H5T_ENUM &&
              f::class_vlen == H5T_VLEN && f::class_array == H5T_ARRAY);
#if H5_VERSION_GE(2, 0, 0)
static_assert(f::class_complex == H5T_COMPLEX);
#endif
static_assert(f::order_le == H5T_ORDER_LE && f::order_be == H5T_ORDER_BE && f::sign_2 == H5T_SGN_2 &&
              f::pad_zero == H5T_PAD_ZERO && f::space_simple == H5S_SIMPLE);

// Functions: the same types where ours are but names of HDF5's, and the same widths where HDF5 has enumerations or its own names.
template <class A, class B>
constexpr bool same = std::is_same_v<A, B> ||
                      (sizeof(A) == sizeof(B) && (std::is_enum_v<B> || std::is_integral_v<B> ||
                                                  std::is_pointer_v<B>)&&(std::is_integral_v<A> || std::is_pointer_v<A>));

template <class Ours, class Theirs>
struct matches : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct matches<R (*)(A...), S(B...)>
    : std::bool_constant<same<R, S> && (same<A, B> && ...)> {
};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct matches<R (*)(A..., ...), S(B..., ...)>
    : std::bool_constant<same<R, S> && (same<A, B> && ...)> {
};

#define MATCHES(member, function) static_assert(matches<decltype(f::functions::member), decltype(function)>::value, #function)
MATCHES(get_libversion, H5get_libversion);
MATCHES(push_error, H5Epush2);
MATCHES(plist_nfilters, H5Pget_nfilters);
MATCHES(plist_filter, H5Pget_filter2);
MATCHES(plist_filter_by_id, H5Pget_filter_by_id2);
MATCHES(plist_modify_filter, H5Pmodify_filter);
MATCHES(type_is_variable_string, H5Tis_variable_str);
static_assert(f::object_reference_size == sizeof(hobj_ref_t) && f::filter_fletcher32 == H5Z_FILTER_FLETCHER32);
MATCHES(space_class, H5Sget_simple_extent_type);
MATCHES(space_rank, H5Sget_simple_extent_ndims);
MATCHES(space_dims, H5Sget_simple_extent_dims);
MATCHES(type_class, H5Tget_class);
MATCHES(type_size, H5Tget_size);
MATCHES(type_order, H5Tget_order);
MATCHES(type_precision, H5Tget_precision);
MATCHES(type_offset, H5Tget_offset);
MATCHES(type_pad, H5Tget_pad);
MATCHES(type_sign, H5Tget_sign);
MATCHES(type_super, H5Tget_super);
MATCHES(type_nmembers, H5Tget_nmembers);
MATCHES(type_member_value, H5Tget_member_value);
MATCHES(type_member_type, H5Tget_member_type);
MATCHES(type_member_offset, H5Tget_member_offset);
MATCHES(type_member_name, H5Tget_member_name);
MATCHES(type_equal, H5Tequal);
MATCHES(type_close, H5Tclose);
MATCHES(resize_memory, H5resize_memory);
MATCHES(free_memory, H5free_memory);
// hbool_t is passed in a register of its own: narrower than our int, but the value 0 is the same
static_assert(std::is_same_v<decltype(H5allocate_memory), void*(std::size_t, hbool_t)>);
