// SPDX-License-Identifier: BSL-1.0
//
// The streaming form of encode_elements() and decode_elements(). Long ranges that begin at a byte go through the kernels; the
// rest at a cut goes component by component through a small bit buffer, with the same encode_value() and decode_value().
//
#include <zarrbits/transform.hpp>

#include "core/codec_state.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace zarrbits {

namespace {

using detail::carry;
using detail::layout;
using detail::run;

__extension__ typedef unsigned __int128 bit_buffer;  // at most 7 bits wait for output, or 63 for the rest of an element

enum phase : std::uint8_t { begin, body, tail, finished };

bit_buffer bits_of(const carry& c) noexcept { return bit_buffer{c.bits_high} << 64 | c.bits_low; }

void set_bits(carry& c, bit_buffer b) noexcept {
  c.bits_low = static_cast<std::uint64_t>(b);
  c.bits_high = static_cast<std::uint64_t>(b >> 64);
}

void append(carry& c, std::uint64_t bits, unsigned count) noexcept {
  set_bits(c, bits_of(c) | bit_buffer{bits} << c.bit_count);
  c.bit_count = static_cast<std::uint8_t>(c.bit_count + count);
}

std::uint64_t take(carry& c, unsigned count) noexcept {
  const bit_buffer b = bits_of(c);
  const auto bits = static_cast<std::uint64_t>(b) & (count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
  set_bits(c, b >> count);
  c.bit_count = static_cast<std::uint8_t>(c.bit_count - count);
  return bits;
}

// numcodecs fills each byte from the top.
std::uint8_t in_order(const layout& l, std::uint8_t byte) noexcept {
  if (!l.runs.front().format.msb_first) return byte;
  byte = static_cast<std::uint8_t>((byte & 0x0f) << 4 | (byte & 0xf0) >> 4);
  byte = static_cast<std::uint8_t>((byte & 0x33) << 2 | (byte & 0xcc) >> 2);
  return static_cast<std::uint8_t>((byte & 0x55) << 1 | (byte & 0xaa) >> 1);
}

bool between_elements(const carry& c) noexcept { return c.run == 0 && c.in_run == 0; }

// Counts n finished components of the current run; n exceeds the run only if the element has a single one.
void advance(carry& c, const layout& l, std::uint64_t n) noexcept {
  const run& r = l.runs[c.run];
  const std::uint64_t position = c.in_run + n;
  if (l.runs.size() == 1) {
    c.elements += position / r.count;
    c.in_run = static_cast<std::uint32_t>(position % r.count);
  } else {
    c.in_run = static_cast<std::uint32_t>(position);
    if (position == r.count) {
      c.in_run = 0;
      if (++c.run == l.runs.size()) {
        c.run = 0;
        ++c.elements;
      }
    }
  }
}

// The number of components of the current run until something else must be checked.
std::uint64_t components_left(const carry& c, const layout& l, const std::optional<std::uint64_t>& expected) noexcept {
  const std::uint64_t count = l.runs[c.run].count;
  if (l.runs.size() != 1) return count - c.in_run;
  std::uint64_t total = 0;
  if (!expected || __builtin_mul_overflow(*expected - c.elements, count, &total)) return ~std::uint64_t{0};
  return total - c.in_run;
}

// The number of components that end at a byte on the encoded side, so that the kernels can process them: any number of 40 bits,
// an even number of 20 bits.
std::uint64_t whole_bytes(const run& r, std::uint64_t n) noexcept { return n - n % (8u / std::gcd(8u, r.format.encoded_bits())); }

progress failed(carry& c, std::size_t consumed, std::size_t produced, errc e, std::uint64_t value) noexcept {
  c.error = static_cast<std::uint8_t>(e);
  c.value = value;
  return {consumed, produced, false, e};
}

failure failure_of(const carry& c) noexcept {
  if (c.error == 0) return {};
  return {static_cast<errc>(c.error), c.elements, c.value};
}

progress stuck(const carry& c) noexcept { return {0, 0, false, static_cast<errc>(c.error)}; }

}  // namespace

// ------------------------------------------------------------------------------------------------------------------- encoder

encoder::encoder(zarrbits::codec c, std::optional<std::uint64_t> elements) : codec_(std::move(c)), expected_(elements) {
  if (codec_.needs_element_count() && !elements)
    throw error(errc::element_count_required,
                codec_.name() +
                    ": \"padding_encoding\" is \"first_byte\", so the count byte comes before the data and the number of "
                    "elements must be known in advance; pass it, or use \"last_byte\" or \"none\"");
}

void encoder::reset() noexcept { carry_ = {}; }

failure encoder::failure() const noexcept { return failure_of(carry_); }

progress encoder::step(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  carry& c = carry_;
  const layout& l = detail::access::state(codec_).layout;
  if (c.error != 0) return stuck(c);
  if (c.phase == finished) return in.empty() ? progress{} : failed(c, 0, 0, errc::trailing_data, c.elements);
  std::size_t i = 0, o = 0;
  if (c.phase == begin) {
    if (l.count_byte == padding::first_byte) {
      if (out.empty()) return {};
      out[o++] = static_cast<std::byte>(detail::padding_bits(l, *expected_));
    }
    c.phase = body;
  }
  for (;;) {
    while (c.bit_count >= 8) {
      if (o == out.size()) return {i, o, false, {}};
      out[o++] = static_cast<std::byte>(in_order(l, static_cast<std::uint8_t>(take(c, 8))));
    }
    if (i == in.size()) return {i, o, false, {}};
    if (c.component_bytes == 0 && between_elements(c) && expected_ && c.elements == *expected_)
      return failed(c, i, o, errc::element_count_mismatch, *expected_);

    const run& r = l.runs[c.run];
    if (c.component_bytes == 0 && c.bit_count == 0) {
      const std::uint64_t fits =
          std::min<std::uint64_t>((in.size() - i) / r.format.size, (out.size() - o) * 8 / r.format.encoded_bits());
      const auto n = static_cast<std::size_t>(whole_bytes(r, std::min(fits, components_left(c, l, expected_))));
      if (n != 0) {
        const std::size_t processed = detail::encode_components(*l.kernels, r.format, in.data() + i, out.data() + o, n);
        advance(c, l, processed);
        if (processed != n)
          return failed(c, i, o, r.format.is_bool ? errc::invalid_bool : errc::value_does_not_fit,
                        detail::load_component(r.format, in.data() + i + processed * r.format.size));
        i += n * r.format.size;
        o += n * r.format.encoded_bits() / 8;
        continue;
      }
    }

    const std::size_t missing = std::min<std::size_t>(r.format.size - c.component_bytes, in.size() - i);
    std::memcpy(c.component + c.component_bytes, in.data() + i, missing);
    c.component_bytes = static_cast<std::uint8_t>(c.component_bytes + missing);
    i += missing;
    if (c.component_bytes != r.format.size) return {i, o, false, {}};
    const std::uint64_t value = detail::load_component(r.format, c.component);
    std::uint64_t bits = 0;
    if (!detail::encode_value(r.format, value, bits))
      return failed(c, i, o, r.format.is_bool ? errc::invalid_bool : errc::value_does_not_fit, value);
    append(c, bits, r.format.encoded_bits());
    c.component_bytes = 0;
    advance(c, l, 1);
  }
}

progress encoder::finish(std::span<std::byte> out) noexcept {
  carry& c = carry_;
  const layout& l = detail::access::state(codec_).layout;
  if (c.error != 0) return stuck(c);
  if (c.phase == finished) return {0, 0, true, {}};
  const progress p = step({}, out);  // the count byte in front, and waiting whole bytes
  std::size_t o = p.produced;
  if (c.component_bytes != 0 || !between_elements(c)) return failed(c, 0, o, errc::truncated, c.component_bytes);
  if (expected_ && c.elements != *expected_) return failed(c, 0, o, errc::element_count_mismatch, *expected_);
  if (c.phase == begin || c.bit_count >= 8) return {0, o, false, {}};
  if (c.bit_count != 0) {
    if (o == out.size()) return {0, o, false, {}};
    out[o++] = static_cast<std::byte>(in_order(l, static_cast<std::uint8_t>(take(c, c.bit_count))));
  }
  if (l.count_byte == padding::last_byte) {
    if (o == out.size()) return {0, o, false, {}};
    out[o++] = static_cast<std::byte>(detail::padding_bits(l, c.elements));
  }
  c.phase = finished;
  return {0, o, true, {}};
}

// ------------------------------------------------------------------------------------------------------------------- decoder

decoder::decoder(zarrbits::codec c, std::optional<std::uint64_t> elements) : codec_(std::move(c)), expected_(elements) {}

void decoder::reset() noexcept { carry_ = {}; }

failure decoder::failure() const noexcept { return failure_of(carry_); }

namespace {

// Bits needed before the next component is made. An element of up to 64 bits is made as a whole: if the number of elements is
// unknown, the bits left at the end may be padding.
unsigned bits_needed(const carry& c, const layout& l) noexcept {
  const run& r = l.runs[c.run];
  if (r.format.full_width || l.element_bits > 64) return r.format.encoded_bits();
  return r.format.bits * (r.count - c.in_run);
}

// Makes the next component, and leaves its bytes at the end of c.component, where they wait for output.
bool make_component(carry& c, const layout& l) noexcept {
  const run& r = l.runs[c.run];
  const std::uint64_t bits = take(c, r.format.encoded_bits());
  std::uint64_t value = 0;
  if (!detail::decode_value(r.format, bits, value)) {
    c.value = value;
    return false;
  }
  detail::store_component(r.format, value, c.component + 8 - r.format.size);
  c.component_bytes = r.format.size;
  advance(c, l, 1);
  return true;
}

bool deliver(carry& c, std::span<std::byte> out, std::size_t& o) noexcept {
  const std::size_t n = std::min<std::size_t>(c.component_bytes, out.size() - o);
  if (n != 0) std::memcpy(out.data() + o, c.component + 8 - c.component_bytes, n);
  o += n;
  c.component_bytes = static_cast<std::uint8_t>(c.component_bytes - n);
  return c.component_bytes == 0;
}

}  // namespace

progress decoder::step(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  carry& c = carry_;
  const layout& l = detail::access::state(codec_).layout;
  if (c.error != 0) return stuck(c);
  std::size_t i = 0, o = 0;
  // without a number of elements, only the end shows which are the last data byte (whose padding the count byte gives) and the
  // count byte
  const std::size_t hold = expected_ || l.count_byte == padding::none ? 0 : l.count_byte == padding::first_byte ? 1 : 2;
  for (;;) {
    if (!deliver(c, out, o)) return {i, o, false, {}};
    if (c.phase == finished || (c.phase == tail && !expected_))
      return i == in.size() ? progress{i, o, false, {}} : failed(c, i, o, errc::trailing_data, c.elements);
    if (c.phase == begin) {
      if (l.count_byte == padding::first_byte) {
        if (i == in.size()) return {i, o, false, {}};
        c.padding_count = std::to_integer<std::uint8_t>(in[i++]);
        if (c.padding_count > 7 || (expected_ && c.padding_count != detail::padding_bits(l, *expected_)))
          return failed(c, i, o, errc::invalid_padding_count, c.padding_count);
      }
      c.phase = body;
    }
    if (expected_ && c.elements == *expected_) {
      if (c.phase == body) {
        if (l.strict_padding && c.bit_count != 0 && bits_of(c) != 0)
          return failed(c, i, o, errc::nonzero_padding, static_cast<std::uint64_t>(bits_of(c)));
        take(c, c.bit_count);
        c.phase = l.count_byte == padding::last_byte ? tail : finished;
      }
      if (c.phase == tail && i != in.size()) {
        c.padding_count = std::to_integer<std::uint8_t>(in[i++]);
        if (c.padding_count != detail::padding_bits(l, *expected_))
          return failed(c, i, o, errc::invalid_padding_count, c.padding_count);
        c.phase = finished;
      }
      if (i == in.size()) return {i, o, false, {}};
      return failed(c, i, o, errc::trailing_data, c.elements);
    }

    const run& r = l.runs[c.run];
    if (c.bit_count == 0 && c.held_bytes == 0 && in.size() - i > hold) {
      const std::uint64_t fits =
          std::min<std::uint64_t>((in.size() - i - hold) * 8 / r.format.encoded_bits(), (out.size() - o) / r.format.size);
      const auto n = static_cast<std::size_t>(whole_bytes(r, std::min(fits, components_left(c, l, expected_))));
      if (n != 0) {
        const std::size_t processed = detail::decode_components(*l.kernels, r.format, in.data() + i, out.data() + o, n);
        advance(c, l, processed);
        if (processed != n) return failed(c, i, o, errc::invalid_bool, std::to_integer<std::uint64_t>(in[i + processed]));
        i += n * r.format.encoded_bits() / 8;
        o += n * r.format.size;
        continue;
      }
    }
    if (c.bit_count >= bits_needed(c, l)) {
      if (!make_component(c, l)) return failed(c, i, o, errc::invalid_bool, c.value);
      continue;
    }
    if (c.held_bytes + (in.size() - i) <= hold) {
      for (; i != in.size(); ++i) c.held[c.held_bytes++] = in[i];
      return {i, o, false, {}};
    }
    std::byte next = in[i];
    if (c.held_bytes != 0) {
      next = c.held[0];
      c.held[0] = c.held[1];
      --c.held_bytes;
    } else {
      ++i;
    }
    append(c, in_order(l, std::to_integer<std::uint8_t>(next)), 8);
  }
}

progress decoder::finish(std::span<std::byte> out) noexcept {
  carry& c = carry_;
  const layout& l = detail::access::state(codec_).layout;
  if (c.error != 0) return stuck(c);
  std::size_t o = 0;
  if (!deliver(c, out, o)) return {0, o, false, {}};
  if (expected_) {
    const progress p = step({}, out.subspan(o));  // components that wait for room, and the bytes after the last one
    o += p.produced;
    if (p.error) return {0, o, false, p.error};
    if (c.component_bytes != 0) return {0, o, false, {}};
    if (c.phase == finished) return {0, o, true, {}};
    if (c.bit_count >= bits_needed(c, l) && c.elements != *expected_) return {0, o, false, {}};
    return failed(c, 0, o, errc::truncated, *expected_);
  }
  if (c.phase == finished) return {0, o, true, {}};
  if (c.phase == begin && l.count_byte == padding::first_byte) return failed(c, 0, o, errc::truncated, 0);
  if (c.phase != tail) {
    const progress p = step({}, out.subspan(o));
    o += p.produced;
    if (p.error) return {0, o, false, p.error};
    if (c.component_bytes != 0) return {0, o, false, {}};
    if (l.count_byte == padding::last_byte) {
      if (c.held_bytes == 0) return failed(c, 0, o, errc::truncated, 0);
      c.padding_count = std::to_integer<std::uint8_t>(c.held[--c.held_bytes]);
      if (c.padding_count > 7) return failed(c, 0, o, errc::invalid_padding_count, c.padding_count);
    }
    if (l.count_byte != padding::none) {
      if (c.held_bytes == 0) {
        if (c.padding_count != 0) return failed(c, 0, o, errc::invalid_padding_count, c.padding_count);
      } else {
        append(c, in_order(l, std::to_integer<std::uint8_t>(c.held[0])), 8);
        c.held_bytes = 0;
        // the padding is at the top of the last byte
        const bit_buffer data = bits_of(c);
        c.bit_count = static_cast<std::uint8_t>(c.bit_count - c.padding_count);
        const bit_buffer unpadded = data & ((bit_buffer{1} << c.bit_count) - 1);
        if (l.strict_padding && unpadded != data)
          return failed(c, 0, o, errc::nonzero_padding, static_cast<std::uint64_t>(data >> c.bit_count));
        set_bits(c, unpadded);
      }
    }
    c.phase = tail;
  }
  while (c.bit_count != 0 && c.bit_count >= bits_needed(c, l)) {
    if (!make_component(c, l)) return failed(c, 0, o, errc::invalid_bool, c.value);
    if (!deliver(c, out, o)) return {0, o, false, {}};
  }
  if (!between_elements(c)) return failed(c, 0, o, errc::truncated, c.bit_count);
  if (l.count_byte != padding::none && c.bit_count != 0) return failed(c, 0, o, errc::invalid_padding_count, c.padding_count);
  // without a count byte, up to 7 bits may be padding; a whole byte that is part of no element may not
  if (c.bit_count >= 8) return failed(c, 0, o, errc::truncated, c.bit_count);
  const bool full_width = l.runs.front().format.full_width;
  if (full_width && c.bit_count != 0) return failed(c, 0, o, errc::truncated, c.bit_count);
  if (l.strict_padding && bits_of(c) != 0) return failed(c, 0, o, errc::nonzero_padding, static_cast<std::uint64_t>(bits_of(c)));
  c.phase = finished;
  return {0, o, true, {}};
}

}  // namespace zarrbits
