// SPDX-License-Identifier: BSL-1.0
//
// The metadata of a dataset's nodes, after its chunks are written.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_DATASET_METADATA_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_DATASET_METADATA_HPP

#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/dataset_plan.hpp"
#include "hdf5/dimensions.hpp"
#include "metadata/array_metadata.hpp"
#include "zarr/write/node_writer.hpp"

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// A dataset without values becomes an array of length 0; here it has no attributes and dimension names yet.
metadata::array_metadata null_metadata(const dataset_plan& dataset);

// Call after all units: writes zarr.json of each node, and fills in the dataset's entry.
void write_dataset_metadata(const dataset_plan& dataset, zarr::node_writer& out, hdf5::dimension_namer& dimensions,
                            text::json attributes, const work_unit_result& result, converted_object& entry);

}  // namespace zarrbits::conversion

#endif
