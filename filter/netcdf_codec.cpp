// SPDX-License-Identifier: BSL-1.0
#include "filter/netcdf_codec.hpp"

#include "filter/caller.hpp"
#include "filter/message.hpp"
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

#include <cstdlib>
#include <cstring>

namespace zarrbits::filter {

namespace {

constexpr unsigned numcodecs_options = ZARRBITS_HDF5_PADDING_FIRST_BYTE | ZARRBITS_HDF5_MSB_FIRST;
constexpr char numcodecs_json[] = "{\"id\": \"packbits\"}";

int refuse(const sentence& reason) noexcept {
  report(library{}, "netcdf", reason);  // netCDF has no error stack: a line on standard error
  return netcdf_filter_error;
}

// True for no parameters, or parameters that mean the same.
bool is_numcodecs(std::size_t n, const unsigned* p, sentence& reason) noexcept {
  if (n == 0) return true;
  packbits_parameters_in user;
  if (!read_parameters(n, p, user, reason)) return false;
  if (user.bits <= 1 && user.options == numcodecs_options && user.first_bit == 0) return true;
  return reason.set(minor::bad_value,
                    "zarrbits: packbits: in netCDF's Zarr files it is the packbits of numcodecs, one bit for each value; use no "
                    "parameters, or 1,%u",
                    numcodecs_options);
}

template <class T>
bool copy_out(const T* values, std::size_t n, T** out) noexcept {
  *out = static_cast<T*>(std::malloc(n * sizeof(T)));
  if (!*out) return false;
  std::memcpy(*out, values, n * sizeof(T));
  return true;
}

// True for {"id": "packbits"} and nothing else, apart from spaces.
bool is_our_json(const char* json) noexcept {
  const char* expected = "{\"id\":\"packbits\"}";
  for (; *json; ++json) {
    if (std::strchr(" \t\r\n", *json)) continue;
    if (*json != *expected) return false;
    ++expected;
  }
  return *expected == '\0';
}

// Functions of the calling libnetcdf that describe a variable.
struct netcdf {
  int (*var_type)(int, int, int*);
  int (*var_rank)(int, int, int*);
  int (*var_chunking)(int, int, int*, std::size_t*);
  bool find(const library& caller) noexcept {
    const auto get = [&caller](auto& function, const char* name) noexcept {
      void* address = find_symbol(caller.image, name);
      std::memcpy(&function, &address, sizeof address);
      return address != nullptr;
    };
    return get(var_type, "nc_inq_vartype") && get(var_rank, "nc_inq_varndims") && get(var_chunking, "nc_inq_var_chunking");
  }
};

bool describe_variable(const netcdf& nc, int ncid, int varid, std::uint64_t& elements, sentence& reason) noexcept {
  int type = 0, rank = 0, storage = 0;
  std::size_t sizes[netcdf_max_rank];
  if (nc.var_type(ncid, varid, &type) != netcdf_ok || nc.var_rank(ncid, varid, &rank) != netcdf_ok || rank < 0 ||
      static_cast<unsigned>(rank) > netcdf_max_rank || (rank > 0 && nc.var_chunking(ncid, varid, &storage, sizes) != netcdf_ok))
    return reason.set(minor::cant_filter, "zarrbits: packbits: netCDF does not report the type and the chunks of the variable");
  if (type != netcdf_byte && type != netcdf_char && type != netcdf_ubyte)
    return reason.set(minor::bad_type,
                      "zarrbits: packbits: a variable has netCDF type %d, but only values of one byte (byte, ubyte, char) can be "
                      "packed to one bit",
                      type);
  elements = 1;
  for (int i = 0; i < rank; ++i)
    if (sizes[i] == 0 || __builtin_mul_overflow(elements, std::uint64_t{sizes[i]}, &elements))
      return reason.set(minor::bad_value, "zarrbits: packbits: the chunk's shape is empty or too large; choose another");
  return true;
}

}  // namespace

extern "C" {

static int packbits_from_json(const char* json, std::size_t* n, unsigned** parameters) noexcept {
  sentence reason;
  if (!json || !is_our_json(json)) {
    reason.set(minor::bad_value, "zarrbits: packbits: its configuration is not %s", numcodecs_json);
    return refuse(reason);
  }
  const unsigned values[2] = {1, numcodecs_options};
  if (!copy_out(values, 2, parameters)) return netcdf_no_memory;
  *n = 2;
  return netcdf_ok;
}

static int packbits_to_json(std::size_t n, const unsigned* parameters, char** json) noexcept {
  sentence reason;
  if (!is_numcodecs(n, parameters, reason)) return refuse(reason);
  return copy_out(numcodecs_json, sizeof numcodecs_json, json) ? netcdf_ok : netcdf_no_memory;
}

// NCZarr does not call set_local: this makes the parameters of filter(). A value that does not fit is an error, because other
// readers of numcodecs' packbits do not expect unpacked chunks.
static int packbits_modify(int ncid, int varid, std::size_t* n, unsigned** parameters, std::size_t* working_n,
                           unsigned** working) noexcept {
  library scratch;
  const library& caller = *find_library(ZARRBITS_FILTER_CALLER(), scratch);
  sentence reason;
  netcdf nc{};
  std::uint64_t elements = 0;
  packbits_chunk chunk;
  element boolean;
  boolean.type_class = kind::boolean;
  boolean.size = boolean.components = boolean.precision = 1;
  if (!is_numcodecs(*n, *parameters, reason)) return refuse(reason);
  if (!nc.find(caller)) {
    reason.set(minor::cant_filter, "zarrbits: packbits: the functions of the calling libnetcdf cannot be found");
    return refuse(reason);
  }
  if (!describe_variable(nc, ncid, varid, elements, reason) ||
      !resolve({1, numcodecs_options | ZARRBITS_HDF5_RANGE_ERROR, 0}, boolean, elements, chunk, reason))
    return refuse(reason);
  unsigned stored[packbits_stored];
  store(chunk, stored);
  if (!copy_out(stored, packbits_stored, working)) return netcdf_no_memory;
  *working_n = packbits_stored;
  return netcdf_ok;
}

}  // extern "C"

const netcdf_codec packbits_codec = {netcdf_codec_version,      netcdf_codec_hdf5, "packbits",
                                     ZARRBITS_HDF5_PACKBITS_ID, nullptr,           nullptr,
                                     packbits_from_json,        packbits_to_json,  packbits_modify};

}  // namespace zarrbits::filter
