// SPDX-License-Identifier: BSL-1.0
//
// Finds the libhdf5 that called us, and its functions.
//
//   extern "C" htri can_apply(hid dcpl, hid type, hid space) noexcept {
//     library scratch;
//     const library* h5 = find_library(ZARRBITS_FILTER_CALLER(), scratch);
//
// A process may have several libhdf5 (Python's h5py and netCDF4 bring their own), and all call the same copy of a plugin. Ids of
// one mean nothing to another, and none may free another's memory. So nothing is linked: each callback looks up the module of its
// return address, and takes the functions from there.
//
#ifndef ZARRBITS_FILTER_CALLER_HPP
#define ZARRBITS_FILTER_CALLER_HPP

#include "filter/h5_abi.hpp"
#include "filter/module.hpp"

#include <cstddef>
#include <cstdint>

// The return address of the current function. Only meaningful in a callback itself, so this is a macro.
#define ZARRBITS_FILTER_CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

namespace zarrbits::filter {

struct library {
  module image;
  functions call{};
  bool complete = false;             // everything was found, except what `functions` allows to be missing
  bool narrow_ids = false;           // HDF5 1.8: hid_t has 32 bits
  bool loses_filter_errors = false;  // HDF5 1.14.5 to 2.1: loses what filter() puts on the error stack

  // An id from this library: an argument, a result or a variable.
  hid id(hid raw) const noexcept { return narrow_ids ? static_cast<std::int32_t>(raw) : raw; }

  // For buffers that HDF5 will free, or that it allocated. Uses HDF5's own functions, or malloc and free if it has none (HDF5
  // before 1.8.15; netCDF, which calls filters itself).
  void* allocate(std::size_t size) const noexcept;
  void* resize(void* memory, std::size_t size) const noexcept;  // null, with `memory` unchanged, if there is no memory
  void release(void* memory) const noexcept;

  // The value of one of HDF5's error ids ("H5E_PLINE_g"), or -1.
  hid error_id(const char* name) const noexcept;
};

// Never null. `complete` is false if the caller is not a libhdf5 whose symbols can be found. `scratch` is used if the cache
// cannot take the module.
const library* find_library(void* return_address, library& scratch) noexcept;

}  // namespace zarrbits::filter

#endif
