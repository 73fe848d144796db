// SPDX-License-Identifier: BSL-1.0
//
// The values of an array in a store, in HDF5's memory types.
//
#ifndef ZARRBITS_APPEND_EXISTING_ZARR_ARRAY_HPP
#define ZARRBITS_APPEND_EXISTING_ZARR_ARRAY_HPP

#include "append/existing_array.hpp"
#include "hdf5/chunk_source.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::append {

class existing_zarr_array final : public existing_array {
 public:
  // `node`: its zarr.json. Throws zarrbits::error if the array cannot grow along the axis.
  static std::shared_ptr<const existing_array> make(const std::string& store, const std::string& path, const text::json& node,
                                                    const zarr::store_folder& folder, zarr::zarr_array array, std::size_t axis);

  void read_block(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                  const array::extents& out_shape, compressors::buffer& out, hdf5::vlen_allocator* strings) const override;
  std::optional<stored_shard> shard(const array::extents& index) const override;

 private:
  existing_zarr_array(zarr::store_folder folder, zarr::zarr_array array, std::size_t axis);
  void take_grid(const std::function<void(const std::string&)>& refuse);
  void find_missing(const text::json& node);
  void drop_chunks_to_make(stored_shard& existing, const array::extents& index) const;

  zarr::store_folder folder_;
  zarr::zarr_array array_;
  std::size_t axis_;
};

// Like append_target::difference() and last_values().
std::string compare_values(const zarr::zarr_array& array, const hdf5::chunk_source& data);
std::vector<double> last_numbers(const zarr::zarr_array& array);

}  // namespace zarrbits::append

#endif
