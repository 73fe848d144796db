// SPDX-License-Identifier: BSL-1.0
//
// Strings of variable length, by H5Dread. libhdf5 cannot read chunks that were never written if the fill value is a text: it
// wants to write the text into the file ("no write intent on file"). So such chunks get it here.
//
#ifndef ZARRBITS_HDF5_STRING_BLOCKS_HPP
#define ZARRBITS_HDF5_STRING_BLOCKS_HPP

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/vlen_allocator.hpp"

#include <optional>
#include <span>
#include <string>

namespace zarrbits::hdf5 {

class string_blocks {
 public:
  // Throws failure.
  explicit string_blocks(hid_t dataset);

  // True if H5Dread may not read all blocks, and read() does.
  bool has_fill_text() const { return fill_text_.has_value(); }
  // Reads the strings of `b` into an array of the shape `out_shape`, from the element `out_first` on. `memory`: a type of
  // strings. Throws failure, also if there is no room in `strings`.
  void read(hid_t memory, const array::box& b, const array::extents& out_shape, const array::extents& out_first,
            std::span<char*> out, vlen_allocator& strings) const;

 private:
  hid_t dataset_;
  array::chunk_grid grid_;
  std::optional<std::string> fill_text_;
};

}  // namespace zarrbits::hdf5

#endif
