// SPDX-License-Identifier: BSL-1.0
#include "compressors/lzf.hpp"

#include "compressors/byte_reader.hpp"

#include <algorithm>

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

buffer lzf_block(std::span<const std::byte> bytes) {
  constexpr std::size_t max_literals = 32;
  const auto size = static_cast<unsigned>(checked_int(bytes.size(), "lzf"));
  buffer out(size);
  const unsigned n = size > 1 ? lzf_compress(bytes.data(), size, out.data(), size - 1) : 0;  // 0: it does not get smaller
  out.resize(n);
  if (n > 0) return out;
  for (std::size_t i = 0; i < size; i += max_literals) {
    const auto literals = bytes.subspan(i, std::min<std::size_t>(max_literals, size - i));
    out.push_back(static_cast<std::byte>(literals.size() - 1));
    out.insert(out.end(), literals.begin(), literals.end());
  }
  return out;
}

}  // namespace zarrbits::compressors
