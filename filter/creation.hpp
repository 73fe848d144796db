// SPDX-License-Identifier: BSL-1.0
//
// Collects and checks HDF5's arguments to a filter when a dataset is created: the part that all our filters share.
//
#ifndef ZARRBITS_FILTER_CREATION_HPP
#define ZARRBITS_FILTER_CREATION_HPP

#include "filter/element.hpp"

namespace zarrbits::filter {

struct creation {
  const library* h5 = nullptr;
  hid dcpl = -1;
  element element_type;
  std::uint64_t elements = 0;    // of a chunk
  unsigned flags = 0;            // of our filter in the pipeline
  bool checksum_before = false;  // HDF5's fletcher32 comes before ours, as netCDF puts it
  bool unsteady_after = false;   // an optional filter follows that leaves out chunks which it cannot make smaller
  std::size_t cd_nelmts = 0;     // may exceed the length of cd_values
  unsigned cd_values[32] = {};
};

// Refuses, with a sentence: anything but a dataset (group heaps pass ids of -1), a pipeline in which another filter than a
// fletcher32 comes before ours, or ours is repeated, datatypes that are not numbers. `h5` must be complete.
bool examine(const library& h5, hid dcpl, hid type, hid space, int filter_id, const char* codec, creation& out,
             sentence& reason) noexcept;

// Refuses chunks that may have 4 GiB or more in the file: HDF5 2 keeps their length modulo 2^32, and reports success.
bool fits_a_file(std::uint64_t size, const char* codec, sentence& reason) noexcept;

}  // namespace zarrbits::filter

#endif
