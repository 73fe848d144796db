// SPDX-License-Identifier: BSL-1.0
//
// HDF5's filter pipeline, undone and applied without libhdf5.
//
#ifndef ZARRBITS_HDF5_FILTERS_HPP
#define ZARRBITS_HDF5_FILTERS_HPP

#include "compressors/buffer.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/type_description.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {

struct filter {
  H5Z_filter_t id = 0;
  std::vector<unsigned> values;
  std::string name;
  bool is_optional = false;  // chunks may be stored without it
};

constexpr H5Z_filter_t packbits_filter = ZARRBITS_CONVERT_PACKBITS_ID;
constexpr H5Z_filter_t bytes_filter = ZARRBITS_CONVERT_BYTES_ID;
constexpr H5Z_filter_t lzo_filter = 305;
constexpr H5Z_filter_t bzip2_filter = 307;
constexpr H5Z_filter_t lzf_filter = 32000;
constexpr H5Z_filter_t blosc_filter = 32001;
constexpr H5Z_filter_t lz4_filter = 32004;
constexpr H5Z_filter_t bitshuffle_filter = 32008;
constexpr H5Z_filter_t zstd_filter = 32015;

// A shuffle of elements of one byte, which netCDF puts before each deflate.
inline bool is_no_op(const filter& f) { return f.id == H5Z_FILTER_SHUFFLE && f.values.size() == 1 && f.values[0] == 1; }

struct pipeline {
  std::vector<filter> filters;      // in the order in which they were applied
  bool partial_unfiltered = false;  // partial chunks at the edge are stored without filters

  bool empty() const { return filters.empty(); }
  bool compresses() const;   // true if a filter makes chunks smaller
  bool checks_only() const;  // true if all filters are checksums
  // True if undo() can decode values of this type.
  bool can_decode(const type_description& stored) const;
  // Names of the filters that neither we nor libhdf5 have; empty: none are missing. `mask`: the filters that a chunk was stored
  // without.
  std::string unavailable_filters(const type_description& stored, unsigned mask = 0) const;
  std::string text() const;  // "shuffle, deflate"
  int shuffles() const;      // 0; 1: bytes; 2: bits
  int gzip_level() const;    // level to compress again with: the source's, if it has one
};

pipeline read_pipeline(hid_t creation_properties);

// False if filter i was left out for a chunk: then bit i of its filter mask is set.
inline bool applied(unsigned mask, std::size_t i) { return !(i < 32 && (mask >> i & 1)); }

// `stored` becomes the chunk's elements in the stored type, `size` bytes. Throws
// corrupt_chunk.
compressors::buffer undo(const pipeline& p, unsigned mask, compressors::buffer stored, std::size_t size,
                         const type_description& type);
// Like undo(), but stops at our packbits filter, number `packs`: the chunk as that filter left it, packed or not.
compressors::buffer undo_after_packbits(const pipeline& p, std::size_t packs, unsigned mask, compressors::buffer stored,
                                        std::size_t size, const type_description& type);

// The reverse of undo(), with all filters. Throws failure if a filter cannot encode here.
compressors::buffer apply(const pipeline& p, compressors::buffer values);
// True if apply() has an encoder for each filter. The caller holds lock, or is alone.
bool can_apply(const filter& f);
// Notes the length of a whole chunk among the parameters, where a filter has it there. False if it has it already, or nowhere.
bool set_chunk_bytes(filter& f, std::uint64_t bytes);
bool can_apply(const pipeline& p);

}  // namespace zarrbits::hdf5

#endif
