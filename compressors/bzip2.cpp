// SPDX-License-Identifier: BSL-1.0
#include "compressors/bzip2.hpp"

#include "compressors/byte_reader.hpp"

#include <algorithm>
#include <bzlib.h>
#include <memory>
#include <new>

namespace zarrbits::compressors {

namespace {

// Appends the bytes of the stream at the front of `in`, and removes the stream.
void append_stream(std::span<const std::byte>& in, std::size_t max_size, buffer& out, std::size_t& used) {
  bz_stream z{};
  if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK) throw std::bad_alloc();
  const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> end(&z, &BZ2_bzDecompressEnd);
  z.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
  z.avail_in = static_cast<unsigned>(checked_int(in.size(), "bzip2"));
  for (int status = BZ_OK; status != BZ_STREAM_END;) {
    if (used > max_size) throw limit_exceeded("bzip2: it decodes to more than the chunk");
    if (used == out.size()) out.resize(std::min(std::max<std::size_t>(2 * used, 64 << 10), max_size + 1));
    const auto capacity = static_cast<unsigned>(std::min<std::size_t>(out.size() - used, 1U << 30));
    z.next_out = reinterpret_cast<char*>(out.data() + used);
    z.avail_out = capacity;
    const unsigned previous_in = z.avail_in;
    status = BZ2_bzDecompress(&z);
    if (status != BZ_OK && status != BZ_STREAM_END) throw corrupt_chunk("bzip2: a stream that cannot be decoded");
    if (status == BZ_OK && z.avail_out == capacity && z.avail_in == previous_in) throw corrupt_chunk("bzip2: it ends too early");
    used += capacity - z.avail_out;
  }
  if (used > max_size) throw limit_exceeded("bzip2: it decodes to more than the chunk");
  in = in.last(z.avail_in);
}

}  // namespace

buffer decompress_bzip2_up_to(std::span<const std::byte> in, std::size_t max_size) {
  buffer out;
  std::size_t used = 0;
  append_stream(in, max_size, out, used);
  out.resize(used);
  return out;
}

buffer decompress_bzip2_streams_up_to(std::span<const std::byte> in, std::size_t max_size) {
  buffer out;
  std::size_t used = 0;
  do append_stream(in, max_size, out, used);
  while (!in.empty());
  out.resize(used);
  return out;
}

buffer decompress_bzip2(std::span<const std::byte> in, std::size_t size) {
  buffer out = decompress_bzip2_up_to(in, size);
  if (out.size() != size) throw corrupt_chunk("bzip2: it decodes to less than the chunk");
  return out;
}

buffer bzip2_stream(std::span<const std::byte> bytes, int level) {
  const auto size = static_cast<unsigned>(checked_int(bytes.size(), "bzip2"));
  buffer out(bytes.size() + bytes.size() / 100 + 600);  // bzip2's own bound
  auto written = static_cast<unsigned>(out.size());
  if (BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &written,
                               const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), size, level, 0, 0) != BZ_OK) {
    throw std::bad_alloc();
  }
  out.resize(written);
  return out;
}

}  // namespace zarrbits::compressors
