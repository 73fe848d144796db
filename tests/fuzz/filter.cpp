// SPDX-License-Identifier: BSL-1.0
//
// libFuzzer over the callbacks of both filters: chunks and cd_values are the input's. Aborts where a filter breaks what HDF5
// relies on; the sanitizers see reads and writes outside the buffers, which are exactly as long as HDF5 says.
//
// An input: [0] flags (see below) [1] number of cd_values [2..3] room in the buffer beyond its contents, then the cd_values as
// little-endian 32-bit numbers, then the chunk.
#include "fuzz.hpp"

#include "filter/bytes.hpp"
#include "filter/packbits.hpp"
#include "filter/plugins.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace zarrbits::filter;
using fuzz::require;

namespace {

constexpr unsigned input_bytes = 1, input_reverse = 2, input_optional = 4, input_repair = 8;

// What a chunk may become: more is refused, as HDF5 does with chunks of 4 GiB, lest the fuzzer measure the allocator.
constexpr std::uint64_t largest = std::uint64_t{1} << 22;

std::size_t result_size(bool is_bytes, bool reverse, std::size_t n, const unsigned* cd) {
  sentence why;
  if (is_bytes) {
    bytes_chunk c;
    return load(n, cd, c, why) ? static_cast<std::size_t>(c.chunk_size) + (c.checksum_before ? checksum_size : 0) : 0;
  }
  packbits_chunk c;
  if (!load(n, cd, c, why)) return 0;
  if (c.one_size && !reverse) return c.filled_size();
  return static_cast<std::size_t>(reverse ? c.decoded_size : c.encoded_size) + c.checksum_bytes();
}

// The entries that are computed from others, made right: else hardly any mutation gets past the first checks.
void repair(unsigned cd[], std::size_t n, std::size_t chunk, bool reverse) {
  if (n != packbits_stored) return;
  packbits_chunk c;
  const unsigned size = 1u << (cd[7] & 3);
  c.format.size = static_cast<std::uint8_t>(size);
  c.format.is_bool = (cd[7] >> 18 & 1) != 0 && size == 1;
  c.format.type_bits = static_cast<std::uint8_t>(c.format.is_bool ? 1 : 1 + (cd[7] >> 8) % (8 * size));
  c.format.bits = static_cast<std::uint8_t>(1 + cd[0] % c.format.type_bits);
  c.format.first_bit = static_cast<std::uint8_t>(
      c.format.type_bits < 8 * size ? c.format.type_bits - c.format.bits : cd[2] % (c.format.type_bits - c.format.bits + 1u));
  c.format.is_signed = (cd[7] >> 17 & 1) != 0;
  c.format.swap_memory = size > 1 && (cd[7] >> 16 & 1) != 0;
  c.format.msb_first = c.format.is_bool && (cd[1] & 16) != 0;
  c.count_byte = static_cast<zarrbits::padding>(cd[1] % 3);
  c.policy = static_cast<range_policy>(cd[1] >> 2 & 3);
  c.checksum_before = (cd[7] >> 19 & 1) != 0;
  c.format.truncate = c.policy == range_policy::truncate;
  c.one_size = (cd[7] >> 20 & 1) != 0 && c.policy != range_policy::error;
  c.components = 1 + cd[6] % 3;
  chunk -= std::min(chunk, c.checksum_bytes());
  const std::uint64_t body = chunk - (chunk > 0 && c.count_byte != zarrbits::padding::none && reverse);
  c.elements = (reverse ? body * 8 / c.format.bits : body / size) / c.components;
  std::uint64_t encoded = 0;
  if (zarrbits::detail::encoded_size(c.layout(), c.elements, encoded)) c.encoded_size = encoded;
  store(c, cd);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("ZARRBITS_HDF5_LOG", "0", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const bool is_bytes = (data[0] & input_bytes) != 0, reverse = (data[0] & input_reverse) != 0;
  const unsigned flags = (reverse ? flag_reverse : 0) | (data[0] & input_optional ? flag_optional : 0);
  const std::size_t n = data[1] % 24, spare = data[2] | static_cast<std::size_t>(data[3]) << 8;
  if (size < 4 + 4 * n) return 0;
  const std::unique_ptr<unsigned[]> cd(new unsigned[n]);  // exactly n: one read too many is seen
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint8_t* p = data + 4 + 4 * i;
    const auto byte = [p](int at) { return static_cast<unsigned>(p[at]) << (8 * at); };
    cd[i] = byte(0) | byte(1) | byte(2) | byte(3);
  }
  const std::uint8_t* chunk = data + 4 + 4 * n;
  const std::size_t nbytes = size - 4 - 4 * n;
  if (!is_bytes && (data[0] & input_repair)) repair(cd.get(), n, nbytes, reverse);
  const std::size_t wanted = result_size(is_bytes, reverse, n, cd.get());
  if (wanted > largest) return 0;

  const std::size_t room = nbytes + spare;
  void* buf = std::malloc(room ? room : 1);
  if (!buf) return 0;
  if (nbytes) std::memcpy(buf, chunk, nbytes);
  void* const before = buf;
  std::size_t buf_size = room;
  const filter_class& f = is_bytes ? bytes_class : packbits_class;
  const std::size_t result = f.filter(flags, n, cd.get(), nbytes, &buf_size, &buf);
  if (result == 0) {
    require(buf == before && buf_size == room, "a failing filter leaves the pointers");
    require(nbytes == 0 || std::memcmp(buf, chunk, nbytes) == 0, "a failing filter leaves the contents");
  } else {
    const bool given = n <= (is_bytes ? 1u : 4u);  // parameters that were never resolved
    const bool raw = !given && !is_bytes && result == nbytes && std::memcmp(buf, chunk, nbytes) == 0;
    require(given ? result == nbytes : result == wanted || raw, "the result has the size that the parameters say");
    require(buf_size >= result, "the buffer is as large as its contents");
    unsigned sum = 0;  // every byte of the result is there, and was written
    for (std::size_t i = 0; i < result; ++i) sum += static_cast<const unsigned char*>(buf)[i];
    __asm__ volatile("" : : "r"(sum));
    if (!reverse) {  // encoded data decodes, to the same values unless it was cut
      const std::size_t back = f.filter(flag_reverse, n, cd.get(), result, &buf_size, &buf);
      require(back == nbytes, "what was encoded decodes");
      const bool cut = !is_bytes && n > 1 && (cd[1] >> 2 & 3) == 1;
      packbits_chunk c;
      sentence why;
      const bool lossless = is_bytes || (load(n, cd.get(), c, why) && !c.format.zero_above && !cut);
      if (lossless) require(std::memcmp(buf, chunk, nbytes) == 0, "what was encoded comes back");
    }
  }
  std::free(buf);
  return 0;
}
