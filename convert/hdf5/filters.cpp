// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/filters.hpp"

#include "convert/codecs/lzo.hpp"
#include "convert/hdf5/bit_filters.hpp"
#include "convert/hdf5/decompressors.hpp"
#include "convert/hdf5/foreign_filters.hpp"
#include "convert/text/names.hpp"

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace zarrbits::conversion {

namespace {

const type_tree& number_of(const type_tree& t) { return t.kind == type_class::array ? number_of(t.element()) : t; }

std::size_t component_size(const type_tree& t) {
  if (t.kind == type_class::complex) return t.size / 2;
  return t.size;
}

// Kept by each thread: to allocate its window takes longer than to inflate a small chunk.
struct inflater {
  z_stream z{};
  inflater() {
    if (inflateInit(&z) != Z_OK) throw std::bad_alloc();
  }
  ~inflater() { inflateEnd(&z); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
};

// Of exactly `size` bytes, or of that or fewer.
buffer inflate_all(std::span<const std::byte> zlib, std::size_t size, std::size_t& used, bool fewer = false) {
  buffer out(size);
  thread_local inflater kept;
  z_stream& z = kept.z;
  inflateReset(&z);
  z.avail_in = z.avail_out = 0;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(zlib.data()));
  std::size_t in_left = zlib.size(), out_left = size;
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  Bytef one_more = 0;  // a stream that makes more than `size` bytes is seen by its writing here
  bool spare = false;
  int status = Z_OK;
  constexpr std::size_t piece = 1U << 30;
  while (status == Z_OK || status == Z_BUF_ERROR) {
    if (z.avail_in == 0 && in_left > 0) {
      z.avail_in = static_cast<uInt>(std::min(piece, in_left));
      in_left -= z.avail_in;
    }
    if (z.avail_out == 0) {
      if (out_left > 0) {
        z.avail_out = static_cast<uInt>(std::min(piece, out_left));
        out_left -= z.avail_out;
      } else if (!spare) {
        spare = true;
        z.next_out = &one_more;
        z.avail_out = 1;
      }
    }
    status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR && ((z.avail_in == 0 && in_left == 0) || (z.avail_out == 0 && spare))) break;
    if (status == Z_OK && spare && z.avail_out == 0) break;
  }
  bool exact = status == Z_STREAM_END && ((spare && z.avail_out == 1) || (!spare && z.avail_out == 0 && out_left == 0));
  if (fewer && status == Z_STREAM_END && !spare) {
    out.resize(size - out_left - z.avail_out);
    exact = true;
  }
  used = zlib.size() - in_left - z.avail_in;
  const std::string why = z.msg ? z.msg : status == Z_STREAM_END ? "another length than the chunk" : "it ends too early or makes too much";
  if (!exact) throw damaged_chunk("deflate: " + why);
  return out;
}

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t a = 0, b = 0;
  std::size_t words = bytes.size() / 2, at = 0;
  const auto fold = [](std::uint32_t v) { return (v & 0xFFFF) + (v >> 16); };
  while (words) {
    std::size_t n = std::min<std::size_t>(words, 360);
    words -= n;
    for (; n; --n, at += 2) {
      a += std::to_integer<std::uint32_t>(bytes[at]) << 8 | std::to_integer<std::uint32_t>(bytes[at + 1]);
      b += a;
    }
    a = fold(a);
    b = fold(b);
  }
  if (bytes.size() % 2) {
    a += std::to_integer<std::uint32_t>(bytes.back()) << 8;
    b += a;
    a = fold(a);
    b = fold(b);
  }
  return fold(b) << 16 | fold(a);
}

buffer unshuffle(const buffer& in, std::size_t element) {
  if (element <= 1 || in.size() < element) return in;
  const std::size_t n = in.size() / element;
  buffer out(in.size());
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < n; ++i) out[i * element + b] = in[b * n + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * element), in.end(), out.begin() + static_cast<std::ptrdiff_t>(n * element));
  return out;
}

// The number type in which our packbits filter holds this stored type: components, with HDF5's zeros in the pad bits.
data_type packed_type(const type_tree& number) {
  const std::size_t size = component_size(number);
  const bool extend = number.kind == type_class::integer && number.is_signed && number.as_stored;
  return (number.kind == type_class::boolean ? std::string("bool") : (extend ? "int" : "uint") + std::to_string(8 * size));
}

std::size_t packed_size(const packbits_layout& layout, std::size_t size, const type_tree& number) {
  const std::size_t bits = size / component_size(number) * layout.bits;
  return bits / 8 + (bits % 8 != 0) + (layout.padding != 0);
}

buffer undo_packbits(const filter& f, buffer in, std::size_t size, const type_tree& stored) {
  const type_tree& number = number_of(stored);
  const auto layout = packbits_of(f, number);
  if (!layout) throw damaged_chunk("packbits: parameters that this version does not know");
  // Values as they are under a mask that does not say so: parallel HDF5 stores chunks that did not fit this way. The filter reads them alike.
  const bool cuts = (f.values[1] >> 2 & 3) == 1;
  if (in.size() == size && packed_size(*layout, size, number) != size && !cuts) return in;
  if (layout->msb_first) {
    const std::size_t first = layout->padding == 1 ? 1 : 0, last = in.size() - (layout->padding == 2 && !in.empty() ? 1 : 0);
    for (std::size_t i = first; i < last; ++i) {
      auto b = std::to_integer<unsigned>(in[i]);
      b = (b & 0xF0) >> 4 | (b & 0x0F) << 4;
      b = (b & 0xCC) >> 2 | (b & 0x33) << 2;
      b = (b & 0xAA) >> 1 | (b & 0x55) << 1;
      in[i] = static_cast<std::byte>(b);
    }
  }
  const data_type type = packed_type(number);
  const codec c = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding), .first_bit = layout->first_bit,
                                  .last_bit = layout->first_bit + layout->bits - 1});
  buffer out(size);
  if (const auto r = decode_chunk(c, in, out); !r) throw damaged_chunk(c.explain(r.failure));
  if (number.big_endian && type.component_size() > 1) {
    const codec swap = bytes(type, {.endian = endian::big});
    (void)encode_chunk(swap, out, out);  // whole numbers, of which bytes refuses none
  }
  return out;
}

buffer undo_bytes(const filter& f, buffer in, const type_tree& stored) {
  const type_tree& number = number_of(stored);
  const bool big = !f.values.empty() && f.values[0] == 1;
  const std::size_t unit = component_size(number);
  if (has_byte_order(number) && big != number.big_endian) {
    for (std::size_t i = 0; i + unit <= in.size(); i += unit) {
      std::reverse(in.begin() + static_cast<std::ptrdiff_t>(i), in.begin() + static_cast<std::ptrdiff_t>(i + unit));
    }
  }
  return in;
}

bool is_compression(const filter& f) {
  return f.id != H5Z_FILTER_SHUFFLE && f.id != H5Z_FILTER_FLETCHER32 && f.id != packbits_filter && f.id != bytes_filter;
}

bool is_number(const type_tree& t) {
  return t.kind == type_class::boolean || t.kind == type_class::integer || t.kind == type_class::enumeration ||
         t.kind == type_class::floating || t.kind == type_class::complex;
}

bool undoable(const filter& f, const type_tree& stored) {
  switch (f.id) {
    case H5Z_FILTER_DEFLATE:
    case H5Z_FILTER_FLETCHER32:
    case blosc_filter:
    case bzip2_filter:
    case lzf_filter:
    case lzo_filter:
    case lz4_filter:
    case zstd_filter:
    case H5Z_FILTER_NBIT:
    case H5Z_FILTER_SCALEOFFSET: return true;
    case bitshuffle_filter: return f.values.size() >= 5 && (f.values[4] == 0 || f.values[4] == 2 || f.values[4] == 3);
    case H5Z_FILTER_SHUFFLE: return f.values.size() == 1;
    case packbits_filter: return is_number(number_of(stored)) && packbits_of(f, number_of(stored)).has_value();
    case bytes_filter: return is_number(number_of(stored)) && stored.as_stored;
    default: return false;
  }
}

std::string filter_name(const filter& f) {
  switch (f.id) {
    case H5Z_FILTER_DEFLATE: return "deflate";
    case H5Z_FILTER_SHUFFLE: return "shuffle";
    case H5Z_FILTER_FLETCHER32: return "fletcher32";
    case H5Z_FILTER_SZIP: return "szip";
    case H5Z_FILTER_NBIT: return "nbit";
    case H5Z_FILTER_SCALEOFFSET: return "scaleoffset";
    case packbits_filter: return "packbits";
    case bytes_filter: return "bytes";
    default: return std::to_string(f.id) + (f.name.empty() ? "" : " (" + shown(f.name) + ")");
  }
}

}  // namespace

bool pipeline::compresses() const {
  return std::any_of(filters.begin(), filters.end(), is_compression);
}

bool pipeline::checks_only() const {
  return std::all_of(filters.begin(), filters.end(), [](const filter& f) { return f.id == H5Z_FILTER_FLETCHER32; });
}

bool pipeline::undoable(const type_tree& stored) const {
  const h5::lock one_thread;
  return std::all_of(filters.begin(), filters.end(), [&](const filter& f) { return conversion::undoable(f, stored) || foreign_filter(f.id); });
}

std::string pipeline::missing(const type_tree& stored, unsigned mask) const {
  const h5::lock one_thread;
  std::string names;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const filter& f = filters[i];
    if (i < 32 && ((mask >> i) & 1)) continue;
    if (conversion::undoable(f, stored) || foreign_filter(f.id)) continue;
    names += (names.empty() ? "" : ", ") + filter_name(f);
  }
  return names;
}

std::string pipeline::text() const {
  std::string names;
  for (const filter& f : filters) names += (names.empty() ? "" : ", ") + filter_name(f);
  return names;
}

int pipeline::shuffles() const {
  for (const filter& f : filters) {
    if (f.id == bitshuffle_filter) return 2;
    if (f.id == H5Z_FILTER_SHUFFLE && f.values.size() == 1 && f.values[0] > 1) return 1;
  }
  return 0;
}

int pipeline::gzip_level() const {
  for (const filter& f : filters) {
    if (f.id == H5Z_FILTER_DEFLATE && !f.values.empty() && f.values[0] >= 1 && f.values[0] <= 9) return static_cast<int>(f.values[0]);
  }
  return 6;  // zlib's own choice
}

namespace {

constexpr std::size_t most_filter_values = 65535;  // that a file can hold

}  // namespace

pipeline read_pipeline(hid_t dcpl) {
  pipeline p;
  const int n = H5Pget_nfilters(dcpl);
  h5::check(n, "count the filters");
  for (int i = 0; i < n; ++i) {
    filter f;
    unsigned flags = 0, config = 0;
    std::size_t count = 64;
    char name[256] = "";
    // a file may claim any number of values; libhdf5 fills in what there is room for and tells the number
    for (std::size_t room = 0; room < count && room < most_filter_values;) {
      room = std::min(count, most_filter_values);
      f.values.resize(room);
      count = room;
      f.id = H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &count, f.values.data(), sizeof name - 1, name, &config);
      if (f.id < 0) h5::fail("tell a filter");
    }
    f.values.resize(std::min(count, most_filter_values));
    f.name = name;
    p.filters.push_back(std::move(f));
  }
  H5Eclear2(H5E_DEFAULT);
  if (H5Pget_layout(dcpl) == H5D_CHUNKED) {
    unsigned options = 0;
    if (H5Pget_chunk_opts(dcpl, &options) >= 0) p.partial_unfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  }
  return p;
}

void drop_fletcher32(buffer& chunk) {
  if (chunk.size() < 4) throw damaged_chunk("fletcher32: shorter than its checksum");
  const std::size_t n = chunk.size() - 4;
  std::uint32_t stored = 0;
  for (unsigned i = 0; i < 4; ++i) stored |= std::to_integer<std::uint32_t>(chunk[n + i]) << (8 * i);
  const std::uint32_t sum = fletcher32(std::span(chunk).first(n));
  // libraries before 1.6.3 wrote the bytes of each half in the other order on little-endian machines
  const std::uint32_t older = (sum & 0x00FF00FF) << 8 | (sum & 0xFF00FF00) >> 8;
  if (stored != sum && stored != older) throw damaged_chunk("fletcher32: the checksum is wrong");
  chunk.resize(n);
}

void append_fletcher32(buffer& chunk) {
  const std::uint32_t sum = fletcher32(chunk);
  for (unsigned i = 0; i < 4; ++i) chunk.push_back(static_cast<std::byte>(sum >> (8 * i)));
}

namespace {

// Bytes of a chunk of `size` when it came to filter `i`: checksums and our packbits change the length, and tell how. Where a compression comes
// before, only that one knows: then so many at most, `exact` is false.
std::size_t size_before(const pipeline& p, std::size_t i, unsigned mask, std::size_t size, const type_tree& type, bool& exact) {
  exact = true;
  for (std::size_t j = 0; j < i; ++j) {
    if (j < 32 && (mask >> j & 1)) continue;
    if (p.filters[j].id == H5Z_FILTER_FLETCHER32) size += 4;
    if (is_compression(p.filters[j])) {
      exact = false;
      size += size / 8 + 4096;  // none that is of use makes more of what it cannot make smaller
    }
    if (p.filters[j].id == packbits_filter) {
      const type_tree& number = number_of(type);
      const auto layout = packbits_of(p.filters[j], number);
      if (!layout) throw damaged_chunk("packbits: parameters that this version does not know");
      size = packed_size(*layout, size, number);
    }
  }
  return size;
}

buffer undo_one(const filter& f, buffer chunk, std::size_t here, bool exact, std::size_t size, const type_tree& type) {
  // what is announced in a header, or else the most that there can be
  const auto announced = [&] { return exact ? here : std::min(here, announced_size(f, chunk)); };
  switch (f.id) {
    case H5Z_FILTER_FLETCHER32: drop_fletcher32(chunk); return chunk;
    case H5Z_FILTER_SHUFFLE: return unshuffle(chunk, f.values.at(0));
    case H5Z_FILTER_DEFLATE: {
      std::size_t used = 0;
      return inflate_all(chunk, here, used, !exact);
    }
    case H5Z_FILTER_NBIT: return undo_nbit(f, std::move(chunk), here);
    case H5Z_FILTER_SCALEOFFSET: return undo_scaleoffset(f, std::move(chunk), here);
    case blosc_filter: return undo_blosc(chunk, announced());
    case bzip2_filter: return exact ? undo_bzip2(chunk, here) : undo_bzip2_up_to(chunk, here);
    case lzf_filter: return undo_lzf(chunk, here);
    case lzo_filter: return exact ? undo_lzo(chunk, here) : undo_lzo_up_to(chunk, here);
    case lz4_filter: return undo_lz4(chunk, announced());
    case zstd_filter: return undo_zstd(chunk, announced());
    case bitshuffle_filter: return undo_bitshuffle(f.values, chunk, announced());
    case packbits_filter: return undo_packbits(f, std::move(chunk), size, type);
    case bytes_filter: return undo_bytes(f, std::move(chunk), type);
    default: return undo_foreign(f, chunk, here);
  }
}

buffer undo_as_masked(const pipeline& p, unsigned mask, buffer chunk, std::size_t size, const type_tree& type) {
  for (std::size_t i = p.filters.size(); i-- > 0;) {
    if (i < 32 && (mask >> i & 1)) continue;
    bool exact = true;
    const std::size_t here = size_before(p, i, mask, size, type, exact);
    chunk = undo_one(p.filters[i], std::move(chunk), here, exact, size, type);
    if (exact ? chunk.size() != here && is_compression(p.filters[i]) : chunk.size() > here) {
      throw damaged_chunk("filter " + filter_name(p.filters[i]) + ": it holds " + counted(chunk.size(), "byte") + " instead of " + std::to_string(here));
    }
  }
  if (chunk.size() != size) {
    throw damaged_chunk("it holds " + counted(chunk.size(), "byte") + " instead of " + std::to_string(size));
  }
  return chunk;
}

}  // namespace

buffer undo(const pipeline& p, unsigned mask, buffer chunk, std::size_t size, const type_tree& type) {
  // A compression after packbits may hold values as they are, too. Which it is shows when it is undone.
  const bool either = !p.empty() && p.filters[0].id == packbits_filter && !(mask & 1) &&
                      std::any_of(p.filters.begin(), p.filters.end(), [](const filter& f) { return is_compression(f); });
  if (!either) return undo_as_masked(p, mask, std::move(chunk), size, type);
  try {
    return undo_as_masked(p, mask, chunk, size, type);
  } catch (const damaged_chunk& e) {
    const damaged_chunk first = e;
    try {
      return undo_as_masked(p, mask | 1, std::move(chunk), size, type);
    } catch (const damaged_chunk&) {
      throw first;
    }
  }
}

buffer zlib_to_gzip(std::span<const std::byte> zlib, std::size_t size, buffer& plain) {
  if (zlib.size() < 6 || (std::to_integer<unsigned>(zlib[1]) & 0x20)) throw damaged_chunk("deflate: no zlib stream");
  std::size_t used = 0;
  plain = inflate_all(zlib, size, used);  // checks the Adler-32 too
  uLong crc = crc32(0, nullptr, 0);
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t n = std::min<std::size_t>(plain.size() - at, 1U << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(plain.data() + at), static_cast<uInt>(n));
    at += n;
  }
  constexpr unsigned char header[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF};
  buffer out(sizeof header + (used - 6) + 8);
  std::memcpy(out.data(), header, sizeof header);
  std::memcpy(out.data() + sizeof header, zlib.data() + 2, used - 6);
  std::byte* tail = out.data() + out.size() - 8;
  for (unsigned i = 0; i < 4; ++i) {
    tail[i] = static_cast<std::byte>(crc >> (8 * i));
    tail[4 + i] = static_cast<std::byte>(size >> (8 * i));
  }
  return out;
}

buffer gzip_member(std::span<const std::byte> bytes, int level) {
  z_stream z{};
  if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  buffer out(deflateBound(&z, static_cast<uLong>(bytes.size())));
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  std::size_t in_left = bytes.size(), out_left = out.size();
  constexpr std::size_t piece = 1U << 30;
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      z.avail_in = static_cast<uInt>(std::min(piece, in_left));
      in_left -= z.avail_in;
    }
    if (z.avail_out == 0) {
      z.avail_out = static_cast<uInt>(std::min(piece, out_left));
      out_left -= z.avail_out;
    }
    status = deflate(&z, in_left == 0 ? Z_FINISH : Z_NO_FLUSH);
  }
  out.resize(out.size() - out_left - z.avail_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib cannot compress a chunk");
  return out;
}

std::optional<packbits_layout> packbits_of(const filter& f, const type_tree& number) {
  if (f.values.size() < 4 || !is_number(number) || number.bit_offset != 0) return {};
  const unsigned bits = f.values[0], options = f.values[1], first = f.values[2];
  const auto width = static_cast<unsigned>(number.kind == type_class::boolean ? 1 : 8 * component_size(number));
  if (bits == 0 || bits > width || first > width - bits || (options & 3) == 3 || f.values[3] != 0 || (options & ~0x1FU)) return {};
  if (!number.as_stored && (number.kind != type_class::integer || number.stored_size != number.size)) return {};
  return packbits_layout{first, bits, options & 3, (options & 16) != 0};
}

}  // namespace zarrbits::conversion
