// SPDX-License-Identifier: BSL-1.0
//
// Compares two datasets of HDF5 files: type, shape, fill value and every element, all through libhdf5. Layout, chunks and filters
// may differ.
//
#ifndef ZARRBITS_VERIFY_COMPARE_HDF5_DATASET_HPP
#define ZARRBITS_VERIFY_COMPARE_HDF5_DATASET_HPP

#include "verify/hdf5_side.hpp"

#include <cstdint>
#include <hdf5.h>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::verification {

class hdf5_dataset_comparison {
 public:
  // What it finds goes to `f`.
  hdf5_dataset_comparison(hid_t first, hid_t second, const hdf5_context& context, finding& f);

  void run();
  // Elements that are equal.
  std::uint64_t elements() const noexcept { return elements_; }

 private:
  using index = std::vector<std::uint64_t>;

  struct side {
    hid_t id;
    const hdf5::opened_source& file;
    const char* name;  // " from the second file"
    hdf5::handle type = {}, properties = {}, space = {};
    H5D_layout_t layout = H5D_LAYOUT_ERROR;
    index chunk = {};       // empty: it is not chunked
    bool is_stored = true;  // false: all elements are the fill value
    std::uint64_t stored_bytes = 0;
  };

  bool open(side& s);
  bool compare_description();
  void compare_fill();
  void compare_elements();
  index block_shape() const;
  bool list_blocks(const side& s, const index& shape, std::vector<std::uint64_t>& numbers) const;
  bool compare_block(const index& start, const index& count);
  void read_block(const index& start, const index& count);
  bool can_read_block(const index& start, const index& count);
  bool compare_values(const index& start, const index& count);
  void report_element(const index& start, const index& count, std::uint64_t number, const difference& d);

  const hdf5_context& context_;
  finding& f_;
  side first_, second_;
  index dims_;
  element_form form_;
  source_type memory_;
  std::unique_ptr<source_values> values_, other_values_;
  std::uint64_t elements_ = 0;
};

}  // namespace zarrbits::verification

#endif
