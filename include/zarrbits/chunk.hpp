// SPDX-License-Identifier: BSL-1.0
//
// Whole chunks, and ranges of their elements.
//
//   const auto c = zarrbits::packbits("uint16", {.last_bit = 11});
//   const std::vector<std::uint16_t> pixels = {0xABC, 0x123, 0xFFF};
//   const std::vector<std::byte> encoded = zarrbits::encode(c, pixels);               // throws data_error
//   const std::vector<std::uint16_t> back = zarrbits::decode<std::uint16_t>(c, encoded, pixels.size());
//
// Into buffers that you own, without allocation, without exceptions, as fast as it goes:
//
//   std::vector<std::byte> out(c.encoded_size(pixels.size()));
//   const auto r = zarrbits::encode_chunk(c, pixels, out);
//   if (!r) std::cerr << c.explain(r.failure) << '\n';
//
// Elements are given as they are in memory: any contiguous range (std::vector, std::array, std::span) of a type with the size of
// the data type's element, in this machine's byte order: std::uint16_t for uint16, bool or std::uint8_t for bool,
// std::complex<float> for complex64, a struct for raw bytes. Ranges of std::byte are taken as memory that holds such elements.
//
#ifndef ZARRBITS_CHUNK_HPP
#define ZARRBITS_CHUNK_HPP

#include <zarrbits/codec.hpp>
#include <zarrbits/detail/linkage.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace zarrbits {

// A type that an element may have in memory.
template <class T>
concept element = std::is_trivially_copyable_v<T> && !std::same_as<std::remove_cv_t<T>, std::byte>;

// Contiguous elements in memory; std::vector<bool> has none.
template <class R>
concept elements_in_memory =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && element<std::ranges::range_value_t<R>>;

// The same, in writable memory.
template <class R>
concept writable_elements = elements_in_memory<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// The result of encoding or decoding a chunk.
struct [[nodiscard]] chunk_result {
  std::size_t size = 0;       // bytes written
  zarrbits::failure failure;  // what went wrong; the output is then unspecified

  // True if nothing failed.
  explicit operator bool() const noexcept { return !failure; }
};

// Encodes all elements of `decoded`, whose size must be a multiple of the element size. `encoded` must have room for
// encoded_size() bytes, and may be larger. Input and output may be the same memory (both begin at the same byte) if the encoded
// element is as large as the decoded one. This is so for `bytes`: the byte order is then reversed in place.
ZARRBITS_API chunk_result encode_chunk(const codec& c, std::span<const std::byte> decoded, std::span<std::byte> encoded) noexcept;

// Decodes a chunk into `decoded`, whose size gives the number of elements (partial_element if it is not a multiple of the element
// size). `encoded` must have exactly encoded_size() bytes: "too short" and "too long" are errors, and so is a count byte that
// disagrees. Works in place as encode_chunk() does.
ZARRBITS_API chunk_result decode_chunk(const codec& c, std::span<const std::byte> encoded, std::span<std::byte> decoded) noexcept;

// Decodes the elements of `range` from a chunk of `elements` elements. Reads only the bytes of c.encoded_range(elements, range).
// `encoded` is the whole chunk (the bytes outside the range need not be readable). `decoded` must hold range.count elements.
ZARRBITS_API chunk_result decode_range(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded,
                                       element_range range, std::span<std::byte> decoded) noexcept;

// The same if the caller has only the bytes of c.encoded_range(elements, range).
ZARRBITS_API chunk_result decode_range_bytes(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded,
                                             element_range range, std::span<std::byte> decoded) noexcept;

namespace detail {

// element_size_mismatch unless elements of the codec's data type have `size` bytes.
ZARRBITS_API failure wrong_size(const codec& c, std::size_t size) noexcept;

// Derives the number of elements of an encoded chunk of `size` bytes from its count byte `count` (any value if it has none).
// Without a count byte, every whole element counts. element_count_required if elements take no bits.
ZARRBITS_API failure derive_elements(const codec& c, std::uint64_t size, unsigned count, std::uint64_t& elements) noexcept;

// The number of objects of `size` bytes that decode() makes: elements, or the bytes of all elements if `size` is 0. Throws
// data_error if `encoded` is not a chunk of that many elements.
ZARRBITS_API std::size_t count_to_decode(const codec& c, std::span<const std::byte> encoded,
                                         const std::optional<std::uint64_t>& elements, std::size_t size);
ZARRBITS_API void decode_or_throw(const codec& c, std::span<const std::byte> encoded, std::span<std::byte> decoded);

template <class R>
inline constexpr std::size_t size_in = sizeof(std::ranges::range_value_t<R>);

}  // namespace detail

// The same for typed elements. Refuses a type whose size is not the element size of the data type (element_size_mismatch).
template <elements_in_memory R>
chunk_result encode_chunk(const codec& c, const R& decoded, std::span<std::byte> encoded) noexcept {
  if (const failure f = detail::wrong_size(c, detail::size_in<R>)) return {0, f};
  return encode_chunk(c, std::as_bytes(std::span(decoded)), encoded);
}
// The same for typed elements.
template <writable_elements R>
chunk_result decode_chunk(const codec& c, std::span<const std::byte> encoded, R&& decoded) noexcept {
  if (const failure f = detail::wrong_size(c, detail::size_in<R>)) return {0, f};
  return decode_chunk(c, encoded, std::as_writable_bytes(std::span(decoded)));
}
// The same for typed elements.
template <writable_elements R>
chunk_result decode_range(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded, element_range range,
                          R&& decoded) noexcept {
  if (const failure f = detail::wrong_size(c, detail::size_in<R>)) return {0, f};
  return decode_range(c, elements, encoded, range, std::as_writable_bytes(std::span(decoded)));
}
// The same for typed elements.
template <writable_elements R>
chunk_result decode_range_bytes(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded, element_range range,
                                R&& decoded) noexcept {
  if (const failure f = detail::wrong_size(c, detail::size_in<R>)) return {0, f};
  return decode_range_bytes(c, elements, encoded, range, std::as_writable_bytes(std::span(decoded)));
}

// Encodes these elements as a chunk. Throws data_error if an element is refused, `error` (size_overflow) if the result is too
// large.
[[nodiscard]] ZARRBITS_API std::vector<std::byte> encode(const codec& c, std::span<const std::byte> decoded);

// The same for typed elements.
template <elements_in_memory R>
[[nodiscard]] std::vector<std::byte> encode(const codec& c, const R& decoded) {
  if (const failure f = detail::wrong_size(c, detail::size_in<R>)) throw data_error(f, c.explain(f));
  return encode(c, std::as_bytes(std::span(decoded)));
}

// The elements of a chunk, as a vector of T. T is not bool, as std::vector<bool> holds no bools in memory: use std::uint8_t.
// std::byte gives the memory of elements of any type. `elements`: the number of elements of the chunk; any other length is then
// an error. Without it, the count byte decides. If there is none (packbits with padding_encoding none), every whole element comes
// out, and up to 7 of them may be padding. Throws data_error, and `error` (size_overflow) if no chunk can have that many
// elements.
template <class T>
requires(element<T> || std::same_as<T, std::byte>) &&
    (!std::same_as<T, bool>) [[nodiscard]] std::vector<T> decode(const codec& c, std::span<const std::byte> encoded,
                                                                 const std::optional<std::uint64_t>& elements = {}) {
  std::vector<T> decoded(detail::count_to_decode(c, encoded, elements, std::same_as<T, std::byte> ? 0 : sizeof(T)));
  detail::decode_or_throw(c, encoded, std::as_writable_bytes(std::span(decoded)));
  return decoded;
}

}  // namespace zarrbits

#endif
