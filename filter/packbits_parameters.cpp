// SPDX-License-Identifier: BSL-1.0
#include "filter/packbits.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>
#include <zarrbits/version.hpp>

#include <bit>

namespace zarrbits::filter {

namespace {

constexpr unsigned magic = 0x5A504200, layout_version = 1;
constexpr unsigned plugin_version = ZARRBITS_VERSION_MAJOR << 16 | ZARRBITS_VERSION_MINOR << 8 | ZARRBITS_VERSION_PATCH;
constexpr unsigned flag_big_endian = 1u << 16, flag_signed = 1u << 17, flag_bool = 1u << 18, flag_checksum = 1u << 19,
                   flag_one_size = 1u << 20;
constexpr unsigned known_flags = flag_big_endian | flag_signed | flag_bool | flag_checksum | flag_one_size | 0xffff;
constexpr unsigned padding_mask = 3u, policy_mask = 3u << 2;
constexpr unsigned known_options = padding_mask | policy_mask | ZARRBITS_HDF5_MSB_FIRST;
constexpr bool native_is_big = std::endian::native == std::endian::big;

bool valid_size(std::uint64_t size) noexcept { return size == 1 || size == 2 || size == 4 || size == 8; }

bool check_options(unsigned options, sentence& reason) noexcept {
  if (options & ~known_options)
    return reason.set(minor::bad_value,
                      "zarrbits: packbits: options (the second value) are %u, but only bits 0 to 4 have a meaning; see "
                      "docs/reference/filters.md",
                      options);
  if ((options & padding_mask) == padding_mask)
    return reason.set(
        minor::bad_value,
        "zarrbits: packbits: options (the second value) are %u, but their bits 0-1, the padding, must be 0 (no count byte), "
        "1 (first byte) or 2 (last byte)",
        options);
  return true;
}

void apply_options(unsigned options, packbits_chunk& c) noexcept {
  c.count_byte = static_cast<padding>(options & padding_mask);
  c.policy = static_cast<range_policy>((options & policy_mask) >> 2);
  c.format.truncate = c.policy == range_policy::truncate;
  c.format.msb_first = (options & ZARRBITS_HDF5_MSB_FIRST) != 0;
}

// Fills in the sizes. Refuses sizes too large for this machine's memory before anything is allocated.
bool complete(packbits_chunk& c, sentence& reason) noexcept {
  const detail::layout l = c.layout();
  if (c.elements != 0 && detail::decoded_size(l, c.elements, c.decoded_size) &&
      detail::encoded_size(l, c.elements, c.encoded_size) && c.decoded_size <= PTRDIFF_MAX && c.encoded_size <= PTRDIFF_MAX)
    return true;
  return reason.set(minor::bad_value,
                    "zarrbits: packbits: a chunk of %llu elements of %llu bytes is impossible; choose a smaller chunk",
                    static_cast<unsigned long long>(c.elements), static_cast<unsigned long long>(l.element_size));
}

// Kept bits of a component whose precision is all of its bytes: the user decides.
bool resolve_full(const packbits_parameters_in& user, const element& e, packbits_chunk& c, sentence& reason) noexcept {
  const auto width = static_cast<unsigned>(8 * e.size);
  unsigned bits = user.bits;
  if (bits == 0 && e.type_class == kind::enumeration && user.first_bit == 0) bits = e.enum_bits;
  if (bits == 0)
    return reason.set(
        minor::bad_value,
        "zarrbits: packbits: there is nothing to pack in a datatype that uses all of its %u bits; say how many bits to keep (the "
        "first value, for example 12 for a 12-bit camera)",
        width);
  if (bits > width || user.first_bit > width - bits)
    return reason.set(minor::bad_value, "zarrbits: packbits: %u bits from bit %u on do not fit in a component of %u bits", bits,
                      user.first_bit, width);
  c.format.type_bits = static_cast<std::uint8_t>(width);
  c.format.first_bit = static_cast<std::uint8_t>(user.first_bit);
  c.format.bits = static_cast<std::uint8_t>(bits);
  return true;
}

// Kept bits of a component with unused bits, or of a boolean: the datatype decides, and the user may only repeat it.
bool resolve_own(const packbits_parameters_in& user, unsigned bits, unsigned first_bit, const char* subject, packbits_chunk& c,
                 sentence& reason) noexcept {
  if ((user.bits != 0 && user.bits != bits) || (user.first_bit != 0 && user.first_bit != first_bit))
    return reason.set(
        minor::bad_value,
        "zarrbits: packbits: %u bits from bit %u on were asked for, but %s has %u from bit %u on; remove the values, "
        "or set them to "
        "0 or these",
        user.bits, user.first_bit, subject, bits, first_bit);
  c.format.type_bits = static_cast<std::uint8_t>(first_bit + bits);
  c.format.first_bit = static_cast<std::uint8_t>(first_bit);
  c.format.bits = static_cast<std::uint8_t>(bits);
  return true;
}

}  // namespace

detail::layout packbits_chunk::layout() const noexcept {
  detail::layout l;
  l.count_byte = count_byte;
  l.kernels = nullptr;  // it only computes sizes
  l.element_size = std::uint64_t{format.size} * components;
  l.element_bits = std::uint64_t{format.bits} * components;
  return l;
}

bool read_parameters(std::size_t n, const unsigned cd[], packbits_parameters_in& out, sentence& reason) noexcept {
  out = {};
  const bool stored = n > 4 && (cd[4] & ~0xffu) == magic;
  if (stored && (cd[4] != (magic | layout_version) || n != packbits_stored))
    return reason.set(
        minor::bad_value,
        "zarrbits: packbits: the %zu values have the form of a different version of zarrbits; use the first three of "
        "them (bits, "
        "options, first bit) alone",
        n);
  if (n > 4 && !stored)
    return reason.set(minor::bad_value, "zarrbits: packbits: takes 0 to 4 values (bits, options, first bit, 0), not %zu", n);
  if (n > 0) out.bits = cd[0];
  if (n > 1) out.options = cd[1];
  if (n > 2) out.first_bit = cd[2];
  if (n > 3 && cd[3] != 0)
    return reason.set(minor::bad_value, "zarrbits: packbits: the fourth value is %u, but must be 0", cd[3]);
  return check_options(out.options, reason);
}

bool resolve(const packbits_parameters_in& user, const element& e, std::uint64_t elements, packbits_chunk& out,
             sentence& reason) noexcept {
  out = packbits_chunk{};
  if (e.type_class == kind::opaque)
    return reason.set(minor::bad_type, "zarrbits: packbits: opaque bytes have no bits to keep; store them without packbits");
  if (!valid_size(e.size))
    return reason.set(minor::bad_type,
                      "zarrbits: packbits: components of %llu bytes cannot be packed, only those of 1, 2, 4 and 8 bytes",
                      static_cast<unsigned long long>(e.size));
  if (e.components > UINT32_MAX)
    return reason.set(minor::bad_type, "zarrbits: packbits: an element of %llu components is too large",
                      static_cast<unsigned long long>(e.components));
  out.components = static_cast<std::uint32_t>(e.components);
  out.elements = elements;
  out.format.size = static_cast<std::uint8_t>(e.size);
  out.format.is_signed = e.is_signed;
  out.format.swap_memory = e.size > 1 && e.big_endian != native_is_big;
  apply_options(user.options, out);

  if (out.format.msb_first && (e.type_class != kind::boolean || user.bits > 1))
    return reason.set(minor::bad_value,
                      "zarrbits: packbits: most significant bit first (option 16) is only for booleans of one bit, as in "
                      "numcodecs; leave it out");
  if (e.type_class == kind::boolean) {
    out.format.is_bool = true;
    if (!resolve_own(user, 1, 0, "a boolean", out, reason)) return false;
  } else if (e.reduced()) {
    if (!e.zero_padded)
      return reason.set(
          minor::bad_type,
          "zarrbits: packbits: the datatype's unused bits are ones or left as they were (H5Tset_pad), which would be lost; use "
          "H5T_PAD_ZERO");
    out.format.zero_above = true;
    if (!resolve_own(user, static_cast<unsigned>(e.precision), static_cast<unsigned>(e.offset), "the datatype", out, reason))
      return false;
  } else if (!resolve_full(user, e, out, reason)) {
    return false;
  }
  return complete(out, reason);
}

void store(const packbits_chunk& c, unsigned cd[packbits_stored]) noexcept {
  const auto& p = c.format;
  cd[0] = p.bits;
  cd[1] =
      static_cast<unsigned>(c.count_byte) | static_cast<unsigned>(c.policy) << 2 | (p.msb_first ? ZARRBITS_HDF5_MSB_FIRST : 0u);
  cd[2] = p.first_bit;
  cd[3] = 0;
  cd[4] = magic | layout_version;
  cd[5] = static_cast<unsigned>(std::uint64_t{p.size} * c.components);
  cd[6] = c.components;
  const bool big = p.size > 1 && p.swap_memory != native_is_big;
  cd[7] = p.size | unsigned{p.type_bits} << 8 | (big ? flag_big_endian : 0u) | (p.is_signed ? flag_signed : 0u) |
          (p.is_bool ? flag_bool : 0u) | (c.checksum_before ? flag_checksum : 0u) | (c.one_size ? flag_one_size : 0u);
  cd[8] = static_cast<unsigned>(c.elements);
  cd[9] = static_cast<unsigned>(c.elements >> 32);
  cd[10] = static_cast<unsigned>(c.encoded_size);
  cd[11] = plugin_version;
}

bool load(std::size_t n, const unsigned cd[], packbits_chunk& out, sentence& reason) noexcept {
  out = packbits_chunk{};
  if (n != packbits_stored || cd[4] != (magic | layout_version))
    return reason.set(minor::bad_value,
                      "zarrbits: packbits: the filter's parameters in the file (%zu values) are not values that "
                      "zarrbits " ZARRBITS_VERSION_STRING " writes; the file is damaged or comes from a different version",
                      n);
  const unsigned size = cd[7] & 0xff, type_bits = cd[7] >> 8 & 0xff, bits = cd[0], first_bit = cd[2];
  const auto wrong = [&reason](const char* part) noexcept {
    return reason.set(minor::bad_value,
                      "zarrbits: packbits: the filter's parameters in the file contradict each other (%s); the file is damaged",
                      part);
  };
  if (!check_options(cd[1], reason)) return false;
  apply_options(cd[1], out);
  if (!valid_size(size)) return wrong("size of a component");
  if ((cd[7] & ~known_flags) || cd[3] != 0) return wrong("unknown flags");
  if (type_bits == 0 || type_bits > 8 * size) return wrong("bits of the datatype");
  if (bits == 0 || bits > type_bits || first_bit > type_bits - bits) return wrong("kept bits");
  // bits above the kept ones are only dropped if the datatype has no unused bits
  const bool reduced = type_bits < 8 * size;
  if (reduced && first_bit + bits != type_bits) return wrong("kept bits of a reduced datatype");
  if (cd[6] == 0 || std::uint64_t{cd[6]} * size != cd[5]) return wrong("size of an element");
  out.format.size = static_cast<std::uint8_t>(size);
  out.format.type_bits = static_cast<std::uint8_t>(type_bits);
  out.format.first_bit = static_cast<std::uint8_t>(first_bit);
  out.format.bits = static_cast<std::uint8_t>(bits);
  out.format.is_signed = (cd[7] & flag_signed) != 0;
  out.format.is_bool = (cd[7] & flag_bool) != 0;
  out.format.zero_above = reduced;
  out.format.swap_memory = size > 1 && ((cd[7] & flag_big_endian) != 0) != native_is_big;
  if (out.format.is_bool && (size != 1 || type_bits != 1)) return wrong("a boolean of several bits");
  if (out.format.msb_first && !out.format.is_bool) return wrong("most significant bit first");
  out.checksum_before = (cd[7] & flag_checksum) != 0;
  out.one_size = (cd[7] & flag_one_size) != 0;
  out.components = cd[6];
  out.elements = std::uint64_t{cd[9]} << 32 | cd[8];
  if (!complete(out, reason)) return false;
  if (static_cast<unsigned>(out.encoded_size) != cd[10]) return wrong("size of a chunk");
  if (out.one_size && (!out.may_be_raw() || out.policy == range_policy::error)) return wrong("chunks of one size");
  return true;
}

}  // namespace zarrbits::filter
