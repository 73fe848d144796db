// SPDX-License-Identifier: BSL-1.0
//
// Codecs from bytes to bytes, decoded with their libraries, and with nothing of compressors/. Each throws store_error; `max_size`
// limits the output of a few hostile bytes.
//
#ifndef ZARRBITS_VERIFY_DECODE_PLAIN_BYTES_HPP
#define ZARRBITS_VERIFY_DECODE_PLAIN_BYTES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zarrbits::verification {

std::vector<std::byte> decode_gzip(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> decode_zlib(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> decode_bz2(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> decode_lz4(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> decode_blosc(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> decode_zstd(const std::vector<std::byte>& in, std::uint64_t max_size);
std::vector<std::byte> unshuffle(const std::vector<std::byte>& in, std::size_t element);
void drop_fletcher32(std::vector<std::byte>& bytes);
void drop_crc32c(std::vector<std::byte>& bytes);

}  // namespace zarrbits::verification

#endif
