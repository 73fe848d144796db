// SPDX-License-Identifier: BSL-1.0
#include "compressors/lzf.hpp"

#include "compressors/byte_reader.hpp"

extern "C" {
#if __has_include(<liblzf/lzf.h>)
#include <liblzf/lzf.h>
#else
#include <lzf.h>
#endif
}

namespace zarrbits::compressors {

buffer decompress_lzf(std::span<const std::byte> in, std::size_t size) {
  checked_int(in.size(), "lzf");
  checked_int(size, "lzf");
  buffer out(size);
  // 0: failure, or no data
  const unsigned n =
      in.empty() ? 0 : lzf_decompress(in.data(), static_cast<unsigned>(in.size()), out.data(), static_cast<unsigned>(size));
  if (n == 0 && !in.empty()) throw corrupt_chunk("lzf: it cannot be decoded to the chunk's length");
  out.resize(n);
  return out;
}

}  // namespace zarrbits::compressors
