// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/decompressors.hpp"

#include "convert/codecs/lzo.hpp"
#include "convert/text/names.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include <blosc.h>
#include <bzlib.h>
#include <lz4.h>
#include <zstd.h>

extern "C" {
#include <liblzf/lzf.h>
}

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

int as_int(std::size_t n, const char* who) {
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max())) throw damaged_chunk(std::string(who) + ": longer than it can be");
  return static_cast<int>(n);
}

void lz4_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()), as_int(in.size(), "lz4"),
                                    as_int(out.size(), "lz4"));
  if (n < 0) throw damaged_chunk("lz4: a block that cannot be decoded");
  if (static_cast<std::size_t>(n) != out.size()) throw damaged_chunk("lz4: a block is shorter than announced");
}

void zstd_block(std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t n = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n)) throw damaged_chunk(std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != out.size()) throw damaged_chunk("zstd: another length than the chunk");
}

// How long it becomes, only the stream knows; more than `most` is damage.
buffer bunzip2(std::span<const std::byte> in, std::size_t most) {
  bz_stream z{};
  if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) throw std::bad_alloc();
  const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> end(&z, &BZ2_bzDecompressEnd);
  buffer out;
  std::size_t used = 0;
  z.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
  z.avail_in = static_cast<unsigned>(as_int(in.size(), "bzip2"));
  for (int status = BZ_OK; status != BZ_STREAM_END;) {
    if (used > most) throw damaged_chunk("bzip2: it makes more than the chunk");
    if (used == out.size()) out.resize(std::min(std::max<std::size_t>(2 * used, 64 << 10), most + 1));
    const auto room = static_cast<unsigned>(std::min<std::size_t>(out.size() - used, 1U << 30));
    z.next_out = reinterpret_cast<char*>(out.data() + used);
    z.avail_out = room;
    const unsigned before = z.avail_in;
    status = BZ2_bzDecompress(&z);
    if (status != BZ_OK && status != BZ_STREAM_END) throw damaged_chunk("bzip2: a stream that cannot be decoded");
    if (status == BZ_OK && z.avail_out == room && z.avail_in == before) throw damaged_chunk("bzip2: it ends too early");
    used += room - z.avail_out;
  }
  if (used > most) throw damaged_chunk("bzip2: it makes more than the chunk");
  out.resize(used);
  return out;
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

// Here nobody knows how large the chunk is: what a small one may become anyway, or else no bomb.
std::size_t largest_output(std::span<const std::byte> in) { return std::max<std::size_t>(64U << 20, 1000 * in.size()); }

std::size_t bounded(std::uint64_t size, std::span<const std::byte> in) {
  if (size > largest_output(in)) throw damaged_chunk("a length that no chunk has");
  return static_cast<std::size_t>(size);
}

std::size_t lzf_decoder(unsigned flags, std::size_t n, const unsigned values[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [&](std::span<const std::byte> in) { return undo_lzf(in, n > 2 && values[2] ? values[2] : 65536); });
}

std::size_t lz4_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) {
    auto head = in;
    return undo_lz4(in, bounded(big(head, 8, "lz4"), in));
  });
}

std::size_t bitshuffle_decoder(unsigned flags, std::size_t n, const unsigned values[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [&](std::span<const std::byte> in) {
    auto head = in;
    const bool compressed = n > 4 && values[4] != 0;
    return undo_bitshuffle({values, n}, in, compressed ? bounded(big(head, 8, "bitshuffle"), in) : in.size());
  });
}

std::size_t blosc_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) {
    std::size_t announced = 0;
    if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &announced) != 0) throw damaged_chunk("blosc");
    return undo_blosc(in, bounded(announced, in));
  });
}

std::size_t zstd_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) {
    return undo_zstd(in, bounded(ZSTD_getFrameContentSize(in.data(), in.size()), in));
  });
}

std::size_t bzip2_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) { return bunzip2(in, largest_output(in)); });
}

std::size_t lzo_decoder(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t* size, void** buf) {
  return run_decoder(flags, nbytes, size, buf, [](std::span<const std::byte> in) { return undo_lzo_up_to(in, largest_output(in)); });
}

}  // namespace

void register_decoders(hid_t creation_properties) {
  static const H5Z_class2_t classes[] = {
      {H5Z_CLASS_T_VERS, bzip2_filter, 0, 1, "bzip2", nullptr, nullptr, bzip2_decoder},
      {H5Z_CLASS_T_VERS, lzo_filter, 0, 1, "lzo", nullptr, nullptr, lzo_decoder},
      {H5Z_CLASS_T_VERS, lzf_filter, 0, 1, "lzf", nullptr, nullptr, lzf_decoder},
      {H5Z_CLASS_T_VERS, lz4_filter, 0, 1, "lz4", nullptr, nullptr, lz4_decoder},
      {H5Z_CLASS_T_VERS, bitshuffle_filter, 0, 1, "bitshuffle", nullptr, nullptr, bitshuffle_decoder},
      {H5Z_CLASS_T_VERS, blosc_filter, 0, 1, "blosc", nullptr, nullptr, blosc_decoder},
      {H5Z_CLASS_T_VERS, zstd_filter, 0, 1, "zstd", nullptr, nullptr, zstd_decoder},
  };
  // a virtual dataset has the filters of others
  const bool all = H5Pisa_class(creation_properties, H5P_DATASET_CREATE) > 0 && H5Pget_layout(creation_properties) == H5D_VIRTUAL;
  if (!all && H5Pget_nfilters(creation_properties) <= 0) return;
  for (const H5Z_class2_t& c : classes) {
    unsigned flags = 0;
    std::size_t no_values = 0;
    const bool wanted = all || H5Pget_filter_by_id2(creation_properties, c.id, &flags, &no_values, nullptr, 0, nullptr, nullptr) >= 0;
    if (wanted && H5Zfilter_avail(c.id) <= 0) H5Zregister(&c);  // a plugin of the user's goes first
  }
  H5Eclear2(H5E_DEFAULT);
}

buffer undo_lzf(std::span<const std::byte> in, std::size_t size) {
  as_int(in.size(), "lzf");
  as_int(size, "lzf");
  buffer out(size);
  // 0 says that it failed, or that there was nothing
  const unsigned n = in.empty() ? 0 : lzf_decompress(in.data(), static_cast<unsigned>(in.size()), out.data(), static_cast<unsigned>(size));
  if (n == 0 && !in.empty()) throw damaged_chunk("lzf: it cannot be decoded to the chunk's length");
  out.resize(n);
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

buffer undo_bzip2(std::span<const std::byte> in, std::size_t size) {
  buffer out = bunzip2(in, size);
  if (out.size() != size) throw damaged_chunk("bzip2: it makes less than the chunk");
  return out;
}

buffer undo_bzip2_up_to(std::span<const std::byte> in, std::size_t most) { return bunzip2(in, most); }

std::size_t announced_size(const filter& f, std::span<const std::byte> in) {
  std::size_t size = 0;
  auto head = in;
  switch (f.id) {
    case lz4_filter: return static_cast<std::size_t>(big(head, 8, "lz4"));
    case zstd_filter: return static_cast<std::size_t>(ZSTD_getFrameContentSize(in.data(), in.size()));  // not known, or no frame: the largest numbers
    case blosc_filter:
      if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &size) != 0) throw damaged_chunk("blosc: no buffer of Blosc 1");
      return size;
    case bitshuffle_filter: return f.values.size() > 4 && f.values[4] != 0 ? static_cast<std::size_t>(big(head, 8, "bitshuffle")) : in.size();
    default: return static_cast<std::size_t>(-1);
  }
}

buffer bzip2_stream(std::span<const std::byte> bytes, int level) {
  const auto size = static_cast<unsigned>(as_int(bytes.size(), "bzip2"));
  buffer out(bytes.size() + bytes.size() / 100 + 600);  // bzip2's own bound
  auto made = static_cast<unsigned>(out.size());
  if (BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &made, const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), size, level, 0, 0) != BZ_OK) {
    throw std::bad_alloc();
  }
  out.resize(made);
  return out;
}

namespace {

void put_length(buffer& out, std::size_t size) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(size >> (8 * i));
}

}  // namespace

buffer numcodecs_lz4(std::span<const std::byte> bytes) {
  if (bytes.size() > LZ4_MAX_INPUT_SIZE) throw damaged_chunk("a chunk of 2 GiB, which LZ4 does not take");
  buffer out(4 + static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(bytes.size()))));
  put_length(out, bytes.size());
  const int n = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(out.data() + 4), static_cast<int>(bytes.size()),
                                     static_cast<int>(out.size() - 4));
  if (n <= 0) throw std::runtime_error("LZ4 cannot compress a chunk");
  out.resize(4 + static_cast<std::size_t>(n));
  return out;
}

std::optional<buffer> numcodecs_lz4_of(std::span<const std::byte> in, std::size_t size) {
  const std::uint64_t total = big(in, 8, "lz4"), block = big(in, 4, "lz4");
  if (total != size) throw damaged_chunk("lz4: it announces another length than the chunk");
  if (size == 0 || size > LZ4_MAX_INPUT_SIZE || block < size) return {};
  const auto piece = take(in, big(in, 4, "lz4"), "lz4");
  if (piece.size() == size) return {};  // stored
  buffer out(4 + piece.size());
  put_length(out, size);
  std::copy(piece.begin(), piece.end(), out.begin() + 4);
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

buffer zstd_frame(std::span<const std::byte> bytes, int level) {
  buffer out(ZSTD_compressBound(bytes.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(n)) throw std::runtime_error("zstd cannot compress a chunk");
  out.resize(n);
  return out;
}

buffer blosc_stored(std::span<const std::byte> bytes, std::size_t typesize) {
  buffer out(bytes.size() + BLOSC_MAX_OVERHEAD);
  const int n = bytes.size() > BLOSC_MAX_BUFFERSIZE ? -1
                                                    : blosc_compress_ctx(0, BLOSC_NOSHUFFLE, typesize > BLOSC_MAX_TYPESIZE ? 1 : typesize, bytes.size(),
                                                                         bytes.data(), out.data(), out.size(), BLOSC_BLOSCLZ_COMPNAME, 0, 1);
  if (n <= 0) throw std::runtime_error("blosc cannot hold a chunk");
  out.resize(static_cast<std::size_t>(n));
  return out;
}

void check_blosc(std::span<const std::byte> in, std::size_t size) {
  std::size_t announced = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH || std::to_integer<unsigned>(in[0]) != BLOSC_VERSION_FORMAT ||
      blosc_cbuffer_validate(in.data(), in.size(), &announced) != 0) {
    throw damaged_chunk("blosc: no buffer of Blosc 1");
  }
  if (announced != size) throw damaged_chunk("blosc: it announces another length than the chunk");
  const auto flags = std::to_integer<unsigned>(in[2]);
  if ((flags & BLOSC_MEMCPYED) == 0 && flags >> 5 == BLOSC_SNAPPY_FORMAT) throw damaged_chunk("blosc: compressed with snappy, which Zarr readers do not have");
}

buffer undo_blosc(std::span<const std::byte> in, std::size_t size) {
  std::size_t announced = 0;
  if (in.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in.data(), in.size(), &announced) != 0) throw damaged_chunk("blosc: no buffer of Blosc 1");
  if (announced != size) throw damaged_chunk("blosc: it announces another length than the chunk");
  buffer out(size);
  if (blosc_decompress_ctx(in.data(), out.data(), out.size(), 1) != as_int(size, "blosc")) throw damaged_chunk("blosc: it cannot be decoded");
  return out;
}

}  // namespace zarrbits::conversion
