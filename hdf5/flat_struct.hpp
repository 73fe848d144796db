// SPDX-License-Identifier: BSL-1.0
//
// Compounds with variable-length strings and references, as elements of fixed size: a string becomes UTF-32 with the length of
// the longest value, a reference becomes the path of its target. Zarr's struct needs fixed sizes.
//
//   std::vector<std::size_t> lengths(leaves_of_text(type), 1);         // of these fields, in characters
//   for (each element) if (!measure(type, element, references, lengths)) ...;  // a value is not UTF-8
//   flat_data_type(type, lengths);                                     // {"name": "struct", ...}
//   for (each element) append_flat(type, element, references, lengths, chunk);
//
#ifndef ZARRBITS_HDF5_FLAT_STRUCT_HPP
#define ZARRBITS_HDF5_FLAT_STRUCT_HPP

#include "compressors/buffer.hpp"
#include "hdf5/values_json.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace zarrbits::hdf5 {

// True for a compound whose fields (nested ones too) are numbers, strings and object references, if one of them needs this form.
bool can_be_flat(const type_description& t);

// The number of fields that become text.
std::size_t leaves_of_text(const type_description& t);

// Raises the length of each field to that of its value. False if a value is not UTF-8.
bool measure(const type_description& t, const std::byte* element, reference_reader& references,
             std::vector<std::size_t>& lengths);

// The Zarr data type, and its fill value. Each text field has room for at least one character.
text::json flat_data_type(const type_description& t, std::span<const std::size_t> lengths);
text::json flat_fill(const type_description& t, const std::byte* element);

// Appends an element, with little-endian numbers. Throws failure if a text is longer than its field. Returns false if a
// reference points to nothing.
bool append_flat(const type_description& t, const std::byte* element, reference_reader& references,
                 std::span<const std::size_t> lengths, compressors::buffer& out);

}  // namespace zarrbits::hdf5

#endif
