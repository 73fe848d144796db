// SPDX-License-Identifier: BSL-1.0
#include "core/packing.hpp"

#include "core/kernels/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace zarrbits::detail {

namespace {

std::uint64_t reverse_bytes(std::uint64_t v, unsigned size) noexcept { return __builtin_bswap64(v) >> (64 - 8 * size); }

// The kept bits of a component in decode's form: bits `field` at first_bit, the sign or zeros above, in p.size bytes.
std::uint64_t place(const packing& p, std::uint64_t field) noexcept {
  if (p.is_signed && (field >> (p.bits - 1) & 1)) field |= ~low_bits(p.bits);
  return (field << p.first_bit) & low_bits(8u * p.size);
}

// Size of tiles for components that need two passes (a separate swap or check): the data of the second pass stays in the
// first-level cache. A multiple of 8 components, so that every tile begins at a byte.
constexpr std::size_t tile_bytes = 4096;

}  // namespace

std::uint64_t load_component(const packing& p, const std::byte* in) noexcept {
  std::uint64_t v = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&v, in, p.size);
  } else {
    std::memcpy(reinterpret_cast<std::byte*>(&v) + 8 - p.size, in, p.size);
  }
  return p.swap_memory ? reverse_bytes(v, p.size) : v;
}

void store_component(const packing& p, std::uint64_t value, std::byte* out) noexcept {
  if (p.swap_memory) value = reverse_bytes(value, p.size);
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out, &value, p.size);
  } else {
    std::memcpy(out, reinterpret_cast<std::byte*>(&value) + 8 - p.size, p.size);
  }
}

bool encode_value(const packing& p, std::uint64_t value, std::uint64_t& bits) noexcept {
  if (p.is_bool) {
    if (p.nonzero_is_true) value = value != 0;
    if (value > 1) return false;
    bits = value;
    return true;
  }
  const std::uint64_t field = value >> p.first_bit & low_bits(p.bits);
  const std::uint64_t restored = place(p, field);
  // both forms of the bits above the type: extended into the whole component, or zeros
  if (!p.truncate && value != restored && value != (restored & low_bits(p.type_bits))) return false;
  bits = p.full_width ? restored : field;
  if (p.full_width) {
    // encoded bytes are little endian here, so the low bits come first
    const bool native_is_big = std::endian::native == std::endian::big;
    if (p.swap_encoded != native_is_big) bits = reverse_bytes(bits, p.size);
  }
  return true;
}

bool decode_value(const packing& p, std::uint64_t bits, std::uint64_t& value) noexcept {
  if (p.full_width) {
    const bool native_is_big = std::endian::native == std::endian::big;
    if (p.swap_encoded != native_is_big) bits = reverse_bytes(bits, p.size);
  }
  if (p.is_bool) {
    if (p.nonzero_is_true) bits = bits != 0;
    value = bits;
    return bits <= 1;
  }
  value = place(p, (p.full_width ? bits >> p.first_bit : bits) & low_bits(p.bits));
  if (p.zero_above) value &= low_bits(p.type_bits);
  return true;
}

std::size_t first_refused(const kernel_table& k, const packing& p, const std::byte* in, std::size_t n) noexcept {
  if (!is_checked(p)) return n;
  alignas(64) std::byte swapped[tile_bytes];
  const std::size_t tile = tile_bytes / p.size;
  const unsigned size = log2_size(p.size);
  for (std::size_t index = 0; index < n; index += tile) {
    const std::size_t m = std::min(tile, n - index);
    const std::byte* source = in + index * p.size;
    if (p.swap_memory && p.size > 1) {
      k.swap[size](source, swapped, m);
      source = swapped;
    }
    if (k.check[size](p, source, m)) continue;
    packing native = p;
    native.swap_memory = false;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < m; ++i)
      if (!encode_value(native, load_component(native, source + i * p.size), bits)) return index + i;
  }
  return n;
}

namespace {

// For components with all bits kept: true if their byte order differs between memory and the encoded form.
bool swaps(const packing& p) noexcept {
  const bool encoded = p.full_width ? p.swap_encoded : std::endian::native == std::endian::big;  // packed bits are little endian
  return p.size > 1 && p.swap_memory != encoded;
}

void copy(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (swaps(p)) k.swap[log2_size(p.size)](in, out, n);
  else if (in != out && n != 0) std::memmove(out, in, n * p.size);
}

// A negative number of a type narrower than its component has two forms (zeros or ones above the type), which only check() knows.
bool has_two_forms(const packing& p) noexcept { return p.is_signed && p.type_bits < 8u * p.size; }

bool encode_native(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.is_bool) return k.encode_bool(p, in, out, n);
  return k.encode[log2_size(p.size)](p, in, out, n);
}

void decode_native(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.is_bool) k.decode_bool(p, in, out, n);
  else k.decode[log2_size(p.size)](p, in, out, n);
}

// Turns `full_width` components of one byte with fewer bits than 8 into the extended form. Checked bools already have it.
void extend(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (!p.is_bool || p.nonzero_is_true) k.extend(p, in, out, n);
  else if (in != out && n != 0) std::memmove(out, in, n);
}

}  // namespace

std::size_t encode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept {
  if (!p.partial()) {
    copy(k, p, in, out, n);
    return n;
  }
  const bool swapped = p.swap_memory && p.size > 1;
  packing format = p;
  if (in == out && is_checked(p)) {
    // find the exact index of a loss in the input, because encoding overwrites it
    n = first_refused(k, p, in, n);
    format.truncate = true;
  }
  const bool check_apart = is_checked(format) && (p.full_width || has_two_forms(p));
  if (check_apart) format.truncate = true;
  alignas(64) std::byte native[tile_bytes];
  const std::size_t tile = swapped || check_apart ? tile_bytes / p.size : n;
  for (std::size_t index = 0; index < n; index += tile) {
    const std::size_t m = std::min(tile, n - index);
    const std::byte* source = in + index * p.size;
    std::byte* target = out + index / 8 * p.encoded_bits();
    std::size_t good = check_apart ? first_refused(k, p, source, m) : m;
    if (swapped) {
      k.swap[log2_size(p.size)](source, native, m);
      source = native;
    }
    if (p.full_width) {
      extend(k, p, source, target, good);
    } else if (!encode_native(k, format, source, target, good) && in != out) {
      // encode again what comes before the loss: its last byte may hold bits that should have been dropped
      good = first_refused(k, p, in + index * p.size, good);
      encode_native(k, format, source, target, good);
    }
    if (good != m) return index + good;
  }
  return n;
}

std::size_t decode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept {
  if (!p.partial()) {
    copy(k, p, in, out, n);
    return n;
  }
  const bool swapped = p.swap_memory && p.size > 1;
  const bool check = p.full_width && p.is_bool && is_checked(p);
  const std::size_t tile = swapped || check ? tile_bytes / p.size : n;
  for (std::size_t index = 0; index < n; index += tile) {
    const std::size_t m = std::min(tile, n - index);
    const std::byte* source = in + index / 8 * p.encoded_bits();
    std::byte* target = out + index * p.size;
    if (p.full_width) {
      const std::size_t good = check ? first_refused(k, p, source, m) : m;
      extend(k, p, source, target, good);
      if (good != m) return index + good;
    } else {
      decode_native(k, p, source, target, m);
      if (swapped) k.swap[log2_size(p.size)](target, target, m);
    }
  }
  return n;
}

bool decoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept {
  return !__builtin_mul_overflow(l.element_size, elements, &bytes);
}

bool encoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept {
  // 8 elements take exactly element_bits bytes, so no product of bits is needed
  std::uint64_t body = 0;
  if (__builtin_mul_overflow(elements / 8, l.element_bits, &body)) return false;
  const std::uint64_t rest = elements % 8;
  std::uint64_t tail = 0;
  if (rest != 0) {
    if (__builtin_mul_overflow(rest, l.element_bits, &tail)) return false;
    tail = tail / 8 + (tail % 8 != 0);
  }
  if (__builtin_add_overflow(body, tail, &bytes)) return false;
  return l.count_byte == padding::none || !__builtin_add_overflow(bytes, std::uint64_t{1}, &bytes);
}

unsigned padding_bits(const layout& l, std::uint64_t elements) noexcept {
  return static_cast<unsigned>((8 - (elements % 8) * (l.element_bits % 8) % 8) % 8);
}

}  // namespace zarrbits::detail
