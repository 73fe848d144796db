// SPDX-License-Identifier: BSL-1.0
//
// Whole chunks, and parts of them, over the components of packing.cpp. In a separate file, because std::error_code needs the C++
// runtime, and the HDF5 plugins do without it.
#include "core/packing.hpp"

#include "core/kernels/kernels.hpp"

#include <algorithm>

namespace zarrbits::detail {

namespace {

// Struct-like elements: run after run, element after element. Their runs are whole bytes.
template <class Components>
std::uint64_t each_element(const layout& l, std::uint64_t elements, const std::byte* in, std::byte* out, Components components,
                           const run*& failed, std::size_t& component) noexcept {
  for (std::uint64_t e = 0; e < elements; ++e)
    for (const run& r : l.runs) {
      const std::size_t processed = components(*l.kernels, r.format, in, out, r.count);
      if (processed != r.count) {
        failed = &r;
        component = processed;
        return e;
      }
      in += std::size_t{r.count} * r.format.size;
      out += std::size_t{r.count} * r.format.size;
    }
  return elements;
}

}  // namespace

failure encode_elements(const layout& l, std::uint64_t elements, const std::byte* in, std::byte* out) noexcept {
  std::uint64_t size = 0;
  if (!encoded_size(l, elements, size)) return {errc::size_overflow, elements, 0};
  const auto count = static_cast<std::byte>(padding_bits(l, elements));
  if (l.count_byte == padding::last_byte) out[size - 1] = count;
  if (l.count_byte == padding::first_byte) *out++ = count;
  if (elements == 0) return {};
  if (l.runs.size() == 1) {
    const run& r = l.runs[0];
    const std::size_t n = elements * r.count;
    const std::size_t processed = encode_components(*l.kernels, r.format, in, out, n);
    if (processed == n) return {};
    return {r.format.is_bool ? errc::invalid_bool : errc::value_does_not_fit, processed / r.count,
            load_component(r.format, in + processed * r.format.size)};
  }
  const run* failed = nullptr;
  std::size_t component = 0;
  const std::uint64_t e = each_element(l, elements, in, out, encode_components, failed, component);
  if (!failed) return {};
  std::size_t offset = e * l.element_size + component * failed->format.size;
  for (const run* r = l.runs.data(); r != failed; ++r) offset += std::size_t{r->count} * r->format.size;
  return {failed->format.is_bool ? errc::invalid_bool : errc::value_does_not_fit, e, load_component(failed->format, in + offset)};
}

namespace {

// Elements that begin at a byte, without the count byte.
failure decode_body(const layout& l, std::uint64_t elements, const std::byte* in, std::byte* out) noexcept {
  if (l.runs.size() == 1) {
    const run& r = l.runs[0];
    const std::size_t n = elements * r.count;
    const std::size_t processed = decode_components(*l.kernels, r.format, in, out, n);
    if (processed == n) return {};
    return {errc::invalid_bool, processed / r.count, std::to_integer<std::uint64_t>(in[processed])};
  }
  const run* failed = nullptr;
  std::size_t component = 0;
  const std::uint64_t e = each_element(l, elements, in, out, decode_components, failed, component);
  if (!failed) return {};
  std::size_t offset = e * l.element_size + component;
  for (const run* r = l.runs.data(); r != failed; ++r) offset += std::size_t{r->count} * r->format.size;
  return {errc::invalid_bool, e, std::to_integer<std::uint64_t>(in[offset])};
}

}  // namespace

failure decode_elements(const layout& l, std::uint64_t elements, std::span<const std::byte> in, std::byte* out) noexcept {
  std::uint64_t size = 0;
  if (!encoded_size(l, elements, size)) return {errc::size_overflow, elements, 0};
  if (in.size() > size) return {errc::trailing_data, elements, in.size()};
  if (in.size() < size) {
    // the number of elements, for the sentence
    const std::uint64_t bytes = in.size() - (l.count_byte != padding::none && !in.empty());
    return {errc::truncated, bytes / l.element_bits * 8 + bytes % l.element_bits * 8 / l.element_bits, in.size()};
  }
  const unsigned padding_count = padding_bits(l, elements);
  std::span<const std::byte> body = in;
  if (l.count_byte != padding::none) {
    const bool first = l.count_byte == padding::first_byte;
    const auto count = std::to_integer<unsigned>(first ? in.front() : in.back());
    if (count != padding_count) return {errc::invalid_padding_count, elements, count};
    body = first ? in.subspan(1) : in.first(in.size() - 1);
  }
  if (elements == 0) return {};
  if (l.strict_padding && padding_count != 0) {
    const auto last = std::to_integer<unsigned>(body.back());
    const unsigned set = l.runs[0].format.msb_first ? last & ((1u << padding_count) - 1) : last >> (8 - padding_count);
    if (set != 0) return {errc::nonzero_padding, elements, set};
  }
  return decode_body(l, elements, body.data(), out);
}

bool encoded_range(const layout& l, std::uint64_t elements, element_range r, byte_range& range) noexcept {
  const auto [first, count] = r;
  if (first > elements || count > elements - first) return false;
  // 8 elements take whole bytes, so no product of bits can overflow if the chunk's size did not
  const auto bits_within = [&](std::uint64_t e) { return e % 8 * (l.element_bits % 8); };
  const auto whole_bytes = [&](std::uint64_t e) { return e / 8 * l.element_bits + e % 8 * (l.element_bits / 8); };
  const std::uint64_t begin = whole_bytes(first) + bits_within(first) / 8;
  const std::uint64_t end = whole_bytes(first + count) + (bits_within(first + count) + 7) / 8;
  range = {begin + (l.count_byte == padding::first_byte), count == 0 ? 0 : end - begin};
  return true;
}

failure decode_range(const layout& l, element_range r, const std::byte* in, std::byte* out) noexcept {
  const auto [first, count] = r;
  if (count == 0) return {};
  const packing& p = l.runs[0].format;
  std::size_t bit = first % 8 * (l.element_bits % 8) % 8;
  if (bit == 0) {
    failure f = decode_body(l, count, in, out);
    if (f) f.element += first;
    return f;
  }
  // up to 7 components until the next one that begins at a byte
  const std::size_t n = count * l.runs[0].count;
  std::size_t i = 0;
  for (; i < n && bit % 8 != 0; ++i, bit += p.bits) {
    std::uint64_t bits = 0, value = 0;
    for (std::size_t got = 0; got < p.bits;) {
      const std::size_t position = bit + got;
      const auto byte = std::to_integer<unsigned>(in[position / 8]);
      const std::size_t m = std::min<std::size_t>(8 - position % 8, p.bits - got);
      const unsigned piece = p.msb_first ? byte >> (7 - position % 8) : byte >> position % 8;  // msb_first only occurs with 1 bit
      bits |= (piece & low_bits(static_cast<unsigned>(m))) << got;
      got += m;
    }
    decode_value(p, bits, value);
    store_component(p, value, out + i * p.size);
  }
  decode_components(*l.kernels, p, in + bit / 8, out + i * p.size, n - i);
  return {};
}

}  // namespace zarrbits::detail
