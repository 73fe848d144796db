// SPDX-License-Identifier: BSL-1.0
//
// A range of the bytes of a file.
//
#ifndef ZARRBITS_IO_BYTE_RANGE_HPP
#define ZARRBITS_IO_BYTE_RANGE_HPP

#include <cstdint>
#include <string>

namespace zarrbits::io {

struct byte_range {
  std::uint64_t offset = 0, size = 0;
};

// "0-99": a range that is not empty, as requests have it.
inline std::string range_text(const byte_range& range) {
  return std::to_string(range.offset) + "-" + std::to_string(range.offset + range.size - 1);
}

}  // namespace zarrbits::io

#endif
