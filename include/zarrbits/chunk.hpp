// SPDX-License-Identifier: BSL-1.0
//
// Whole chunks, into buffers that you own. No allocation, no exceptions, nothing read or written outside the spans.
//
//   auto c = zarrbits::packbits("uint16", {.last_bit = 11});
//   std::vector<std::byte> out(c.encoded_size(pixels.size()));
//   auto r = zarrbits::encode_chunk(c, std::as_bytes(std::span(pixels)), out);
//   if (!r) std::cerr << c.explain(r.failure) << '\n';
//
#ifndef ZARRBITS_CHUNK_HPP
#define ZARRBITS_CHUNK_HPP

#include <zarrbits/codec.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits {

struct chunk_result {
  std::size_t size = 0;       // bytes written
  zarrbits::failure failure;  // what went wrong; then the contents of the output are unspecified

  explicit operator bool() const noexcept { return !failure; }
};

// Encodes all elements of `decoded`, whose size must be a multiple of the element's. `encoded` must hold encoded_size() bytes, and
// may be larger. Input and output may be the same memory (both begin at the same byte) where the encoded element is as large as the
// decoded one, that is for `bytes`: the byte order is then reversed in place.
chunk_result encode_chunk(const codec& c, std::span<const std::byte> decoded, std::span<std::byte> encoded) noexcept;

// Decodes a chunk into `decoded`, whose size says how many elements there are (a size that is no whole number of them is partial_element). `encoded` must have exactly encoded_size() bytes: "too
// short" and "too long" are errors, and so is a count byte that disagrees. In place as above.
chunk_result decode_chunk(const codec& c, std::span<const std::byte> encoded, std::span<std::byte> decoded) noexcept;

// Decodes elements first .. first + count - 1 of a chunk of `elements`, and reads only the bytes of encoded_range(). `encoded` is the whole
// chunk (the bytes outside the range need not be readable). `decoded` must hold count elements.
chunk_result decode_range(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded, std::uint64_t first,
                          std::uint64_t count, std::span<std::byte> decoded) noexcept;

// The same where only the bytes of encoded_range(elements, first, count) are at hand.
chunk_result decode_range_bytes(const codec& c, std::uint64_t elements, std::span<const std::byte> range, std::uint64_t first,
                                std::uint64_t count, std::span<std::byte> decoded) noexcept;

}  // namespace zarrbits

#endif
