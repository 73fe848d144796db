// SPDX-License-Identifier: BSL-1.0
//
// Datasets that are groups in a store: compounds with strings, references or sequences in them, and sequences
// (convert/from_hdf5/ragged_arrays.hpp says how).
//
#ifndef ZARRBITS_EXPORT_GROUPED_DATASET_HPP
#define ZARRBITS_EXPORT_GROUPED_DATASET_HPP

#include "export/store_node.hpp"
#include "export/type_spec.hpp"
#include "export/value_writer.hpp"
#include "zarr/read/store_reader.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::exporting {

// True if the notes say that the group was a dataset.
bool is_grouped_dataset(const store_node& node);

struct grouped_spec {
  type_spec type;
  array::extents dims, max_dims, chunk;  // no chunk: contiguous
};

// Throws unsupported_in_hdf5, store_error and not_supported.
grouped_spec grouped_spec_of(const zarr::store_folder& folder, const store_node& node, const spec_rules& rules);

// Writes all values. Throws the same, and hdf5::failure.
void write_grouped(hid_t dataset, const zarr::store_folder& folder, const grouped_spec& form, std::uint64_t memory,
                   reference_maker& references);

// The name in the file of a child of a group, or of a member, that is stored under `stored`.
std::string name_in_file(const store_node& group, const std::string& stored);

}  // namespace zarrbits::exporting

#endif
