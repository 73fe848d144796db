// SPDX-License-Identifier: BSL-1.0
//
// Decodes this project's filters packbits and bytes for values of a datatype.
//
#ifndef ZARRBITS_HDF5_ZARRBITS_FILTERS_HPP
#define ZARRBITS_HDF5_ZARRBITS_FILTERS_HPP

#include "hdf5/filter_table.hpp"
#include "hdf5/filters.hpp"

namespace zarrbits::hdf5 {

// False if the filter's parameters are those that a user gave: then nothing resolved them when the dataset was created, and the
// filter leaves its chunks as they are.
bool was_resolved(const filter& f);

// The packbits codec for chunks of our filter, for a Zarr array of this type; empty if no such codec exists.
struct packbits_layout {
  unsigned first_bit = 0, bits = 0, padding = 0;
  bool msb_first = false;
  bool is_signed = false;  // decoding extends the sign of the kept bits
};
std::optional<packbits_layout> packbits_of(const filter& f, const type_description& number);
// Size of a packed chunk of `size` bytes of values. Throws corrupt_chunk.
std::size_t packed_size(const filter& f, std::size_t size, const type_description& stored);

// True if the filter left this chunk unpacked. Takes off what fills the chunk up. Throws corrupt_chunk.
bool left_unpacked(const filter& f, compressors::buffer& chunk, values_size size, const type_description& stored);

bool supports_packbits(const filter& f, const type_description& stored);
bool supports_bytes(const type_description& stored);
// What the filter's parameters say of its chunks, where the dataset is unknown; empty if nothing resolved them, or this version
// does not know them.
struct resolved_chunks {
  type_description number;
  values_size size;
};
std::optional<resolved_chunks> resolved_chunks_of(const filter& f);

// Both throw corrupt_chunk.
compressors::buffer undo_packbits(const filter& f, compressors::buffer in, values_size size, const type_description& stored);
compressors::buffer undo_bytes(const filter& f, compressors::buffer in, values_size size, const type_description& stored);

}  // namespace zarrbits::hdf5

#endif
