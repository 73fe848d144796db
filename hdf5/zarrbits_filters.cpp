// SPDX-License-Identifier: BSL-1.0
#include "hdf5/zarrbits_filters.hpp"

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace zarrbits::hdf5 {

namespace {

const type_description& number_of(const type_description& t) { return t.kind == type_class::array ? number_of(t.element()) : t; }

std::size_t component_size(const type_description& t) {
  if (t.kind == type_class::complex) return t.size / 2;
  return t.size;
}

bool is_number(const type_description& t) {
  return t.kind == type_class::boolean || t.kind == type_class::integer || t.kind == type_class::enumeration ||
         t.kind == type_class::floating || t.kind == type_class::complex;
}

// The number type of this stored type in our packbits filter: components, with HDF5's zeros in the pad bits.
data_type packed_type(const type_description& number, const packbits_layout& layout) {
  const std::size_t size = component_size(number);
  const bool extend = layout.is_signed && number.as_stored;
  return (number.kind == type_class::boolean ? std::string("bool") : (extend ? "int" : "uint") + std::to_string(8 * size));
}

// Bytes that follow the values in chunks of one size (filter/packbits.hpp); 0: chunks have the size of what they hold.
std::size_t filling_of(const filter& f, std::size_t size) {
  if (f.values.size() <= 7 || !(f.values[7] >> 20 & 1) || f.values[5] == 0 || f.values[5] > size) return 0;
  const std::size_t element = f.values[5];
  return (size / element / 16 + 64 / element + 2) * element;
}

std::size_t packed_size(const packbits_layout& layout, std::size_t size, const type_description& number) {
  const std::size_t bits = size / component_size(number) * layout.bits;
  return bits / 8 + (bits % 8 != 0) + (layout.padding != 0);
}

}  // namespace

std::optional<packbits_layout> packbits_of(const filter& f, const type_description& number) {
  if (f.values.size() < 4 || !is_number(number) || number.bit_offset != 0) return {};
  const unsigned bits = f.values[0], options = f.values[1], first = f.values[2];
  const auto width = static_cast<unsigned>(number.kind == type_class::boolean ? 1 : 8 * component_size(number));
  if (bits == 0 || bits > width || first > width - bits || (options & 3) == 3 || f.values[3] != 0 || (options & ~0x1FU))
    return {};
  if (!number.as_stored && (number.kind != type_class::integer || number.stored_size != number.size)) return {};
  // The filter decides, not the type: an enumeration is signed if one of its members is negative, whatever its integers are.
  const bool is_resolved = f.values.size() > 7;
  if (is_resolved && (f.values[7] & 0xFF) != component_size(number)) return {};
  const bool is_signed = is_resolved ? (f.values[7] >> 17 & 1) != 0 : number.kind == type_class::integer && number.is_signed;
  return packbits_layout{first, bits, options & 3, (options & 16) != 0, is_signed};
}

bool was_resolved(const filter& f) { return f.values.size() > (f.id == packbits_filter ? 4U : 1U); }

std::size_t packed_size(const filter& f, std::size_t size, const type_description& stored) {
  if (f.values.size() < 4) return size;  // never resolved
  const type_description& number = number_of(stored);
  const auto layout = packbits_of(f, number);
  if (!layout) throw compressors::corrupt_chunk("packbits: parameters that this version does not know");
  const std::size_t filling = filling_of(f, size);
  return filling > 0 ? size + filling : packed_size(*layout, size, number);
}

bool supports_packbits(const filter& f, const type_description& stored) {
  return is_number(number_of(stored)) && (f.values.size() < 4 || packbits_of(f, number_of(stored)).has_value());
}

bool supports_bytes(const type_description& stored) { return is_number(number_of(stored)) && stored.as_stored; }

bool left_unpacked(const filter& f, compressors::buffer& chunk, values_size size, const type_description& stored) {
  const std::size_t plain = size.values + size.trailing, filling = filling_of(f, size.values);
  const auto layout = packbits_of(f, number_of(stored));
  const std::size_t packed = layout ? packed_size(*layout, size.values, number_of(stored)) : 0;
  if (filling > 0 && chunk.size() == plain + filling) {
    const auto raw = std::to_integer<unsigned>(chunk.back());
    const std::size_t inside = raw ? plain : packed + size.trailing;
    if (raw > 1 || std::any_of(chunk.begin() + static_cast<std::ptrdiff_t>(inside), chunk.end() - 1,
                               [](std::byte b) { return b != std::byte{0}; }))
      throw compressors::corrupt_chunk("packbits: the filler at its end is not what packbits writes");
    chunk.resize(inside);
  }
  // the length alone distinguishes them
  const bool cuts = f.values.size() > 1 && (f.values[1] >> 2 & 3) == 1;
  return chunk.size() == plain && packed != size.values && !cuts;
}

std::optional<resolved_chunks> resolved_chunks_of(const filter& f) {
  // filter/packbits.hpp and filter/bytes.hpp describe the values
  const bool packs = f.id == packbits_filter;
  if (packs ? f.values.size() != 12 || f.values[4] != 0x5A504201 : f.values.size() != 7 || f.values[1] != 0x5A424501) return {};
  const auto uint64_at = [&f](std::size_t low) { return f.values[low] | std::uint64_t{f.values[low + 1]} << 32; };
  resolved_chunks c;
  type_description& n = c.number;
  n.kind = type_class::integer;
  if (packs) {
    const unsigned number = f.values[7], element = f.values[5];
    if (number >> 18 & 1) n.kind = type_class::boolean;
    n.size = n.stored_size = number & 0xFF;
    n.big_endian = (number >> 16 & 1) != 0;
    n.is_signed = (number >> 17 & 1) != 0;
    n.as_stored = (number >> 8 & 0xFF) == 8 * n.size || n.kind == type_class::boolean;  // no pad bits
    if (element == 0 || uint64_at(8) > std::numeric_limits<std::size_t>::max() / element) return {};
    c.size = {element * uint64_at(8), (number >> 19 & 1) != 0 ? 4U : 0U};
  } else {
    n.size = n.stored_size = f.values[2];
    n.big_endian = (f.values[3] & 1) != 0;
    c.size = {uint64_at(4), (f.values[3] & 2) != 0 ? 4U : 0U};
  }
  if (n.size == 0 || n.size > 16 || c.size.values % n.size != 0) return {};
  return c;
}

compressors::buffer undo_packbits(const filter& f, compressors::buffer in, values_size size, const type_description& stored) {
  const type_description& number = number_of(stored);
  const auto layout = packbits_of(f, number);
  if (left_unpacked(f, in, size, stored)) return in;
  if (!layout) throw compressors::corrupt_chunk("packbits: parameters that this version does not know");
  if (in.size() < size.trailing) throw compressors::corrupt_chunk("packbits: it ends too early");
  const compressors::buffer checksum(in.end() - static_cast<std::ptrdiff_t>(size.trailing), in.end());
  in.resize(in.size() - size.trailing);
  if (layout->msb_first) {
    const std::size_t first = layout->padding == 1 ? 1 : 0, last = in.size() - (layout->padding == 2 && !in.empty() ? 1 : 0);
    for (std::size_t i = first; i < last; ++i) {
      auto b = std::to_integer<unsigned>(in[i]);
      b = (b & 0xF0) >> 4 | (b & 0x0F) << 4;
      b = (b & 0xCC) >> 2 | (b & 0x33) << 2;
      b = (b & 0xAA) >> 1 | (b & 0x55) << 1;
      in[i] = static_cast<std::byte>(b);
    }
  }
  const data_type type = packed_type(number, *layout);
  const codec c = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding),
                                  .first_bit = layout->first_bit,
                                  .last_bit = layout->first_bit + layout->bits - 1});
  compressors::buffer out(size.values);
  if (const auto r = decode_chunk(c, in, out); !r) throw compressors::corrupt_chunk(c.explain(r.failure));
  if (number.big_endian && type.component_size() > 1) {
    const codec swap = bytes(type, {.endian = endian::big});
    (void)encode_chunk(swap, out, out);  // integers; bytes refuses none
  }
  out.insert(out.end(), checksum.begin(), checksum.end());
  return out;
}

compressors::buffer undo_bytes(const filter& f, compressors::buffer in, values_size size, const type_description& stored) {
  if (!was_resolved(f)) return in;
  const type_description& number = number_of(stored);
  const bool big = f.values[0] == 1;
  const std::size_t unit = component_size(number), values = std::min(in.size(), size.values);
  if (has_byte_order(number) && big != number.big_endian) {
    for (std::size_t i = 0; i + unit <= values; i += unit) {
      std::reverse(in.begin() + static_cast<std::ptrdiff_t>(i), in.begin() + static_cast<std::ptrdiff_t>(i + unit));
    }
  }
  return in;
}

}  // namespace zarrbits::hdf5
