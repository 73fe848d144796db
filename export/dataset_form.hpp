// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 dataset that an array of a store becomes.
//
#ifndef ZARRBITS_EXPORT_DATASET_FORM_HPP
#define ZARRBITS_EXPORT_DATASET_FORM_HPP

#include "export/put_value.hpp"
#include "export/store_node.hpp"
#include "export/type_form.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace zarrbits::exporting {

struct dataset_form {
  type_form element;               // of one element of the Zarr array
  std::optional<type_form> whole;  // of several, the last dimensions of the array: an array type, or bytes
  std::size_t inner = 1;           // elements of the Zarr array in a value
  std::size_t characters = 0;      // of a text, along a last dimension that the Zarr array does not have: netCDF's; 0: no such
  std::vector<hsize_t> dims, most;
  std::vector<hsize_t> chunk;  // empty: contiguous
  bool null = false;           // no dataspace
  bool same_layout = false;    // chunks of the store become chunks of the file by reversing bytes and converting numbers

  const type_form& type() const { return whole ? *whole : element; }
};

// The characters of a text, if they get a dimension of their own; else 0. Throws not_expressible.
std::size_t characters_of(const store_node& node, const form_rules& rules);

// Throws not_expressible.
dataset_form form_of(const zarr::zarr_array& array, const store_node& node, const form_rules& rules);

// True if HDF5 cannot have the array's fill value, so chunks that were never written must be: files opened for reading have none
// of variable length (libhdf5 wants to write it), and netCDF's characters have one for all of a text.
bool must_write_fill(const zarr::zarr_array& array, const dataset_form& form);

// The extents of a dataspace, from the note "maxshape" if there is one. Throws not_expressible.
std::vector<hsize_t> limits_of(const store_node& node, const std::vector<hsize_t>& dims);

// Whether the codecs of an array, or of the chunks in its shards, have numbers in big-endian order.
bool is_big_endian(const text::json& codecs);
// The codecs of the smallest chunks.
const text::json& codecs_of_chunks(const store_node& node);

}  // namespace zarrbits::exporting

#endif
