// SPDX-License-Identifier: BSL-1.0
//
// The bytes filter apart from HDF5: its parameters, and chunks. Encoding and decoding are the same: both reverse components, or
// neither does.
//
#ifndef ZARRBITS_FILTER_BYTES_HPP
#define ZARRBITS_FILTER_BYTES_HPP

#include "filter/element.hpp"

#include <cstddef>
#include <cstdint>

namespace zarrbits::filter {

struct bytes_chunk {
  bool big_endian = false;         // of the encoded chunk
  bool memory_big_endian = false;  // of the dataset's datatype
  std::uint64_t size = 1;          // bytes of a component; 1 if there is no byte order
  std::uint64_t chunk_size = 0;    // bytes, the same for encoded and decoded chunks
  bool checksum_before = false;    // fletcher32 comes before, and its checksum after each chunk

  bool reverses() const noexcept { return size > 1 && big_endian != memory_big_endian; }
};

inline constexpr unsigned bytes_stored = 7;  // length of cd_values in a file

// The user's parameter: at most one value, or a list that store() made for another dataset.
bool read_parameters(std::size_t n, const unsigned cd[], bool& big_endian, sentence& reason) noexcept;
bool resolve(bool big_endian, const element& e, std::uint64_t elements, bytes_chunk& out, sentence& reason) noexcept;

// cd_values as they are in a file:
//   [0] the user's value  [1] 0x5A424501: "ZBE", layout version 1  [2] bytes of a component
//   [3] 1: the datatype is big endian, 2: fletcher32 comes before
//   [4] bytes of a chunk, low half  [5] high half  [6] version of zarrbits
void store(const bytes_chunk& c, unsigned cd[bytes_stored]) noexcept;
bool load(std::size_t n, const unsigned cd[], bytes_chunk& out, sentence& reason) noexcept;

// Works in place. Returns nbytes; on failure 0, with `reason` set and nothing changed.
std::size_t convert(const bytes_chunk& c, std::size_t nbytes, void* buf, sentence& reason) noexcept;

}  // namespace zarrbits::filter

#endif
