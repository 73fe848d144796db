// SPDX-License-Identifier: BSL-1.0
//
// Which libhdf5 called us, and its functions.
//
//   extern "C" htri can_apply(hid dcpl, hid type, hid space) noexcept {
//     library scratch;
//     const library* h5 = find_library(ZARRBITS_FILTER_CALLER(), scratch);
//
// A process may hold several libhdf5 (Python's h5py and netCDF4 bring their own), all of which call the one copy of a plugin. Ids
// of one mean nothing to another, and memory of one must not be freed by another, so nothing is linked: each callback looks up
// the module that its return address lies in, and takes the functions from there.
//
#ifndef ZARRBITS_FILTER_CALLER_HPP
#define ZARRBITS_FILTER_CALLER_HPP

#include "filter/h5_abi.hpp"
#include "filter/module.hpp"

#include <cstddef>
#include <cstdint>

// The address that the current function returns to. Only meaningful in a callback itself, which is why this is a macro.
#define ZARRBITS_FILTER_CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

namespace zarrbits::filter {

struct library {
  module where;  // kept loaded while this is cached
  functions call{};
  bool complete = false;             // everything was found, but for what `functions` says may be missing
  bool narrow_ids = false;           // HDF5 1.8: hid_t has 32 bits
  bool loses_filter_errors = false;  // HDF5 1.14.5 to 2.1: what filter() puts on the error stack is thrown away

  // An id as it came from this library, as an argument, a result or a variable.
  hid id(hid raw) const noexcept { return narrow_ids ? static_cast<std::int32_t>(raw) : raw; }

  // Buffers that HDF5 will free, or that it allocated: with its own functions, or malloc and free where it has none (HDF5 before
  // 1.8.15; netCDF, which calls filters itself).
  void* allocate(std::size_t size) const noexcept;
  void* resize(void* memory, std::size_t size) const noexcept;  // null, and `memory` as it was, where there is none
  void release(void* memory) const noexcept;

  // Is this an HDF5 for MPI, in a process where MPI is running?
  bool parallel() const noexcept;

  // The value of one of HDF5's error ids ("H5E_PLINE_g"), or -1.
  hid error_id(const char* name) const noexcept;
};

// Never null. `complete` is false where the caller is not a libhdf5 whose symbols can be found. `scratch` is used where the cache
// cannot take the module.
const library* find_library(void* return_address, library& scratch) noexcept;

}  // namespace zarrbits::filter

#endif
