// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_FILTER_CHUNK_SUPPORT_HPP
#define ZARRBITS_TESTS_FILTER_CHUNK_SUPPORT_HPP

#include "filter/packbits.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

// Buffers and elements as HDF5 hands them to a filter.
namespace chunk_support {

using namespace zarrbits::filter;
using bytes_of = std::vector<unsigned char>;

inline const library plain{};  // no libhdf5: malloc and free

// A buffer that a filter may replace.
struct buffer {
  void* at;
  std::size_t size;
  buffer(const bytes_of& content, std::size_t room) : at(std::malloc(std::max<std::size_t>(room, 1))), size(room) {
    if (!content.empty()) std::memcpy(at, content.data(), content.size());
  }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { std::free(at); }
  bytes_of first(std::size_t n) const {
    const auto* p = static_cast<const unsigned char*>(at);
    return bytes_of(p, p + n);
  }
};

inline element number(unsigned size, bool is_signed = false, bool big = false, unsigned components = 1) {
  element e;
  e.size = size;
  e.precision = 8 * size;
  e.components = components;
  e.is_signed = is_signed;
  e.big_endian = big;
  return e;
}

}  // namespace chunk_support
#endif
