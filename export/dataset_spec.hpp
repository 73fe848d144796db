// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 dataset that an array of a store becomes.
//
#ifndef ZARRBITS_EXPORT_DATASET_SPEC_HPP
#define ZARRBITS_EXPORT_DATASET_SPEC_HPP

#include "convert/from_zarr/source_array.hpp"
#include "export/store_node.hpp"
#include "export/type_spec.hpp"
#include "export/value_writer.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace zarrbits::exporting {

struct dataset_spec {
  type_spec element;                   // of one element of the Zarr array
  std::optional<type_spec> composite;  // of several, the last dimensions of the array: an array type, or bytes
  std::size_t inner = 1;               // elements of the Zarr array in a value
  std::size_t characters = 0;  // of a text, along a last dimension that the Zarr array does not have: netCDF's; 0: no such
  array::extents dims, max_dims;
  array::extents chunk;      // empty: contiguous
  bool null = false;         // no dataspace
  bool same_layout = false;  // chunks of the store become chunks of the file by reversing bytes and converting numbers

  const type_spec& type() const { return composite ? *composite : element; }
};

// The characters of a text, if they get a dimension of their own; else 0. Throws unsupported_in_hdf5.
std::size_t characters_of(const store_node& node, const spec_rules& rules);

// Throws unsupported_in_hdf5.
dataset_spec dataset_spec_of(const conversion::source_array& array, const store_node& node, const spec_rules& rules);

// True if HDF5 cannot have the array's fill value, so chunks that were never written must be: files opened for reading have none
// of variable length (libhdf5 wants to write it), and netCDF's characters have one for all of a text.
bool must_write_fill(const conversion::source_array& array, const dataset_spec& form);

// The extents of a dataspace, from the note "maxshape" if there is one. Throws unsupported_in_hdf5.
array::extents max_dims_of(const store_node& node, const array::extents& dims);

// The codecs of the smallest chunks.
const text::json& codecs_of_chunks(const store_node& node);

}  // namespace zarrbits::exporting

#endif
