// SPDX-License-Identifier: BSL-1.0
#include "filter/bytes.hpp"

#include "core/kernels/kernels.hpp"

#include <zarrbits/version.hpp>

namespace zarrbits::filter {

namespace {

constexpr unsigned magic = 0x5A424500, layout_version = 1;
constexpr unsigned plugin_version = ZARRBITS_VERSION_MAJOR << 16 | ZARRBITS_VERSION_MINOR << 8 | ZARRBITS_VERSION_PATCH;

}  // namespace

bool read_parameters(std::size_t n, const unsigned cd[], bool& big_endian, sentence& reason) noexcept {
  const bool stored = n > 1 && (cd[1] & ~0xffu) == magic;
  if (stored && (cd[1] != (magic | layout_version) || n != bytes_stored))
    return reason.set(
        minor::bad_value,
        "zarrbits: bytes: the %zu values have the form of a different version of zarrbits; use the first of them (the "
        "byte order) alone",
        n);
  if (n > 1 && !stored)
    return reason.set(minor::bad_value, "zarrbits: bytes: takes one value (0 little endian, 1 big endian), not %zu", n);
  if (n > 0 && cd[0] > 1)
    return reason.set(minor::bad_value,
                      "zarrbits: bytes: the byte order (the first value) is %u, but must be 0 (little endian) or 1 (big endian)",
                      cd[0]);
  big_endian = n > 0 && cd[0] == 1;
  return true;
}

bool resolve(bool big_endian, const element& e, std::uint64_t elements, bytes_chunk& out, sentence& reason) noexcept {
  out = bytes_chunk{};
  out.big_endian = big_endian;
  const bool ordered = e.type_class != kind::opaque && e.size > 1;
  if (ordered) out.size = e.size;
  out.memory_big_endian = ordered && e.big_endian;
  std::uint64_t element_size = 0;
  if (out.size > UINT32_MAX || __builtin_mul_overflow(e.size, e.components, &element_size) ||
      __builtin_mul_overflow(element_size, elements, &out.chunk_size) || out.chunk_size == 0 || out.chunk_size > PTRDIFF_MAX)
    return reason.set(minor::bad_value, "zarrbits: bytes: a chunk of %llu elements is impossible; choose a smaller chunk",
                      static_cast<unsigned long long>(elements));
  return true;
}

void store(const bytes_chunk& c, unsigned cd[bytes_stored]) noexcept {
  cd[0] = c.big_endian;
  cd[1] = magic | layout_version;
  cd[2] = static_cast<unsigned>(c.size);
  cd[3] = static_cast<unsigned>(c.memory_big_endian) | static_cast<unsigned>(c.checksum_before) << 1;
  cd[4] = static_cast<unsigned>(c.chunk_size);
  cd[5] = static_cast<unsigned>(c.chunk_size >> 32);
  cd[6] = plugin_version;
}

bool load(std::size_t n, const unsigned cd[], bytes_chunk& out, sentence& reason) noexcept {
  out = bytes_chunk{};
  if (n != bytes_stored || cd[1] != (magic | layout_version))
    return reason.set(
        minor::bad_value,
        "zarrbits: bytes: the filter's parameters in the file (%zu values) are not values that zarrbits " ZARRBITS_VERSION_STRING
        " writes; the file is damaged or comes from a different version",
        n);
  out.big_endian = cd[0] == 1;
  out.size = cd[2];
  out.memory_big_endian = (cd[3] & 1) != 0;
  out.checksum_before = (cd[3] & 2) != 0;
  out.chunk_size = std::uint64_t{cd[5]} << 32 | cd[4];
  if (cd[0] > 1 || cd[3] > 3 || out.size == 0 || out.chunk_size == 0 || out.chunk_size > PTRDIFF_MAX ||
      out.chunk_size % out.size != 0)
    return reason.set(minor::bad_value,
                      "zarrbits: bytes: the filter's parameters in the file contradict each other; the file is damaged");
  return true;
}

std::size_t convert(const bytes_chunk& c, std::size_t nbytes, void* buf, sentence& reason) noexcept {
  const std::uint64_t expected_size = c.chunk_size + (c.checksum_before ? checksum_size : 0);
  if (nbytes != expected_size) {
    reason.set(minor::cant_filter, "zarrbits: bytes: a chunk has %zu bytes instead of %llu; it is damaged", nbytes,
               static_cast<unsigned long long>(expected_size));
    return 0;
  }
  if (!c.reverses()) return nbytes;
  const auto values = static_cast<std::size_t>(c.chunk_size);
  auto* data = static_cast<std::byte*>(buf);
  const auto size = static_cast<std::size_t>(c.size);
  if (size == 2 || size == 4 || size == 8) {
    detail::kernels().swap[detail::log2_size(static_cast<unsigned>(size))](data, data, values / size);
  } else {  // integers of 3 bytes, long double
    for (std::size_t first = 0; first < values; first += size)
      for (std::size_t i = 0; i < size / 2; ++i) {
        const std::byte low = data[first + i];
        data[first + i] = data[first + size - 1 - i];
        data[first + size - 1 - i] = low;
      }
  }
  return nbytes;
}

}  // namespace zarrbits::filter
