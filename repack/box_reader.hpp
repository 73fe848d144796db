// SPDX-License-Identifier: BSL-1.0
//
// Decodes values of a dataset of the source, any box of them.
//
//   const box_reader reader(pair);
//   const compressors::buffer values = reader.read({{0, 0}, {10, 20}});   // in any thread
//
#ifndef ZARRBITS_REPACK_BOX_READER_HPP
#define ZARRBITS_REPACK_BOX_READER_HPP

#include "repack/dataset_pair.hpp"

#include <cstdint>
#include <string>

namespace zarrbits::repacking {

// All functions throw hdf5::failure, io::read_error, compressors::corrupt_chunk and zarrbits::error.
class box_reader {
 public:
  // The reference lives as long as this.
  explicit box_reader(const dataset_pair& d);

  // So many fill values.
  void fill(compressors::buffer& values, std::uint64_t elements) const;
  compressors::buffer read(const array::box& b) const;
  // By libhdf5, for a dataset without chunks.
  void read_unchunked(compressors::buffer& values, const array::box& b) const;
  // Puts what a chunk and the box share into the box's values.
  void decode(const array::extents& index, compressors::buffer& values, const array::box& b) const;
  // The box's part of the chunks that the source has there.
  double stored_bytes(const array::box& b) const;

 private:
  located_chunk locate(const array::extents& index) const;

  const dataset_pair& dataset_;
  const hdf5::type_description type_;
  const std::string fill_;
};

}  // namespace zarrbits::repacking

#endif
