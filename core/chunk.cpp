// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/chunk.hpp>

#include "core/codec_state.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits {

namespace {

chunk_result refused(errc e, std::uint64_t element, std::uint64_t value = 0) noexcept { return {0, {e, element, value}}; }

}  // namespace

chunk_result encode_chunk(const codec& c, std::span<const std::byte> decoded, std::span<std::byte> encoded) noexcept {
  const detail::layout& l = c.state().layout;
  const std::uint64_t elements = decoded.size() / l.element_size;
  if (decoded.size() % l.element_size != 0) return refused(errc::truncated, elements, decoded.size());
  std::uint64_t size = 0;
  if (!detail::encoded_size(l, elements, size)) return refused(errc::size_overflow, elements);
  if (encoded.size() < size) return refused(errc::buffer_too_small, elements, size);
  const failure f = detail::encode_elements(l, elements, decoded.data(), encoded.data());
  if (f) return {0, f};
  return {static_cast<std::size_t>(size), {}};
}

chunk_result decode_chunk(const codec& c, std::span<const std::byte> encoded, std::span<std::byte> decoded) noexcept {
  const detail::layout& l = c.state().layout;
  const std::uint64_t elements = decoded.size() / l.element_size;
  if (decoded.size() % l.element_size != 0) return refused(errc::partial_element, elements, decoded.size());
  const failure f = detail::decode_elements(l, elements, encoded, decoded.data());
  if (f) return {0, f};
  return {decoded.size(), {}};
}

chunk_result decode_range(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded, std::uint64_t first, std::uint64_t count,
                          std::span<std::byte> decoded) noexcept {
  const detail::layout& l = c.state().layout;
  std::uint64_t size = 0;
  byte_range range;
  if (!detail::encoded_size(l, elements, size)) return refused(errc::size_overflow, elements);
  if (encoded.size() != size) return refused(encoded.size() < size ? errc::truncated : errc::trailing_data, elements, encoded.size());
  if (!detail::element_range(l, elements, first, count, range)) return refused(errc::invalid_range, first, count);
  const auto bytes = encoded.subspan(static_cast<std::size_t>(range.offset), static_cast<std::size_t>(range.size));
  return decode_range_bytes(c, elements, bytes, first, count, decoded);
}

chunk_result decode_range_bytes(const codec& c, std::uint64_t elements, std::span<const std::byte> in, std::uint64_t first, std::uint64_t count,
                                std::span<std::byte> decoded) noexcept {
  const detail::layout& l = c.state().layout;
  std::uint64_t size = 0;
  byte_range range;
  if (!detail::encoded_size(l, elements, size) || !detail::decoded_size(l, count, size)) return refused(errc::size_overflow, elements);
  if (!detail::element_range(l, elements, first, count, range)) return refused(errc::invalid_range, first, count);
  if (in.size() != range.size) return refused(in.size() < range.size ? errc::truncated : errc::trailing_data, first, in.size());
  if (decoded.size() < size) return refused(errc::buffer_too_small, first, size);
  const failure f = detail::decode_range(l, first, count, in.data(), decoded.data());
  if (f) return {0, f};
  return {static_cast<std::size_t>(size), {}};
}

}  // namespace zarrbits
