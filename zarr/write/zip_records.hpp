// SPDX-License-Identifier: BSL-1.0
//
// The records of a .zip file, with zip64 if a size or an offset needs it. No compression, and no modification times, so that
// equal stores are equal files.
//
//   write(zip_header(key, m).bytes());          // before each member's bytes
//   zip_record list;
//   add_to_directory(list, key, m);             // for each, at the end of the file
//   add_end(list, members, first_entry, end_of_entries);
//
#ifndef ZARRBITS_ZARR_WRITE_ZIP_RECORDS_HPP
#define ZARRBITS_ZARR_WRITE_ZIP_RECORDS_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zarrbits::zarr {

struct zip_member {
  std::uint64_t offset = 0, size = 0;  // of its bytes
  std::uint32_t crc = 0;
};

// Consecutive little-endian fields.
class zip_record {
 public:
  zip_record& u16(std::uint64_t v) { return put(v, 2); }
  zip_record& u32(std::uint64_t v) { return put(v, 4); }
  zip_record& u64(std::uint64_t v) { return put(v, 8); }
  zip_record& text(std::string_view s) {
    for (const char c : s) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  zip_record& put(std::uint64_t v, unsigned n) {
    for (unsigned i = 0; i < n; ++i) bytes_.push_back(static_cast<std::byte>(v >> (8 * i)));
    return *this;
  }
  std::vector<std::byte> bytes_;
};

// Size in bytes of the header of such a member.
std::uint64_t zip_header_size(std::string_view key, std::uint64_t size);
zip_record zip_header(std::string_view key, const zip_member& m);

void add_to_directory(zip_record& list, std::string_view key, const zip_member& m);
// For `n` entries that begin at `directory` of the file, and end at `end`.
void add_end(zip_record& list, std::uint64_t n, std::uint64_t directory, std::uint64_t end);

}  // namespace zarrbits::zarr

#endif
