// SPDX-License-Identifier: BSL-1.0
//
// Everything of the core: Zarr's `bytes` and `packbits` codecs as chunk functions and as streaming transforms.
//
//   #include <zarrbits/zarrbits.hpp>
//
// <zarrbits/iostreams.hpp> (Boost.Iostreams filters) and <zarrbits/hdf5.h> (HDF5 filter plugin, C) are separate.
//
#ifndef ZARRBITS_ZARRBITS_HPP
#define ZARRBITS_ZARRBITS_HPP

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/codec.hpp>
#include <zarrbits/data_type.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/packbits.hpp>
#include <zarrbits/transform.hpp>
#include <zarrbits/version.hpp>

#endif
