// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/zip_records.hpp"

#include <algorithm>

namespace zarrbits::zarr {

namespace {

constexpr std::uint64_t limit32 = 0xFFFFFFFF;  // a size or an offset from this one on needs zip64
constexpr std::uint64_t limit16 = 0xFFFF;
constexpr unsigned format_version = 45;  // version of the format with zip64
constexpr unsigned made_on_unix = 3;
constexpr unsigned midnight = 0, first_of_1980 = 0x21;  // the earliest time in the format
constexpr std::uint64_t permissions = 0100644;

unsigned name_is_utf8(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }) ? 1U << 11 : 0;
}

}  // namespace

std::uint64_t zip_header_size(std::string_view key, std::uint64_t size) { return 30 + key.size() + (size >= limit32 ? 20 : 0); }

zip_record zip_header(std::string_view key, const zip_member& m) {
  const bool large = m.size >= limit32;
  zip_record header;
  header.text("PK\3\4").u16(format_version).u16(name_is_utf8(key)).u16(0).u16(midnight).u16(first_of_1980).u32(m.crc);
  header.u32(large ? limit32 : m.size).u32(large ? limit32 : m.size).u16(key.size()).u16(large ? 20 : 0).text(key);
  if (large) header.u16(1).u16(16).u64(m.size).u64(m.size);
  return header;
}

void add_to_directory(zip_record& list, std::string_view key, const zip_member& m) {
  const std::uint64_t header = m.offset - zip_header_size(key, m.size);
  const bool large = m.size >= limit32, large_offset = header >= limit32;
  const unsigned fields = (large ? 16U : 0U) + (large_offset ? 8U : 0U);
  list.text("PK\1\2")
      .u16(made_on_unix << 8 | format_version)
      .u16(format_version)
      .u16(name_is_utf8(key))
      .u16(0)
      .u16(midnight)
      .u16(first_of_1980)
      .u32(m.crc);
  list.u32(large ? limit32 : m.size)
      .u32(large ? limit32 : m.size)
      .u16(key.size())
      .u16(fields ? fields + 4 : 0)
      .u16(0)
      .u16(0)
      .u16(0);
  list.u32(permissions << 16).u32(large_offset ? limit32 : header).text(key);
  if (fields) list.u16(1).u16(fields);
  if (large) list.u64(m.size).u64(m.size);
  if (large_offset) list.u64(header);
}

void add_end(zip_record& list, std::uint64_t n, std::uint64_t directory, std::uint64_t end) {
  const std::uint64_t size = end - directory;
  if (n >= limit16 || size >= limit32 || directory >= limit32) {
    list.text("PK\6\6")
        .u64(44)
        .u16(made_on_unix << 8 | format_version)
        .u16(format_version)
        .u32(0)
        .u32(0)
        .u64(n)
        .u64(n)
        .u64(size)
        .u64(directory);
    list.text("PK\6\7").u32(0).u64(end).u32(1);
  }
  list.text("PK\5\6").u16(0).u16(0).u16(std::min(n, limit16)).u16(std::min(n, limit16)).u32(std::min(size, limit32));
  list.u32(std::min(directory, limit32)).u16(0);
}

}  // namespace zarrbits::zarr
