// SPDX-License-Identifier: BSL-1.0
//
// The common form of every codec of the core: each component of an element (1, 2, 4 or 8 bytes in memory) becomes a fixed number
// of bits, components follow each other bit by bit, and at most one count byte comes before or after them.
//
// Everything here is plain data and noexcept: codecs own it (codec_state.hpp), the HDF5 plugins build it on the stack.
//
#ifndef ZARRBITS_CORE_PACKING_HPP
#define ZARRBITS_CORE_PACKING_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/packbits.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::detail {

struct kernel_table;

// How one component is encoded. Bits are counted from the least significant one of the component as a number, in any byte order.
struct packing {
  std::uint8_t size = 1;       // bytes of the component in memory: 1, 2, 4, 8
  std::uint8_t type_bits = 8;  // bits of the data type: N (HDF5: offset + precision); at most 8 * size
  std::uint8_t first_bit = 0;  // the kept bits: first_bit ... first_bit + bits - 1
  std::uint8_t bits = 8;
  bool full_width = false;       // `bytes`: all bytes of the component are encoded (first_bit 0, bits == type_bits, and extended)
  bool is_signed = false;        // decode repeats the highest kept bit above it; otherwise zeros
  bool is_bool = false;          // any value except 0 and 1 is refused, on decode of `full_width` too
  bool nonzero_is_true = false;  // ... or counts as 1
  bool truncate = false;         // encode does not check
  bool zero_above = false;       // decode leaves zeros above type_bits, even for negative numbers, as HDF5 does in its pad bits
  bool swap_memory = false;      // components in memory do not have this machine's byte order
  bool swap_encoded = false;     // `full_width`: the encoded byte order is not this machine's
  bool msb_first = false;        // numcodecs: bits run from the top of each byte (bits == 1 only)

  // Bits of an encoded component.
  constexpr unsigned encoded_bits() const noexcept { return full_width ? 8u * size : bits; }
  // True if encode, or decode, looks at values (otherwise kernels are plain copies and swaps)
  constexpr bool partial() const noexcept { return type_bits < 8u * size || !(full_width || bits == 8u * size); }
};

// A component in memory as a number: reads p.size bytes.
ZARRBITS_API std::uint64_t load_component(const packing& p, const std::byte* in) noexcept;
void store_component(const packing& p, std::uint64_t value, std::byte* out) noexcept;

// One component: the encoded bits of `value` (lowest first), and the reverse. encode_value() returns false if checked encoding
// refuses the value; decode_value() only for a `full_width` bool.
bool encode_value(const packing& p, std::uint64_t value, std::uint64_t& bits) noexcept;
bool decode_value(const packing& p, std::uint64_t bits, std::uint64_t& value) noexcept;

// Many components, with the kernels of `k`. Encoded bits begin at bit 0 of out[0] (in[0]); a partial last byte is padded with
// zero bits. Both return the number of finished components: `n`, or the index of the first one that was refused (the output from
// there on is then unspecified). In place (in == out) is allowed if encoded_bits() == 8 * size, and always for encode_components.
// encode: reads n * size bytes, writes ceil(n * encoded_bits / 8). decode: the reverse.
std::size_t encode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept;
std::size_t decode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept;

// Index of the first component that encode would refuse, or n. Writes nothing.
ZARRBITS_API std::size_t first_refused(const kernel_table& k, const packing& p, const std::byte* in, std::size_t n) noexcept;

// A number of components with the same packing.
struct run {
  packing format;
  std::uint32_t count = 1;
};

// How an element is encoded: its runs in order (numbers have one), and the chunk's count byte.
struct layout {
  std::span<const run> runs;
  padding count_byte = padding::none;
  bool strict_padding = false;
  const kernel_table* kernels = nullptr;

  std::uint64_t element_size = 0;  // bytes in memory
  std::uint64_t element_bits = 0;  // bits when encoded
};

// Sizes with overflow checks: false if the result does not fit.
bool decoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept;
bool encoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept;

// Number of padding bits of a chunk of `elements`, 0 to 7: the value of the count byte.
unsigned padding_bits(const layout& l, std::uint64_t elements) noexcept;

// Whole chunks: the public functions in <zarrbits/chunk.hpp> call these, and document what they promise.
failure encode_elements(const layout& l, std::uint64_t elements, const std::byte* in, std::byte* out) noexcept;
failure decode_elements(const layout& l, std::uint64_t elements, std::span<const std::byte> in, std::byte* out) noexcept;

// The bytes of an encoded chunk that hold the elements of `r`; false if these are not all among its `elements`. The caller knows
// that the size of the whole chunk fits.
bool encoded_range(const layout& l, std::uint64_t elements, element_range r, byte_range& range) noexcept;

// Decodes these elements from these bytes.
failure decode_range(const layout& l, element_range r, const std::byte* in, std::byte* out) noexcept;

}  // namespace zarrbits::detail

#endif
