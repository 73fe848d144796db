// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/chunk.hpp>

#include "core/codec_state.hpp"

#include <limits>
#include <vector>

namespace zarrbits {

#ifdef _GLIBCXX_DEBUG
const char detail::library_was_built_with_GLIBCXX_DEBUG = 0;
#else
const char detail::library_was_built_without_GLIBCXX_DEBUG = 0;
#endif

namespace {

chunk_result refused(errc e, std::uint64_t element, std::uint64_t value = 0) noexcept { return {0, {e, element, value}}; }

}  // namespace

chunk_result encode_chunk(const codec& c, std::span<const std::byte> decoded, std::span<std::byte> encoded) noexcept {
  const detail::layout& l = detail::access::state(c).layout;
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
  const detail::layout& l = detail::access::state(c).layout;
  const std::uint64_t elements = decoded.size() / l.element_size;
  if (decoded.size() % l.element_size != 0) return refused(errc::partial_element, elements, decoded.size());
  const failure f = detail::decode_elements(l, elements, encoded, decoded.data());
  if (f) return {0, f};
  return {decoded.size(), {}};
}

chunk_result decode_range(const codec& c, std::uint64_t elements, std::span<const std::byte> encoded, element_range r,
                          std::span<std::byte> decoded) noexcept {
  const detail::layout& l = detail::access::state(c).layout;
  std::uint64_t size = 0;
  byte_range range;
  if (!detail::encoded_size(l, elements, size)) return refused(errc::size_overflow, elements);
  if (encoded.size() != size)
    return refused(encoded.size() < size ? errc::truncated : errc::trailing_data, elements, encoded.size());
  if (!detail::encoded_range(l, elements, r, range)) return refused(errc::invalid_range, r.first, r.count);
  const auto bytes = encoded.subspan(static_cast<std::size_t>(range.offset), static_cast<std::size_t>(range.size));
  return decode_range_bytes(c, elements, bytes, r, decoded);
}

chunk_result decode_range_bytes(const codec& c, std::uint64_t elements, std::span<const std::byte> in, element_range r,
                                std::span<std::byte> decoded) noexcept {
  const detail::layout& l = detail::access::state(c).layout;
  std::uint64_t size = 0;
  byte_range range;
  if (!detail::encoded_size(l, elements, size) || !detail::decoded_size(l, r.count, size))
    return refused(errc::size_overflow, elements);
  if (!detail::encoded_range(l, elements, r, range)) return refused(errc::invalid_range, r.first, r.count);
  if (in.size() != range.size) return refused(in.size() < range.size ? errc::truncated : errc::trailing_data, r.first, in.size());
  if (decoded.size() < size) return refused(errc::buffer_too_small, r.first, size);
  const failure f = detail::decode_range(l, r, in.data(), decoded.data());
  if (f) return {0, f};
  return {static_cast<std::size_t>(size), {}};
}

std::vector<std::byte> encode(const codec& c, std::span<const std::byte> decoded) {
  std::vector<std::byte> encoded(c.encoded_size(decoded.size() / c.element_size()));
  if (const chunk_result r = encode_chunk(c, decoded, encoded); !r) throw data_error(r.failure, c.explain(r.failure));
  return encoded;
}

namespace detail {

failure wrong_size(const codec& c, std::size_t size) noexcept {
  if (size == c.element_size()) return {};
  return {errc::element_size_mismatch, 0, size};
}

failure derive_elements(const codec& c, std::uint64_t size, unsigned count, std::uint64_t& elements) noexcept {
  const layout& l = access::state(c).layout;
  const std::uint64_t k = l.element_bits;
  const bool counted = l.count_byte != padding::none;
  if (k == 0) return {errc::element_count_required, 0, 0};
  if (counted && size == 0) return {errc::truncated, 0, 0};
  const std::uint64_t payload = size - counted;
  if (payload > std::numeric_limits<std::uint64_t>::max() / 8) return {errc::size_overflow, 0, size};
  std::uint64_t bits = payload * 8;
  if (counted) {
    if (count > 7 || count > bits || (bits - count) % k != 0) return {errc::invalid_padding_count, bits / k, count};
    bits -= count;
  }
  elements = bits / k;
  std::uint64_t expected_size = 0;
  if (!encoded_size(l, elements, expected_size) || expected_size != size) return {errc::truncated, elements, 0};
  return {};
}

std::size_t count_to_decode(const codec& c, std::span<const std::byte> encoded, const std::optional<std::uint64_t>& elements,
                            std::size_t size) {
  const auto checked = [&](const failure& f) {
    if (f) throw data_error(f, c.explain(f));
  };
  if (size != 0) checked(wrong_size(c, size));
  const layout& l = access::state(c).layout;
  std::uint64_t n = elements.value_or(0);
  if (!elements) {
    const bool counted = l.count_byte != padding::none && !encoded.empty();
    const std::byte count = !counted ? std::byte{} : l.count_byte == padding::first_byte ? encoded.front() : encoded.back();
    checked(derive_elements(c, encoded.size(), std::to_integer<unsigned>(count), n));
  }
  // before memory is allocated for elements that do not exist: a wrong length is refused without an output
  if (encoded.size() != c.encoded_size(n)) checked(decode_elements(l, n, encoded, nullptr));
  const std::uint64_t bytes = c.decoded_size(n);
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max()) checked({errc::size_overflow, n, bytes});
  return static_cast<std::size_t>(size == 0 ? bytes : n);
}

void decode_or_throw(const codec& c, std::span<const std::byte> encoded, std::span<std::byte> decoded) {
  if (const chunk_result r = decode_chunk(c, encoded, decoded); !r) throw data_error(r.failure, c.explain(r.failure));
}

}  // namespace detail

}  // namespace zarrbits
