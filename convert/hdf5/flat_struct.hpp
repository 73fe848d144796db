// SPDX-License-Identifier: BSL-1.0
//
// Compounds with strings of variable length and references in them, as elements of one size: such a field becomes UTF-32 of the
// longest value, a reference the path of its target. Zarr's struct holds nothing else.
//
//   std::vector<std::size_t> lengths(leaves_of_text(type), 1);         // of these fields, in characters
//   for (each element) if (!measure(type, element, file, lengths)) ...;  // there is a value that is no UTF-8
//   flat_data_type(type, lengths);                                     // {"name": "struct", ...}
//   for (each element) append_flat(type, element, file, lengths, chunk);
//
#ifndef ZARRBITS_CONVERT_HDF5_FLAT_STRUCT_HPP
#define ZARRBITS_CONVERT_HDF5_FLAT_STRUCT_HPP

#include "convert/codecs/chunk_bytes.hpp"
#include "convert/hdf5/values_json.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace zarrbits::conversion {

// True of a compound whose fields, and those of compounds in it, are numbers, strings and object references, one of which needs
// this.
bool can_be_flat(const type_tree& t);

// How many fields become text.
std::size_t leaves_of_text(const type_tree& t);

// Raises the length of each field to that of its value. False where a value is no UTF-8.
bool measure(const type_tree& t, const std::byte* element, reference_reader& references, std::vector<std::size_t>& lengths);

// The Zarr data type, and its fill value. No field of text is shorter than one character.
json flat_data_type(const type_tree& t, std::span<const std::size_t> lengths);
json flat_fill(const type_tree& t, const std::byte* element);

// An element, with little-endian numbers. Throws h5::failure where a text is longer than its field. Returns false where a
// reference points nowhere.
bool append_flat(const type_tree& t, const std::byte* element, reference_reader& references, std::span<const std::size_t> lengths,
                 buffer& out);

}  // namespace zarrbits::conversion

#endif
