// SPDX-License-Identifier: BSL-1.0
//
// What HDF5 tells a filter when a dataset is created, collected and checked as far as it is the same for every filter of ours.
//
#ifndef ZARRBITS_FILTER_CREATION_HPP
#define ZARRBITS_FILTER_CREATION_HPP

#include "filter/element.hpp"

namespace zarrbits::filter {

struct creation {
  const library* h5 = nullptr;
  hid dcpl = -1, type = -1;
  element what;
  std::uint64_t elements = 0;  // of a chunk
  unsigned flags = 0;          // of our filter in the pipeline
  bool followed = false;       // by another filter than HDF5's fletcher32 (mandatory, as H5Pset_fletcher32 sets it)
  std::size_t cd_nelmts = 0;   // may be more than cd_values holds
  unsigned cd_values[32] = {};
};

// Refuses, with a sentence: anything but a dataset (group heaps pass ids of -1), a pipeline where ours is not the first filter or
// stands twice, datatypes that are not numbers. `h5` must be complete.
bool examine(const library& h5, hid dcpl, hid type, hid space, int filter_id, const char* codec, creation& out,
             sentence& why) noexcept;

}  // namespace zarrbits::filter

#endif
