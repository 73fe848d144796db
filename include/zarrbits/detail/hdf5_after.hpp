// SPDX-License-Identifier: BSL-1.0
//
// Filters of HDF5 that may follow packbits or bytes, done without libhdf5: fletcher32 and, with ZARRBITS_HDF5_ZLIB, deflate. For
// <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_HDF5_AFTER_HPP
#define ZARRBITS_DETAIL_HDF5_AFTER_HPP

#include <zarrbits/hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#ifdef ZARRBITS_HDF5_ZLIB
#include <zlib.h>
#endif

namespace zarrbits::hdf5::detail {

using chunk_buffer = std::vector<std::byte>;

// HDF5's variant of it: words of 16 bits in big-endian order.
inline std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t a = 0, b = 0;
  const auto fold = [](std::uint32_t v) { return (v & 0xFFFF) + (v >> 16); };
  const auto word = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  const std::size_t even = bytes.size() / 2 * 2;
  for (std::size_t i = 0; i < even;) {
    // as many as do not overflow
    for (const std::size_t end = even - i < 720 ? even : i + 720; i < end; i += 2) {
      a += word(i) << 8 | word(i + 1);
      b += a;
    }
    a = fold(a);
    b = fold(b);
  }
  if (even != bytes.size()) {
    a += word(even) << 8;
    b += a;
    a = fold(a);
    b = fold(b);
  }
  return fold(b) << 16 | fold(a);
}

struct after_filter {
  H5Z_filter_t id = 0;
  int level = 0;             // of deflate
  bool is_optional = false;  // left out for a chunk that it cannot encode

  static std::optional<after_filter> from(H5Z_filter_t id, unsigned flags, std::size_t n, const unsigned* values) {
    const bool is_optional = (flags & H5Z_FLAG_OPTIONAL) != 0;
    if (id == H5Z_FILTER_FLETCHER32) return after_filter{id, 0, is_optional};
#ifdef ZARRBITS_HDF5_ZLIB
    if (id == H5Z_FILTER_DEFLATE && n == 1 && values[0] <= 9) return after_filter{id, static_cast<int>(values[0]), is_optional};
#else
    static_cast<void>(n);
    static_cast<void>(values);
#endif
    return {};
  }

  // The most bytes that it makes of `size`.
  static std::size_t most(std::size_t size) { return size + size / 1000 + 1 + 12; }

  // Makes of `ready` what HDF5 makes of it; it may lie in `stored`, and lies there afterwards. `other` is room. False, and
  // `ready` is as it was, if the filter fails.
  bool apply(std::span<const std::byte>& ready, chunk_buffer& stored, chunk_buffer& other) const {
    if (id == H5Z_FILTER_FLETCHER32) {
      const std::uint32_t sum = fletcher32(ready);
      if (ready.data() == stored.data()) stored.resize(ready.size());
      else stored.assign(ready.begin(), ready.end());
      for (unsigned i = 0; i < 4; ++i) stored.push_back(static_cast<std::byte>(sum >> (8 * i)));
      ready = stored;
      return true;
    }
#ifdef ZARRBITS_HDF5_ZLIB
    other.resize(most(ready.size()));
    uLongf size = static_cast<uLongf>(other.size());
    const auto* from = reinterpret_cast<const Bytef*>(ready.data());
    if (compress2(reinterpret_cast<Bytef*>(other.data()), &size, from, static_cast<uLong>(ready.size()), level) != Z_OK)
      return false;
    other.resize(static_cast<std::size_t>(size));
    std::swap(stored, other);
    ready = stored;
    return true;
#else
    static_cast<void>(other);
    return false;
#endif
  }

  // The reverse, to at most `largest` bytes; null, or what is wrong.
  const char* undo(chunk_buffer& stored, std::size_t largest, chunk_buffer& other) const {
    if (id == H5Z_FILTER_FLETCHER32) {
      if (stored.size() < 4) return "it is shorter than its checksum";
      const std::span<const std::byte> bytes = std::span<const std::byte>(stored).first(stored.size() - 4);
      std::uint32_t given = 0;
      for (unsigned i = 0; i < 4; ++i) given |= std::to_integer<std::uint32_t>(stored[bytes.size() + i]) << (8 * i);
      const std::uint32_t sum = fletcher32(bytes);
      // HDF5 before 1.6.3 swapped the bytes of each half on little-endian machines
      const std::uint32_t older = (sum & 0x00FF00FF) << 8 | (sum & 0xFF00FF00) >> 8;
      if (given != sum && given != older) return "its checksum (fletcher32) is wrong";
      stored.resize(bytes.size());
      return nullptr;
    }
#ifdef ZARRBITS_HDF5_ZLIB
    other.resize(largest);
    uLongf size = static_cast<uLongf>(largest);
    const auto* from = reinterpret_cast<const Bytef*>(stored.data());
    if (uncompress(reinterpret_cast<Bytef*>(other.data()), &size, from, static_cast<uLong>(stored.size())) != Z_OK)
      return "zlib cannot inflate it";
    other.resize(static_cast<std::size_t>(size));
    std::swap(stored, other);
    return nullptr;
#else
    static_cast<void>(largest);
    static_cast<void>(other);
    return "it has another filter";
#endif
  }
};

}  // namespace zarrbits::hdf5::detail

#endif
