// SPDX-License-Identifier: BSL-1.0
//
// SHA-256 (FIPS 180-4), for cases where an attacker must not be able to provoke a collision: the keys of long names, and the
// plan's checksum of its source. It does not use OpenSSL, which a build without S3 does not have.
//
#ifndef ZARRBITS_TEXT_SHA256_HPP
#define ZARRBITS_TEXT_SHA256_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::text {

class sha256 {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text.data(), text.size()))); }
  // A separate field: "ab", "c" differs from "a", "bc".
  void add_field(std::string_view text) noexcept;
  void add_number(std::uint64_t n) noexcept;
  // The first `digits` of its 64 hexadecimal digits. Add nothing afterwards.
  std::string hex(std::size_t digits = 64) noexcept;

 private:
  void block(const std::byte* p) noexcept;

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::uint64_t size_ = 0;
};

}  // namespace zarrbits::text

#endif
