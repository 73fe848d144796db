// SPDX-License-Identifier: BSL-1.0
//
// packbits as netCDF's NCZarr takes it: the part of netcdf_filter_build.h (netCDF-C 4.9.0 and later) that describes a codec.
//
// NCZarr writes Zarr version 2, where packbits is numcodecs' PackBits: booleans in bytes, a count byte in front, most significant
// bit first, and {"id": "packbits"} in the metadata.
//
#ifndef ZARRBITS_FILTER_NETCDF_CODEC_HPP
#define ZARRBITS_FILTER_NETCDF_CODEC_HPP

#include <cstddef>

namespace zarrbits::filter {

// NCZ_codec_t. The functions return 0 or a negative error; lists and texts in their results come from malloc, and the caller
// frees them.
struct netcdf_codec {
  int version;
  int sort;
  const char* codecid;
  unsigned hdf5id;
  void (*initialize)();
  void (*finalize)();
  int (*codec_to_hdf5)(const char* json, std::size_t* n, unsigned** parameters);
  int (*hdf5_to_codec)(std::size_t n, const unsigned* parameters, char** json);
  int (*modify_parameters)(int ncid, int varid, std::size_t* n, unsigned** parameters, std::size_t* working_n,
                           unsigned** working);
};

inline constexpr int netcdf_codec_version = 1, netcdf_codec_hdf5 = 1;
inline constexpr int netcdf_ok = 0, netcdf_no_memory = -61, netcdf_filter_error = -132;  // NC_NOERR, NC_ENOMEM, NC_EFILTER
inline constexpr int netcdf_byte = 1, netcdf_char = 2, netcdf_ubyte = 7;                 // nc_type
inline constexpr unsigned netcdf_max_rank = 1024;                                        // NC_MAX_VAR_DIMS

extern const netcdf_codec packbits_codec;

}  // namespace zarrbits::filter

#endif
