// SPDX-License-Identifier: BSL-1.0
//
// The packbits filter apart from HDF5: its parameters, and chunks.
//
//   parameters given by the user  ->  resolve() with the dataset's type and chunk  ->  packbits_chunk
//   packbits_chunk  ->  store()  ->  cd_values in the file  ->  load()  ->  packbits_chunk, for encode() and decode()
//
#ifndef ZARRBITS_FILTER_PACKBITS_HPP
#define ZARRBITS_FILTER_PACKBITS_HPP

#include "core/packing.hpp"
#include "filter/element.hpp"

#include <cstddef>
#include <cstdint>

namespace zarrbits::filter {

enum class range_policy : std::uint8_t { raw, truncate, report, error };

// Everything that is known about a chunk. Its sizes are checked against overflow when it is made.
struct packbits_chunk {
  detail::packing format;
  std::uint32_t components = 1;  // components of each element
  std::uint64_t elements = 0;
  padding count_byte = padding::none;
  range_policy policy = range_policy::raw;
  bool checksum_before = false;  // fletcher32 comes before, and its checksum after each chunk, packed or not
  // All chunks are filled up to one size, for a filter that follows and is unsteady: it stores what it cannot make smaller, and
  // says so in a filter mask, which HDF5 may leave as it was. So no chunk that is made smaller may get the size of another that
  // is not; and with so many zeros, hardly any is not. The last byte is 0, or 1 if the chunk is unpacked.
  bool one_size = false;
  std::uint64_t decoded_size = 0, encoded_size = 0;

  std::size_t count() const noexcept { return static_cast<std::size_t>(elements) * components; }
  detail::layout layout() const noexcept;
  std::size_t checksum_bytes() const noexcept { return checksum_before ? checksum_size : 0; }
  std::size_t filled_size() const noexcept {
    const std::uint64_t element = std::uint64_t{format.size} * components;
    return static_cast<std::size_t>(decoded_size + (elements / 16 + 64 / element + 2) * element) + checksum_bytes();
  }
  bool may_misfit() const noexcept;  // true if there are values that do not fit
  // A chunk with a value that does not fit stays unpacked. Its length distinguishes it from a packed one; HDF5's filter masks do
  // not: a chunk that is written again with its old length keeps its old mask, and parallel HDF5 1.10 stores none.
  bool may_be_raw() const noexcept { return may_misfit() && decoded_size != encoded_size; }
};

inline constexpr unsigned packbits_stored = 12;  // length of cd_values in a file

// The user's parameters: 0 to 4 values, or a list that store() made for another dataset.
struct packbits_parameters_in {
  unsigned bits = 0, options = 0, first_bit = 0;
};
bool read_parameters(std::size_t n, const unsigned cd[], packbits_parameters_in& out, sentence& reason) noexcept;

// Decides which bits of each component of `e` are kept, or refuses the combination with a sentence.
bool resolve(const packbits_parameters_in& user, const element& e, std::uint64_t elements, packbits_chunk& out,
             sentence& reason) noexcept;

// cd_values as they are in a file:
//   [0] bits  [1] options  [2] first bit  [3] 0                    the user's values, resolved
//   [4] 0x5A504201                                                 "ZPB", layout version 1
//   [5] bytes of an element  [6] components of an element
//   [7] bytes of a component | bits that hold its value << 8 | big endian << 16 | signed << 17 | bool << 18
//       | fletcher32 comes before << 19 | chunks of one size << 20
//   [8] elements of a chunk, low half  [9] high half
//   [10] bytes of an encoded chunk, low half                       to be checked
//   [11] version of zarrbits: major << 16 | minor << 8 | patch
void store(const packbits_chunk& c, unsigned cd[packbits_stored]) noexcept;
bool load(std::size_t n, const unsigned cd[], packbits_chunk& out, sentence& reason) noexcept;

// Both work on HDF5's buffer as H5Z_func_t does: they return the size of the result; on failure 0, with `reason` set and nothing
// changed. Both work in place if the buffer has room. `h5` has the memory functions. If encode() returns `nbytes` and sets
// `reason`, the chunk stays unpacked.
std::size_t encode(const library& h5, const packbits_chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                   sentence& reason) noexcept;
std::size_t decode(const library& h5, const packbits_chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                   sentence& reason) noexcept;

}  // namespace zarrbits::filter

#endif
