// SPDX-License-Identifier: BSL-1.0
#include "core/kernels/kernels.hpp"
#include "filter/packbits.hpp"

#include <cstring>

namespace zarrbits::filter {

namespace {

// Uses the core's functions for components, not those for elements: the latter report through std::error_code, which needs the
// C++ runtime, and the plugins do without it. All components of an HDF5 element are packed alike.

std::size_t no_memory(std::size_t size, sentence& reason) noexcept {
  reason.set(minor::no_space, "zarrbits: packbits: no memory for a chunk of %zu bytes", size);
  return 0;
}

// Decodes in place: from the last tile to the first, so that each one overwrites only encoded bytes that are already used. Groups
// of 8 components take how.bits bytes encoded and 8 * how.size decoded, which is never less.
void expand_in_place(const detail::kernel_table& k, const detail::packing& format, std::byte* data, std::size_t n) noexcept {
  std::byte encoded[4096];
  const std::size_t tile = sizeof encoded / format.bits * 8;
  for (std::size_t index = (n + tile - 1) / tile; index-- > 0;) {
    const std::size_t first = index * tile, m = n - first < tile ? n - first : tile;
    const std::size_t bytes = m / 8 * format.bits + (m % 8 * format.bits + 7) / 8;
    std::memcpy(encoded, data + first / 8 * format.bits, bytes);
    detail::decode_components(k, format, encoded, data + first * format.size, m);
  }
}

// Encodes from `in` to `out`, which may be the same place. Returns the number of encoded components: `n`, or the index of the
// first one that is refused. In that case `in` is unchanged, because the chunk is stored as it is. Each tile is checked, and then
// encoded while it is in the first-level cache; if one is refused, those before it are decoded again.
std::size_t pack(const detail::kernel_table& k, const detail::packing& format, const std::byte* in, std::byte* out,
                 std::size_t n) noexcept {
  detail::packing unchecked = format;
  unchecked.truncate = true;
  unchecked.nonzero_is_true = format.is_bool;
  std::size_t tile = 8192 / format.size;
  // HDF5 has two forms of such negative numbers, and decoding could not distinguish them: check all before encoding any
  if (format.is_signed && format.type_bits < 8u * format.size) tile = n;
  for (std::size_t index = 0; index < n; index += tile) {
    const std::size_t m = n - index < tile ? n - index : tile;
    const std::byte* source = in + index * format.size;
    const std::size_t good = detail::first_refused(k, format, source, m);
    if (good != m) {
      if (in == out) expand_in_place(k, format, out, index);
      return index + good;
    }
    detail::encode_components(k, unchecked, source, out + index / 8 * format.bits, m);
  }
  return n;
}

// The size of the chunk in one that was filled up, or 0.
std::size_t size_without_filling(const packbits_chunk& c, const std::byte* chunk) noexcept {
  const std::size_t last = c.filled_size() - 1;
  const auto raw = std::to_integer<unsigned>(chunk[last]);
  const auto size = static_cast<std::size_t>(raw ? c.decoded_size : c.encoded_size) + c.checksum_bytes();
  for (std::size_t i = size; i < last; ++i)
    if (chunk[i] != std::byte{0}) return 0;
  return raw > 1 ? 0 : size;
}

}  // namespace

bool packbits_chunk::may_misfit() const noexcept { return detail::is_checked(format); }

std::size_t encode(const library& h5, const packbits_chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                   sentence& reason) noexcept {
  const std::size_t checksum_bytes = c.checksum_bytes();
  if (nbytes != c.decoded_size + checksum_bytes) {
    reason.set(minor::bad_value, "zarrbits: packbits: HDF5 gave %zu bytes to encode, but a chunk of the dataset has %llu", nbytes,
               static_cast<unsigned long long>(c.decoded_size + checksum_bytes));
    return 0;
  }
  if (c.one_size) {
    const std::size_t filled = c.filled_size();
    if (filled > *buf_size) {
      void* resized = h5.resize(*buf, filled);
      if (!resized) return no_memory(filled, reason);
      *buf = resized;
      *buf_size = filled;
    }
    packbits_chunk inside = c;
    inside.one_size = false;
    const std::size_t size = encode(h5, inside, nbytes, buf_size, buf, reason);
    if (size == 0) return 0;
    auto* data = static_cast<std::byte*>(*buf);
    std::memset(data + size, 0, filled - size);
    data[filled - 1] = static_cast<std::byte>(*reason.text != '\0');
    return *buf_size = filled;
  }
  const std::size_t otherwise = c.may_be_raw() && c.policy != range_policy::error ? nbytes : 0;
  const detail::kernel_table& k = detail::kernels();
  auto* in = static_cast<std::byte*>(*buf);
  const std::size_t n = c.count();
  const bool first = c.count_byte == padding::first_byte;
  const auto packed = static_cast<std::size_t>(c.encoded_size);
  std::byte* out = in;
  std::byte checksum[checksum_size];
  std::memcpy(checksum, in + nbytes - checksum_bytes, checksum_bytes);
  if (packed + checksum_bytes > *buf_size) {  // as many bits as before, or nearly, plus a count byte
    out = static_cast<std::byte*>(h5.allocate(packed + checksum_bytes));
    if (!out) {
      no_memory(packed + checksum_bytes, reason);
      return otherwise;
    }
  }
  const std::size_t refused = pack(k, c.format, in, out, n);
  if (refused != n) {
    if (out != in) h5.release(out);
    const std::uint64_t value = detail::load_component(c.format, in + refused * c.format.size);
    if (c.format.is_bool)
      reason.set(minor::bad_value, "zarrbits: packbits: element %zu of a chunk is %llu, but a boolean must be 0 or 1; %s",
                 refused / c.components, static_cast<unsigned long long>(value),
                 otherwise != 0 ? "the chunk is stored as it is" : "correct the data");
    else
      reason.set(minor::bad_value,
                 "zarrbits: packbits: element %zu of a chunk holds 0x%llx, which the %u bits from bit %u on cannot hold; %s",
                 refused / c.components, static_cast<unsigned long long>(value), unsigned{c.format.bits},
                 unsigned{c.format.first_bit},
                 otherwise != 0 ? "the chunk is stored as it is; keep more bits so that it is packed" : "keep more bits");
    return otherwise;
  }
  const auto count = static_cast<std::byte>(detail::padding_bits(c.layout(), c.elements));
  if (c.count_byte == padding::last_byte) out[packed - 1] = count;
  if (first) {
    std::memmove(out + 1, out, packed - 1);
    out[0] = count;
  }
  std::memcpy(out + packed, checksum, checksum_bytes);
  if (out != in) {
    h5.release(*buf);
    *buf = out;
  }
  // Report no more than that, even if the buffer has more room because we worked in place: h5py's lzf compresses into a buffer of
  // this size, and would not fail if it saved nothing. A chunk that it made as large as the packed one could then replace one on
  // which it failed.
  *buf_size = packed + checksum_bytes;
  return packed + checksum_bytes;
}

std::size_t decode(const library& h5, const packbits_chunk& c, std::size_t nbytes, std::size_t* buf_size, void** buf,
                   sentence& reason) noexcept {
  const std::size_t checksum_bytes = c.checksum_bytes();
  if (c.one_size && nbytes == c.filled_size()) {
    nbytes = size_without_filling(c, static_cast<const std::byte*>(*buf));
    if (nbytes == 0) {
      reason.set(minor::cant_filter,
                 "zarrbits: packbits: the filler at the end of a chunk is not what packbits writes; the chunk is damaged");
      return 0;
    }
  }
  if (c.may_be_raw() && nbytes == c.decoded_size + checksum_bytes) return nbytes;
  if (nbytes != c.encoded_size + checksum_bytes) {
    reason.set(minor::cant_filter, "zarrbits: packbits: a chunk has %zu bytes in the file instead of %llu; it is damaged", nbytes,
               static_cast<unsigned long long>(c.encoded_size + checksum_bytes));
    return 0;
  }
  const auto* in = static_cast<const std::byte*>(*buf);
  const std::size_t packed = nbytes - checksum_bytes;
  if (c.count_byte != padding::none) {
    const unsigned actual_padding = std::to_integer<unsigned>(c.count_byte == padding::first_byte ? in[0] : in[packed - 1]);
    const unsigned expected_padding = detail::padding_bits(c.layout(), c.elements);
    if (actual_padding != expected_padding) {
      reason.set(minor::cant_filter,
                 "zarrbits: packbits: a chunk's count byte says %u bits of padding instead of %u; it is damaged", actual_padding,
                 expected_padding);
      return 0;
    }
  }
  const detail::kernel_table& k = detail::kernels();
  std::byte checksum[checksum_size];
  std::memcpy(checksum, in + packed, checksum_bytes);
  const std::size_t values = static_cast<std::size_t>(c.decoded_size), total_size = values + checksum_bytes;
  if (*buf_size >= total_size) {
    // HDF5 since 2.2 makes the buffer as large as the chunk. But an earlier decoding filter may have replaced it by a smaller one
    // without changing the size (lz4's and zstd's do). So HDF5 must first make sure of the size, which costs nothing if it is
    // right.
    const std::size_t size = total_size < nbytes ? nbytes : total_size;  // all bits and a count byte
    auto* resized = static_cast<std::byte*>(h5.resize(*buf, size));
    if (!resized) return no_memory(size, reason);
    *buf = resized;
    *buf_size = size;
    if (c.count_byte == padding::first_byte) std::memmove(resized, resized + 1, packed - 1);
    expand_in_place(k, c.format, resized, c.count());
    std::memcpy(resized + values, checksum, checksum_bytes);
    return total_size;
  }
  const std::byte* body = in + (c.count_byte == padding::first_byte ? 1 : 0);
  auto* out = static_cast<std::byte*>(h5.allocate(total_size));
  if (!out) return no_memory(total_size, reason);
  detail::decode_components(k, c.format, body, out, c.count());
  std::memcpy(out + values, checksum, checksum_bytes);
  h5.release(*buf);
  *buf = out;
  *buf_size = total_size;
  return total_size;
}

}  // namespace zarrbits::filter
