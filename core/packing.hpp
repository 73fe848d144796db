// SPDX-License-Identifier: BSL-1.0
//
// What every codec of the core boils down to: each component of an element (1, 2, 4 or 8 bytes in memory) becomes a fixed number
// of bits, components follow each other bit by bit, and at most one count byte stands before or after them.
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

// How one component is encoded. Bits are counted from the least significant one of the component as a number, whatever its byte
// order.
struct packing {
  std::uint8_t size = 1;       // bytes of the component in memory: 1, 2, 4, 8
  std::uint8_t type_bits = 8;  // bits that belong to the data type: N (HDF5: offset + precision); at most 8 * size
  std::uint8_t first_bit = 0;  // the kept bits: first_bit ... first_bit + bits - 1
  std::uint8_t bits = 8;
  bool whole = false;      // `bytes`: the component is encoded with all its bytes (first_bit 0, bits == type_bits, and extended)
  bool is_signed = false;  // decode repeats the highest kept bit above it; otherwise zeros
  bool is_bool = false;    // any value but 0 and 1 is refused, on decode of `whole` too
  bool nonzero_is_true = false;  // ... or taken as 1
  bool truncate = false;         // encode does not check
  bool zero_above = false;       // decode leaves zeros above type_bits even of negative numbers, as HDF5 does in its pad bits
  bool swap_memory = false;      // components lie in memory in the byte order that is not this machine's
  bool swap_encoded = false;     // `whole`: encoded in the byte order that is not this machine's
  bool msb_first = false;        // numcodecs: bits run from the top of each byte (bits == 1 only)

  // Bits of an encoded component.
  constexpr unsigned encoded_bits() const noexcept { return whole ? 8u * size : bits; }
  // Does encode look at values, does decode? (kernels are plain copies and swaps where not)
  constexpr bool partial() const noexcept { return type_bits < 8u * size || !(whole || bits == 8u * size); }
};

// A component as it lies in memory, as a number: reads p.size bytes.
std::uint64_t load_component(const packing& p, const std::byte* in) noexcept;
void store_component(const packing& p, std::uint64_t value, std::byte* out) noexcept;

// One component: the encoded bits of `value` (lowest first), and back. encode_value() returns false where checked encoding
// refuses the value; decode_value() only for a `whole` bool.
bool encode_value(const packing& p, std::uint64_t value, std::uint64_t& bits) noexcept;
bool decode_value(const packing& p, std::uint64_t bits, std::uint64_t& value) noexcept;

// Many components, with the kernels of `k`. Encoded bits begin at bit 0 of out[0] (in[0]); a last, partial byte is padded with
// zero bits. Both return the number of components done: `n`, or the index of the first one that was refused (then the output from
// there on is unspecified). In place (in == out) is allowed where encoded_bits() == 8 * size, and for encode_components always.
// encode: reads n * size bytes, writes ceil(n * encoded_bits / 8). decode: the other way round.
std::size_t encode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept;
std::size_t decode_components(const kernel_table& k, const packing& p, const std::byte* in, std::byte* out,
                              std::size_t n) noexcept;

// Index of the first component that encode would refuse, or n. Writes nothing.
std::size_t first_refused(const kernel_table& k, const packing& p, const std::byte* in, std::size_t n) noexcept;

// A number of components with the same packing.
struct run {
  packing how;
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

// Sizes, overflow-checked: false where the result does not fit.
bool decoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept;
bool encoded_size(const layout& l, std::uint64_t elements, std::uint64_t& bytes) noexcept;

// Padding bits of a chunk of `elements`, 0 to 7: what the count byte says.
unsigned padding_bits(const layout& l, std::uint64_t elements) noexcept;

// Whole chunks: see <zarrbits/chunk.hpp> for what the public functions over these promise.
failure encode_elements(const layout& l, std::uint64_t elements, const std::byte* in, std::byte* out) noexcept;
failure decode_elements(const layout& l, std::uint64_t elements, std::span<const std::byte> in, std::byte* out) noexcept;

// The bytes of an encoded chunk that hold the elements of `r`; false where these are not all among its `elements`. The size of
// the whole chunk must be known to fit.
bool encoded_range(const layout& l, std::uint64_t elements, element_range r, byte_range& range) noexcept;

// Decodes these elements from these bytes.
failure decode_range(const layout& l, element_range r, const std::byte* in, std::byte* out) noexcept;

}  // namespace zarrbits::detail

#endif
