// SPDX-License-Identifier: BSL-1.0
//
// Every C++ type with every HDF5 type, in <zarrbits/hdf5.hpp> and in H5Dwrite() and H5Dread(): the same bytes in the file, the
// same values in memory, or an error in both.
//
#include <zarrbits/hdf5.hpp>

#define BOOST_TEST_MODULE filter_row_types
#include <boost/test/unit_test.hpp>

#include "tests/filter/rows_support.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

// every gcc and clang has it, and -Wpedantic does not want to know
__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

namespace rows = zarrbits::hdf5;

namespace {

constexpr std::size_t length = 32;

struct file_type {
  std::string name;
  hid_t id;
};

hid_t changed(hid_t type, const std::function<void(hid_t)>& change) {
  const hid_t copy = H5Tcopy(type);
  change(copy);
  return copy;
}

template <class T>
hid_t enumeration(hid_t base, const std::vector<T>& members) {
  const hid_t type = H5Tenum_create(base);
  for (const T& value : members) {
    T in_file = value;
    if (H5Tget_order(base) == H5T_ORDER_BE) H5Tconvert(H5Tget_native_type(base, H5T_DIR_ASCEND), base, 1, &in_file, nullptr, 0);
    H5Tenum_insert(type, ("M" + std::to_string(value)).c_str(), &in_file);
  }
  return type;
}

hid_t compound(const std::vector<std::pair<const char*, hid_t>>& members) {
  std::size_t size = 0;
  for (const auto& [name, type] : members) size += H5Tget_size(type);
  const hid_t whole = H5Tcreate(H5T_COMPOUND, size);
  size = 0;
  for (const auto& [name, type] : members) {
    H5Tinsert(whole, name, size, type);
    size += H5Tget_size(type);
  }
  return whole;
}

std::vector<file_type> file_types() {
  std::vector<file_type> all = {
      {"i8le", H5T_STD_I8LE},    {"i8be", H5T_STD_I8BE},          {"u8le", H5T_STD_U8LE},    {"u8be", H5T_STD_U8BE},
      {"i16le", H5T_STD_I16LE},  {"i16be", H5T_STD_I16BE},        {"u16le", H5T_STD_U16LE},  {"u16be", H5T_STD_U16BE},
      {"i32le", H5T_STD_I32LE},  {"i32be", H5T_STD_I32BE},        {"u32le", H5T_STD_U32LE},  {"u32be", H5T_STD_U32BE},
      {"i64le", H5T_STD_I64LE},  {"i64be", H5T_STD_I64BE},        {"u64le", H5T_STD_U64LE},  {"u64be", H5T_STD_U64BE},
      {"f32le", H5T_IEEE_F32LE}, {"f32be", H5T_IEEE_F32BE},       {"f64le", H5T_IEEE_F64LE}, {"f64be", H5T_IEEE_F64BE},
      {"vax f32", H5T_VAX_F32},  {"ldouble", H5T_NATIVE_LDOUBLE}, {"b8le", H5T_STD_B8LE},    {"b16le", H5T_STD_B16LE},
      {"b16be", H5T_STD_B16BE},  {"b32be", H5T_STD_B32BE},        {"b64le", H5T_STD_B64LE}};
  const auto add = [&](const char* name, hid_t id) {
    BOOST_TEST_REQUIRE(id >= 0, name);
    all.push_back({name, id});
  };
  add("u16 of 12 bits", changed(H5T_STD_U16LE, [](hid_t t) { H5Tset_precision(t, 12); }));
  add("i32be of 20 bits from bit 4", changed(H5T_STD_I32BE, [](hid_t t) {
        H5Tset_precision(t, 20);
        H5Tset_offset(t, 4);
      }));
  add("u32 padded with ones", changed(H5T_STD_U32LE, [](hid_t t) {
        H5Tset_precision(t, 31);
        H5Tset_pad(t, H5T_PAD_ONE, H5T_PAD_ONE);
      }));
  add("b16 of 9 bits", changed(H5T_STD_B16LE, [](hid_t t) { H5Tset_precision(t, 9); }));
  add("f32 with the sign in bit 0", changed(H5T_IEEE_F32LE, [](hid_t t) { H5Tset_fields(t, 0, 1, 8, 9, 23); }));
  add("f32be with another bias", changed(H5T_IEEE_F32BE, [](hid_t t) { H5Tset_ebias(t, 120); }));
  add("f64 without implied bit", changed(H5T_IEEE_F64LE, [](hid_t t) { H5Tset_norm(t, H5T_NORM_NONE); }));
  add("f16", changed(H5T_IEEE_F32LE, [](hid_t t) {
        H5Tset_fields(t, 15, 10, 5, 0, 10);
        H5Tset_size(t, 2);
        H5Tset_ebias(t, 15);
      }));
  add("boolean", enumeration<std::int8_t>(H5T_STD_I8LE, {0, 1}));
  add("unsigned boolean", enumeration<std::uint8_t>(H5T_STD_U8LE, {0, 1}));
  add("enum i8", enumeration<std::int8_t>(H5T_STD_I8LE, {-5, 0, 7}));
  add("enum i16be", enumeration<std::int16_t>(H5T_STD_I16BE, {-5, 0, 300}));
  add("enum u16le", enumeration<std::uint16_t>(H5T_STD_U16LE, {0, 40000}));
  add("enum i32le", enumeration<std::int32_t>(H5T_STD_I32LE, {-1, 70000}));
  add("complex64 le", compound({{"r", H5T_IEEE_F32LE}, {"i", H5T_IEEE_F32LE}}));
  add("complex64 be", compound({{"r", H5T_IEEE_F32BE}, {"i", H5T_IEEE_F32BE}}));
  add("complex128", compound({{"r", H5T_IEEE_F64LE}, {"i", H5T_IEEE_F64LE}}));
  add("complex of i32", compound({{"r", H5T_STD_I32LE}, {"i", H5T_STD_I32LE}}));
  add("struct", compound({{"n", H5T_STD_I32LE}, {"x", H5T_IEEE_F32LE}}));
  add("opaque 8", H5Tcreate(H5T_OPAQUE, 8));
  const hsize_t two[] = {2}, two_by_two[] = {2, 2};
  add("two f32", H5Tarray_create2(H5T_IEEE_F32LE, 1, two));
  add("two i32be", H5Tarray_create2(H5T_STD_I32BE, 1, two));
  add("two by two i16", H5Tarray_create2(H5T_STD_I16LE, 2, two_by_two));
  add("string of 8", changed(H5T_C_S1, [](hid_t t) { H5Tset_size(t, 8); }));
  add("time", H5Tcopy(H5T_UNIX_D32LE));
  return all;
}

struct four_bytes {
  char bytes[4];
};
struct eight_bytes {
  char bytes[8];
};
enum class small_enum : std::int16_t {};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;
template <class T>
constexpr std::size_t array_size = 0;
template <class T, std::size_t N>
constexpr std::size_t array_size<std::array<T, N>> = N;

template <class T>
hid_t native() {
  if constexpr (std::is_enum_v<T>) return native<std::underlying_type_t<T>>();
  else if constexpr (std::same_as<T, bool>) return H5T_NATIVE_UINT8;
  else if constexpr (std::same_as<T, float>) return H5T_NATIVE_FLOAT;
  else if constexpr (std::same_as<T, double>) return H5T_NATIVE_DOUBLE;
  else if constexpr (std::same_as<T, long double>) return H5T_NATIVE_LDOUBLE;
  else if constexpr (std::integral<T> && sizeof(T) <= 8) {
    if constexpr (std::is_signed_v<T>)
      return sizeof(T) == 1   ? H5T_NATIVE_INT8
             : sizeof(T) == 2 ? H5T_NATIVE_INT16
             : sizeof(T) == 4 ? H5T_NATIVE_INT32
                              : H5T_NATIVE_INT64;
    else
      return sizeof(T) == 1   ? H5T_NATIVE_UINT8
             : sizeof(T) == 2 ? H5T_NATIVE_UINT16
             : sizeof(T) == 4 ? H5T_NATIVE_UINT32
                              : H5T_NATIVE_UINT64;
  } else {
    return -1;
  }
}

bool is_boolean(hid_t type) {
  for (int i = H5Tget_nmembers(type); i-- > 0;) {
    signed char value[8] = {};
    H5Tget_member_value(type, static_cast<unsigned>(i), value);
    if (value[0] < 0 || value[0] > 1) return false;
  }
  return H5Tget_size(type) == 1;
}

// What a C programmer gives to H5Dwrite() and H5Dread() for values of T; negative if nothing is right.
template <class T>
hid_t judge_type(hid_t type, bool write) {
  const H5T_class_t kind = H5Tget_class(type);
  const bool same_size = H5Tget_size(type) == sizeof(T);
  const bool is_bytes = kind == H5T_COMPOUND || kind == H5T_OPAQUE || kind == H5T_STRING || kind == H5T_ARRAY;
  if constexpr (is_complex<T>) {
    using part = typename T::value_type;
    hsize_t dims[8] = {};
    if (kind == H5T_ARRAY && H5Tget_array_dims2(type, dims) == 1 && dims[0] == 2)
      return H5Tarray_create2(native<part>(), 1, dims);
    if (kind == H5T_COMPOUND) {
      if (H5Tget_nmembers(type) != 2 || H5Tget_member_class(type, 0) != H5T_FLOAT || H5Tget_member_class(type, 1) != H5T_FLOAT)
        return -1;
      return compound({{"r", native<part>()}, {"i", native<part>()}});
    }
    return same_size && (kind == H5T_OPAQUE || kind == H5T_STRING) ? H5Tcopy(type) : -1;
  } else if constexpr (array_size<T> != 0) {
    using part = typename T::value_type;
    if (kind == H5T_ARRAY) {
      hsize_t dims[8] = {}, n = 1;
      const int rank = H5Tget_array_dims2(type, dims);
      for (int i = 0; i < rank; ++i) n *= dims[i];
      return n == array_size<T> ? H5Tarray_create2(native<part>(), static_cast<unsigned>(rank), dims) : -1;
    }
    return same_size && is_bytes ? H5Tget_native_type(type, H5T_DIR_ASCEND) : -1;
  } else if constexpr (std::same_as<T, bool>) {
    return kind == H5T_ENUM && is_boolean(type) ? H5Tcopy(type) : native<T>();
  } else if (const hid_t number = native<T>(); number >= 0) {
    if (!std::floating_point<T> && same_size && kind == H5T_BITFIELD) return H5Tget_native_type(type, H5T_DIR_ASCEND);
    if (!std::floating_point<T> && same_size && kind == H5T_ENUM && write) return H5Tget_native_type(type, H5T_DIR_ASCEND);
    return number;
  } else {
    return same_size && is_bytes ? H5Tget_native_type(type, H5T_DIR_ASCEND) : -1;
  }
}

template <class T>
std::array<T, length> some(hid_t type, bool for_writing) {
  std::array<T, length> values{};
  std::mt19937_64 random(length);
  const bool enumerated = H5Tget_class(type) == H5T_ENUM;
  for (std::size_t i = 0; i < length; ++i) {
    T& v = values[i];
    if constexpr (std::same_as<T, bool>) v = random() & 1;
    else if constexpr (std::floating_point<T>)
      v = std::array<T, 8>{0, 1, T(-5.5), T(200), T(1.5), T(3e9), T(-1e-3), T(65535)}[i % 8];
    else if constexpr (std::is_enum_v<T>) v = static_cast<T>(i * 1000);
    else if constexpr (std::integral<T>) {
      v = std::array<T, 8>{0, 1, static_cast<T>(-5),      std::numeric_limits<T>::max(), std::numeric_limits<T>::min(),
                           7, 2, static_cast<T>(random())}[i % 8];
    } else if constexpr (is_complex<T>) v = T(static_cast<float>(i) - 3.5F, -1);
    else
      for (std::size_t b = 0; b < sizeof(T); ++b) reinterpret_cast<unsigned char*>(&v)[b] = static_cast<unsigned char>(random());
    // an enumeration of the other sign has no such values
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      if (enumerated && for_writing) v = static_cast<T>(v & (std::numeric_limits<T>::max() >> std::is_unsigned_v<T>));
  }
  return values;
}

struct counts {
  int written = 0, read = 0, refused = 0;
};

template <class Call>
std::optional<std::string> error_of(const Call& call) {
  try {
    call();
  } catch (const zarrbits::error& e) {
    return e.what();
  }
  return {};
}

template <class T>
void compare_one(const char* cpp, const file_type& type, const set_up& filters, counts& n) {
  const file f;
  const std::vector<hsize_t> shape = {length}, chunk = {8};
  {
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, shape.data(), nullptr);
    H5Pset_chunk(dcpl, 1, chunk.data());
    filters(dcpl);
    const hid_t trial = H5Dcreate2(f.id, "trial", type.id, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(dcpl);
    if (trial < 0) return;  // not a type for this filter
    H5Dclose(trial);
  }
  BOOST_TEST_CONTEXT(cpp << " and " << type.name) {
    const hid_t theirs = make(f, "theirs", type.id, shape, chunk, filters),
                ours = make(f, "ours", type.id, shape, chunk, filters);
    const std::array<T, length> values = some<T>(type.id, true);
    const hid_t to_write = judge_type<T>(type.id, true), to_read = judge_type<T>(type.id, false);
    const bool wrote = to_write >= 0 && H5Dwrite(theirs, to_write, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
    const auto failed = error_of([&] { rows::write_chunks(ours, 0, values, {.threads = 2}); });
    BOOST_TEST(wrote == !failed, (failed ? *failed : std::string("written, but H5Dwrite() refuses it")));
    if (wrote && !failed) BOOST_TEST((chunks_of(ours, shape, chunk) == chunks_of(theirs, shape, chunk)), "written wrong");
    n.written += wrote;
    n.refused += !wrote;
    // any bits, as the file may have them
    std::vector<unsigned char> bits(length * H5Tget_size(type.id));
    std::mt19937 random(1);
    for (unsigned char& b : bits) b = static_cast<unsigned char>(random() % 7 == 0 ? random() : 0);
    if (H5Dwrite(theirs, type.id, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits.data()) < 0) return;
    std::vector<unsigned char> wanted(length * sizeof(T), 1);
    std::array<T, length> got;
    std::memset(static_cast<void*>(got.data()), 1, wanted.size());
    const bool has_read = to_read >= 0 && H5Dread(theirs, to_read, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted.data()) >= 0;
    const auto not_read = error_of([&] { rows::read_chunks(theirs, 0, got, {.threads = 2}); });
    BOOST_TEST(has_read == !not_read, (not_read ? *not_read : std::string("read, but H5Dread() refuses it")));
    if (has_read && !not_read) BOOST_TEST(std::memcmp(got.data(), wanted.data(), wanted.size()) == 0, "read wrong");
    n.read += has_read;
    for (const hid_t id : {to_write, to_read})
      if (id >= 0 && H5Tcommitted(id) == 0) H5Tclose(id);
    H5Dclose(theirs);
    H5Dclose(ours);
  }
}

template <class... T>
void compare_all(const set_up& filters, const std::array<const char*, sizeof...(T)>& names) {
  counts n;
  for (const file_type& type : file_types()) {
    std::size_t i = 0;
    (compare_one<T>(names[i++], type, filters, n), ...);
  }
  BOOST_TEST_MESSAGE(n.written << " pairs written, " << n.read << " read, " << n.refused << " refused");
  BOOST_TEST(n.written > 50);
  BOOST_TEST(n.read > 100);
}

void compare_types(const set_up& filters) {
  compare_all<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
              char, char16_t, bool, float, double, long double, std::complex<float>, std::complex<double>, int128, uint128,
              four_bytes, eight_bytes, small_enum, std::array<float, 2>, std::array<std::int32_t, 2>,
              std::array<std::int16_t, 4>>(filters, {"int8",
                                                     "uint8",
                                                     "int16",
                                                     "uint16",
                                                     "int32",
                                                     "uint32",
                                                     "int64",
                                                     "uint64",
                                                     "char",
                                                     "char16",
                                                     "bool",
                                                     "float",
                                                     "double",
                                                     "long double",
                                                     "complex<float>",
                                                     "complex<double>",
                                                     "int128",
                                                     "uint128",
                                                     "struct of 4",
                                                     "struct of 8",
                                                     "enum of int16",
                                                     "array of two floats",
                                                     "array of two int32",
                                                     "array of four int16"});
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_filter) { compare_types(none); }
BOOST_AUTO_TEST_CASE(with_packbits) {
  for (const unsigned bits : {0U, 5U, 31U}) compare_types(packed(bits));
}
BOOST_AUTO_TEST_CASE(little_endian_bytes) {
  compare_types([](hid_t p) { H5Pset_zarrbits_bytes(p, 0); });
}
BOOST_AUTO_TEST_CASE(big_endian_bytes) {
  compare_types([](hid_t p) { H5Pset_zarrbits_bytes(p, 1); });
}
