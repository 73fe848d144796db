// SPDX-License-Identifier: BSL-1.0
//
// Decodes values of a dataset of the source, any box of them.
//
//   const box_reader reader(pair);
//   const compressors::buffer values = reader.read({{0, 0}, {10, 20}});   // in any thread, if there is one part
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
  // What a part without chunks and the box share, by libhdf5.
  void read_unchunked(const dataset_part& part, compressors::buffer& values, const array::box& b) const;
  // Puts what a chunk and the box share into the box's values.
  void decode(const dataset_part& part, const array::extents& index, compressors::buffer& values, const array::box& b) const;
  // The box's share of the chunks that the source has there.
  double stored_bytes(const array::box& b) const;

 private:
  template <class Visit>
  void for_each_part(const array::box& b, const Visit& visit) const;
  void decode_chunk(const dataset_part& part, const array::extents& index, compressors::buffer& values,
                    const array::box& b) const;

  const dataset_pair& dataset_;
  const hdf5::type_description type_;
  const std::string fill_;
};

}  // namespace zarrbits::repacking

#endif
