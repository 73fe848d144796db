// SPDX-License-Identifier: BSL-1.0
#include "convert/decompressors.hpp"

#include "convert/names.hpp"

#include <algorithm>
#include <cstring>

#ifdef ZARRBITS_HAVE_ZSTD
#include <zstd.h>
#endif

namespace zarrbits::conversion {

namespace {

std::uint64_t big(std::span<const std::byte>& in, std::size_t n, const char* who) {
  if (in.size() < n) throw damaged_chunk(std::string(who) + ": it ends too early");
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < n; ++i) v = v << 8 | std::to_integer<std::uint64_t>(in[i]);
  in = in.subspan(n);
  return v;
}

std::span<const std::byte> take(std::span<const std::byte>& in, std::uint64_t n, const char* who) {
  if (in.size() < n) throw damaged_chunk(std::string(who) + ": it ends too early");
  const auto piece = in.first(static_cast<std::size_t>(n));
  in = in.subspan(static_cast<std::size_t>(n));
  return piece;
}

// One LZ4 block (lz4_Block_format.md): literals, then a copy, until the input ends after literals.
void lz4_block(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t at = 0, to = 0;
  const auto length = [&](std::size_t n) {
    if (n < 15) return n;
    for (;;) {
      if (at >= in.size()) throw damaged_chunk("lz4: it ends too early");
      const auto b = std::to_integer<std::size_t>(in[at++]);
      n += b;
      if (b != 255) return n;
    }
  };
  while (at < in.size()) {
    const auto token = std::to_integer<std::size_t>(in[at++]);
    const std::size_t literals = length(token >> 4);
    if (literals > in.size() - at || literals > out.size() - to) throw damaged_chunk("lz4: literals go past the end");
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), literals, out.begin() + static_cast<std::ptrdiff_t>(to));
    at += literals;
    to += literals;
    if (at == in.size()) break;
    if (in.size() - at < 2) throw damaged_chunk("lz4: it ends too early");
    const std::size_t back = std::to_integer<std::size_t>(in[at]) | std::to_integer<std::size_t>(in[at + 1]) << 8;
    at += 2;
    const std::size_t n = length(token & 15) + 4;
    if (back == 0 || back > to || n > out.size() - to) throw damaged_chunk("lz4: a copy goes past the end");
    for (std::size_t i = 0; i < n; ++i, ++to) out[to] = out[to - back];
  }
  if (to != out.size()) throw damaged_chunk("lz4: a block is shorter than announced");
}

void zstd_block(std::span<const std::byte> in, std::span<std::byte> out) {
#ifdef ZARRBITS_HAVE_ZSTD
  const std::size_t n = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n)) throw damaged_chunk(std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != out.size()) throw damaged_chunk("zstd: another length than the chunk");
#else
  (void)in;
  (void)out;
  throw damaged_chunk("zstd: this zarrbits was built without it");
#endif
}

// `in` holds, for each bit of the element, the bits of all elements, 8 in a byte, the first in the lowest.
void untranspose(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element) {
  const std::size_t n = out.size() / element, row = n / 8;
  std::fill(out.begin(), out.end(), std::byte{0});
  for (std::size_t b = 0; b < element; ++b) {
    for (unsigned k = 0; k < 8; ++k) {
      const std::byte* p = in.data() + (b * 8 + k) * row;
      for (std::size_t i = 0; i < row; ++i) {
        const auto bits = std::to_integer<unsigned>(p[i]);
        for (unsigned j = 0; j < 8; ++j) out[(i * 8 + j) * element + b] |= static_cast<std::byte>((bits >> j & 1) << k);
      }
    }
  }
}

template <class F>
std::size_t run_decoder(unsigned flags, std::size_t nbytes, std::size_t* buf_size, void** buf, F decode) noexcept {
  if (!(flags & H5Z_FLAG_REVERSE)) return 0;  // decoders only
  try {
    const buffer out = decode(std::span<const std::byte>(static_cast<const std::byte*>(*buf), nbytes));
    void* memory = H5allocate_memory(out.empty() ? 1 : out.size(), 0);
    if (!memory) return 0;
    std::copy(out.begin(), out.end(), static_cast<std::byte*>(memory));
    H5free_memory(*buf);
    *buf = memory;
    *buf_size = out.size();
    return out.size();
  } catch (...) {  // libhdf5 is C: it hears of a failure by a length of 0
    return 0;
  }
}

constexpr std::uint64_t largest_output = std::uint64_t{1} << 32;  // a chunk is smaller

std::size_t bounded(std::uint64_t size) {
  if (size > largest_output) throw damaged_chunk("a length that no chunk has");
  return static_cast<std::size_t>(size);
}

std::size_t lzf_decoder(unsigned flags, std::size_t n, const unsigned values[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [&](std::span<const std::byte> in) { return undo_lzf(in, n > 2 && values[2] ? values[2] : 65536); });
}

std::size_t lz4_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) {
    auto head = in;
    return undo_lz4(in, bounded(big(head, 8, "lz4")));
  });
}

std::size_t bitshuffle_decoder(unsigned flags, std::size_t n, const unsigned values[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [&](std::span<const std::byte> in) {
    auto head = in;
    const bool compressed = n > 4 && values[4] != 0;
    return undo_bitshuffle({values, n}, in, compressed ? bounded(big(head, 8, "bitshuffle")) : in.size());
  });
}

#ifdef ZARRBITS_HAVE_ZSTD
std::size_t zstd_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) {
    return undo_zstd(in, bounded(ZSTD_getFrameContentSize(in.data(), in.size())));
  });
}
#endif

}  // namespace

void register_decoders() {
  const H5Z_class2_t classes[] = {
      {H5Z_CLASS_T_VERS, lzf_filter, 0, 1, "lzf", nullptr, nullptr, lzf_decoder},
      {H5Z_CLASS_T_VERS, lz4_filter, 0, 1, "lz4", nullptr, nullptr, lz4_decoder},
      {H5Z_CLASS_T_VERS, bitshuffle_filter, 0, 1, "bitshuffle", nullptr, nullptr, bitshuffle_decoder},
#ifdef ZARRBITS_HAVE_ZSTD
      {H5Z_CLASS_T_VERS, zstd_filter, 0, 1, "zstd", nullptr, nullptr, zstd_decoder},
#endif
  };
  for (const H5Z_class2_t& c : classes) {
    if (H5Zfilter_avail(c.id) <= 0) H5Zregister(&c);  // a plugin of the user's goes first
  }
  H5Eclear2(H5E_DEFAULT);
}

buffer undo_lzf(std::span<const std::byte> in, std::size_t size) {
  buffer out;
  out.reserve(size);
  std::size_t at = 0;
  const auto byte = [&] {
    if (at >= in.size()) throw damaged_chunk("lzf: it ends too early");
    return std::to_integer<std::size_t>(in[at++]);
  };
  while (at < in.size()) {
    const std::size_t control = byte();
    if (control < 32) {
      const std::size_t n = control + 1;
      if (n > in.size() - at || n > size - out.size()) throw damaged_chunk("lzf: a literal goes past the end");
      out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(at), in.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
    } else {
      std::size_t n = control >> 5;
      if (n == 7) n += byte();
      n += 2;
      const std::size_t back = ((control & 31) << 8 | byte()) + 1;
      if (back > out.size() || n > size - out.size()) throw damaged_chunk("lzf: a copy goes past the end");
      for (std::size_t i = 0; i < n; ++i) out.push_back(out[out.size() - back]);
    }
  }
  return out;
}

buffer undo_lz4(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = big(in, 8, "lz4"), block = big(in, 4, "lz4");
  if (total != size || (block == 0 && size > 0)) throw damaged_chunk("lz4: it announces another length than the chunk");
  buffer out(size);
  for (std::size_t at = 0; at < size;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(block), size - at);
    const auto piece = take(in, big(in, 4, "lz4"), "lz4");
    const auto to = std::span(out).subspan(at, n);
    if (piece.size() == n) std::copy(piece.begin(), piece.end(), to.begin());  // stored: it would not have become smaller
    else lz4_block(piece, to);
    at += n;
  }
  return out;
}

buffer undo_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size) {
  const std::size_t element = values.size() > 2 ? values[2] : 0;
  const unsigned compression = values.size() > 4 ? values[4] : 0;
  if (element == 0 || size % element != 0) throw damaged_chunk("bitshuffle: an element size that does not fit the chunk");
  std::uint64_t per_block = values.size() > 3 ? values[3] : 0;
  if (compression != 0) {
    if (big(in, 8, "bitshuffle") != size) throw damaged_chunk("bitshuffle: it announces another length than the chunk");
    per_block = big(in, 4, "bitshuffle") / element;
  }
  if (per_block == 0) per_block = std::max<std::uint64_t>(128, 8192 / element / 8 * 8);
  if (per_block % 8 != 0) throw damaged_chunk("bitshuffle: a block that is no multiple of 8 elements");
  const std::size_t elements = size / element, whole = elements / 8 * 8;
  buffer out(size), bits;
  for (std::size_t at = 0; at < whole;) {
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(per_block), whole - at);
    const auto to = std::span(out).subspan(at * element, n * element);
    if (compression == 0) {
      untranspose(take(in, n * element, "bitshuffle"), to, element);
    } else {
      const auto piece = take(in, big(in, 4, "bitshuffle"), "bitshuffle");
      bits.resize(n * element);
      if (compression == 2) lz4_block(piece, bits);
      else if (compression == 3) zstd_block(piece, bits);
      else throw damaged_chunk("bitshuffle: a compression that is not known");
      untranspose(bits, to, element);
    }
    at += n;
  }
  const auto rest = take(in, (elements - whole) * element, "bitshuffle");
  std::copy(rest.begin(), rest.end(), out.begin() + static_cast<std::ptrdiff_t>(whole * element));
  return out;
}

buffer undo_zstd(std::span<const std::byte> in, std::size_t size) {
  buffer out(size);
  zstd_block(in, out);
  return out;
}

bool has_zstd() {
#ifdef ZARRBITS_HAVE_ZSTD
  return true;
#else
  return false;
#endif
}

buffer zstd(std::span<const std::byte> bytes, int level) {
#ifdef ZARRBITS_HAVE_ZSTD
  buffer out(ZSTD_compressBound(bytes.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(n)) throw std::runtime_error("zstd cannot compress a chunk");
  out.resize(n);
  return out;
#else
  (void)bytes;
  (void)level;
  throw std::runtime_error("this zarrbits was built without zstd");
#endif
}

buffer blosc_stored(std::span<const std::byte> bytes, std::size_t typesize) {
  buffer out(16 + bytes.size());
  const auto put = [&](std::size_t at, std::size_t v) {
    for (unsigned i = 0; i < 4; ++i) out[at + i] = static_cast<std::byte>(v >> (8 * i));
  };
  out[0] = std::byte{2};  // format
  out[1] = std::byte{1};
  out[2] = std::byte{2};  // "memcpyed"
  out[3] = static_cast<std::byte>(typesize > 255 ? 1 : typesize);
  put(4, bytes.size());
  put(8, bytes.size());
  put(12, out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin() + 16);
  return out;
}

void check_blosc(std::span<const std::byte> in, std::size_t size) {
  const auto word = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (unsigned i = 0; i < 4; ++i) v |= std::to_integer<std::uint32_t>(in[at + i]) << (8 * i);
    return v;
  };
  if (in.size() < 16 || std::to_integer<unsigned>(in[0]) != 2) throw damaged_chunk("blosc: no buffer of Blosc 1");
  if (word(4) != size || word(12) != in.size()) throw damaged_chunk("blosc: it announces another length than the chunk");
  const auto flags = std::to_integer<unsigned>(in[2]);
  if ((flags & 2) == 0 && flags >> 5 == 2) throw damaged_chunk("blosc: compressed with snappy, which Zarr readers do not have");
}

}  // namespace zarrbits::conversion
