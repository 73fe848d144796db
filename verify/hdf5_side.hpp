// SPDX-License-Identifier: BSL-1.0
//
// Shared by the comparisons of two HDF5 files: the open files, limits, and the sentences about an object.
//
#ifndef ZARRBITS_VERIFY_HDF5_SIDE_HPP
#define ZARRBITS_VERIFY_HDF5_SIDE_HPP

#include "hdf5/open_source.hpp"
#include "verify/hdf5_references.hpp"

#include <zarrbits/verify.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace zarrbits::verification {

struct hdf5_context {
  const hdf5::opened_source& first;
  const hdf5::opened_source& second;
  element_comparison& elements;
  std::uint64_t memory;  // bytes of a block, and of its strings, in one file
  std::function<void(std::uint64_t bytes)> report_progress;
  bool compares_maximum = true;  // of the shapes of datasets
};

// Adds a sentence to the finding on an object. Its verdict becomes the most severe one.
inline void add_reason(finding& f, verdict outcome, const std::string& sentence) {
  if (outcome > f.outcome) f.outcome = outcome;
  f.reason += (f.reason.empty() ? "" : "; ") + sentence;
}

}  // namespace zarrbits::verification

#endif
