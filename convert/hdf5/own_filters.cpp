// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/own_filters.hpp"

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <string>

namespace zarrbits::conversion {

namespace {

const type_tree& number_of(const type_tree& t) { return t.kind == type_class::array ? number_of(t.element()) : t; }

std::size_t component_size(const type_tree& t) {
  if (t.kind == type_class::complex) return t.size / 2;
  return t.size;
}

bool is_number(const type_tree& t) {
  return t.kind == type_class::boolean || t.kind == type_class::integer || t.kind == type_class::enumeration ||
         t.kind == type_class::floating || t.kind == type_class::complex;
}

// The number type of this stored type in our packbits filter: components, with HDF5's zeros in the pad bits.
data_type packed_type(const type_tree& number) {
  const std::size_t size = component_size(number);
  const bool extend = number.kind == type_class::integer && number.is_signed && number.as_stored;
  return (number.kind == type_class::boolean ? std::string("bool") : (extend ? "int" : "uint") + std::to_string(8 * size));
}

std::size_t packed_size(const packbits_layout& layout, std::size_t size, const type_tree& number) {
  const std::size_t bits = size / component_size(number) * layout.bits;
  return bits / 8 + (bits % 8 != 0) + (layout.padding != 0);
}

}  // namespace

std::optional<packbits_layout> packbits_of(const filter& f, const type_tree& number) {
  if (f.values.size() < 4 || !is_number(number) || number.bit_offset != 0) return {};
  const unsigned bits = f.values[0], options = f.values[1], first = f.values[2];
  const auto width = static_cast<unsigned>(number.kind == type_class::boolean ? 1 : 8 * component_size(number));
  if (bits == 0 || bits > width || first > width - bits || (options & 3) == 3 || f.values[3] != 0 || (options & ~0x1FU))
    return {};
  if (!number.as_stored && (number.kind != type_class::integer || number.stored_size != number.size)) return {};
  return packbits_layout{first, bits, options & 3, (options & 16) != 0};
}

std::size_t packed_size(const filter& f, std::size_t size, const type_tree& stored) {
  const type_tree& number = number_of(stored);
  const auto layout = packbits_of(f, number);
  if (!layout) throw damaged_chunk("packbits: parameters that this version does not know");
  return packed_size(*layout, size, number);
}

bool knows_packbits(const filter& f, const type_tree& stored) {
  return is_number(number_of(stored)) && packbits_of(f, number_of(stored)).has_value();
}

bool knows_bytes(const type_tree& stored) { return is_number(number_of(stored)) && stored.as_stored; }

buffer undo_packbits(const filter& f, buffer in, std::size_t size, const type_tree& stored) {
  const type_tree& number = number_of(stored);
  const auto layout = packbits_of(f, number);
  if (!layout) throw damaged_chunk("packbits: parameters that this version does not know");
  // The mask says packed, but the values are unpacked: parallel HDF5 stores chunks that did not fit this way. The filter reads
  // them too.
  const bool cuts = (f.values[1] >> 2 & 3) == 1;
  if (in.size() == size && packed_size(*layout, size, number) != size && !cuts) return in;
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
  const data_type type = packed_type(number);
  const codec c = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding),
                                  .first_bit = layout->first_bit,
                                  .last_bit = layout->first_bit + layout->bits - 1});
  buffer out(size);
  if (const auto r = decode_chunk(c, in, out); !r) throw damaged_chunk(c.explain(r.failure));
  if (number.big_endian && type.component_size() > 1) {
    const codec swap = bytes(type, {.endian = endian::big});
    (void)encode_chunk(swap, out, out);  // integers; bytes refuses none
  }
  return out;
}

buffer undo_bytes(const filter& f, buffer in, const type_tree& stored) {
  const type_tree& number = number_of(stored);
  const bool big = !f.values.empty() && f.values[0] == 1;
  const std::size_t unit = component_size(number);
  if (has_byte_order(number) && big != number.big_endian) {
    for (std::size_t i = 0; i + unit <= in.size(); i += unit) {
      std::reverse(in.begin() + static_cast<std::ptrdiff_t>(i), in.begin() + static_cast<std::ptrdiff_t>(i + unit));
    }
  }
  return in;
}

}  // namespace zarrbits::conversion
