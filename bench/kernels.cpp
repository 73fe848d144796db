// SPDX-License-Identifier: BSL-1.0
//
// Every kernel table that this CPU has, through the functions that chunks, streams and the HDF5 plugins go through. Names:
//
//   swap/2  swap_inplace/4  swap/complex64            bytes of a component; checks nothing, since nothing can be lost
//   encode/bool  encode/bool/msb  decode/bool         1 bit of a bool; msb: numcodecs' order, here without its count byte
//   encode/16/12  decode/16/12/signed                 bits of the component in memory / bits kept
//   encode/16/10/first2                               ... from bit 2 on
//   encode/16/12/truncate                             not checked; all others are
//   checked/16/12                                     encode/16/12, its ratio is to encode/16/12/truncate
//   limit/read  limit/write  limit/copy               not kernels, see limits.hpp
//
// The widths that the goals name are measured at all sizes, all others at 64 KiB.
//
#include "core/kernels/kernels.hpp"
#include "bench/data.hpp"
#include "bench/harness.hpp"
#include "bench/limits.hpp"
#include "core/codec_state.hpp"

#include <zarrbits/zarrbits.hpp>

#include <bit>
#include <cstring>
#include <string>

namespace {

using namespace zarrbits;
using bench::decoded_buffer, bench::encoded_buffer, bench::other_buffer;

enum class direction { encode, decode, in_place };

// A codec without count byte on one table, as encode_chunk and decode_chunk see it.
struct work {
  codec c;
  detail::layout layout;
  std::size_t elements, bytes, encoded;

  work(const codec& made, const detail::kernel_table& k, std::size_t decoded_bytes)
      : c(made), layout(detail::access::state(c).layout), elements(decoded_bytes / c.element_size()), bytes(decoded_bytes) {
    layout.kernels = &k;
    layout.count_byte = padding::none;
    std::uint64_t size = 0;
    detail::encoded_size(layout, elements, size);
    encoded = size;
  }
  bool encode(const std::byte* in, std::byte* out) const { return !detail::encode_elements(layout, elements, in, out); }
  bool decode(const std::byte* in, std::byte* out) const {
    return !detail::decode_elements(layout, elements, {in, encoded}, out);
  }
  // the same by the portable kernels, on which the tests hold a reference
  work portable() const { return {c, detail::portable_kernels, bytes}; }
};

bench::subject prepare(const work& w, direction d) {
  bench::fill(w.layout.runs[0].format, decoded_buffer(), w.bytes);
  if (d == direction::in_place) {
    std::memcpy(encoded_buffer(), decoded_buffer(), w.bytes);
    return {.run = [w] { return w.encode(encoded_buffer(), encoded_buffer()); }};
  }
  if (d == direction::encode)
    return {.run = [w] { return w.encode(decoded_buffer(), encoded_buffer()); },
            .verify =
                [w] {
      return w.portable().decode(encoded_buffer(), other_buffer()) && std::memcmp(other_buffer(), decoded_buffer(), w.bytes) == 0;
            }};
  w.portable().encode(decoded_buffer(), encoded_buffer());
  return {.run = [w] { return w.decode(encoded_buffer(), other_buffer()); },
          .verify = [w] { return std::memcmp(other_buffer(), decoded_buffer(), w.bytes) == 0; }};
}

void add(const std::string& name, const codec& c, direction d, bool all_sizes = true) {
  for (const detail::kernel_table* k : detail::all_kernels())
    for (const std::size_t bytes : bench::sizes()) {
      if (!all_sizes && bytes != std::size_t{64} << 10) continue;
      bench::add({.name = name, .kernels = k->name, .bytes = bytes}, [=](bench::row&) { return prepare({c, *k, bytes}, d); });
    }
}

// What the check costs: both in the same samples, since it is a few percent.
void add_checked(const std::string& name, const codec& checked, const codec& truncating) {
  for (const detail::kernel_table* k : detail::all_kernels())
    for (const std::size_t bytes : bench::sizes()) {
      if (bytes != std::size_t{64} << 10) continue;
      bench::add({.name = name, .kernels = k->name, .base = "truncating encode", .bytes = bytes}, [=](bench::row&) {
        bench::subject s = prepare({checked, *k, bytes}, direction::encode);
        s.base = prepare({truncating, *k, bytes}, direction::encode).run;
        return s;
      });
    }
}

codec fields(unsigned width, unsigned bits, bool is_signed = false, unsigned first = 0, bool truncate = false) {
  const std::string type = (is_signed ? "int" : "uint") + std::to_string(width);
  return packbits(type, {.first_bit = first, .last_bit = first + bits - 1, .truncate = truncate});
}

void register_cases() {
  bench::register_limits();
  const auto big = [](const char* type) {
    return bytes(type, {.endian = std::endian::native == std::endian::big ? endian::little : endian::big});
  };
  add("swap/2", big("uint16"), direction::encode);
  add("swap/4", big("uint32"), direction::encode);
  add("swap/8", big("uint64"), direction::encode);
  add("swap/complex64", big("complex64"), direction::encode);
  add("swap/complex128", big("complex128"), direction::encode);
  add("swap_inplace/2", big("uint16"), direction::in_place);
  add("swap_inplace/4", big("uint32"), direction::in_place);
  add("swap_inplace/8", big("uint64"), direction::in_place);

  add("encode/bool", packbits("bool"), direction::encode);
  add("encode/bool/nonzero", packbits("bool", {.nonzero_is_true = true}), direction::encode);
  add("encode/bool/msb", numcodecs_packbits(), direction::encode);
  add("decode/bool", packbits("bool"), direction::decode);
  add("decode/bool/msb", numcodecs_packbits(), direction::decode);

  struct width_goals {
    unsigned width;
    std::string named;  // k that goals name, with commas around
  };
  for (const auto& [width, named] : {width_goals{8, ",2,4,5,6,"}, {16, ",11,12,14,"}, {32, ",20,23,24,"}, {64, ",40,53,"}})
    for (unsigned k = 1; k < width; ++k) {
      const std::string suffix = std::to_string(width) + "/" + std::to_string(k);
      const bool is_named = named.find("," + std::to_string(k) + ",") != std::string::npos;
      add("encode/" + suffix, fields(width, k), direction::encode, is_named);
      add("decode/" + suffix, fields(width, k), direction::decode, is_named);
      if (!is_named) continue;
      add("encode/" + suffix + "/signed", fields(width, k, true), direction::encode, false);
      add("encode/" + suffix + "/truncate", fields(width, k, false, 0, true), direction::encode);
      add("decode/" + suffix + "/signed", fields(width, k, true), direction::decode);
      add_checked("checked/" + suffix, fields(width, k), fields(width, k, false, 0, true));
    }
  add("encode/16/10/first2", fields(16, 10, false, 2), direction::encode);
  add("decode/16/10/first2", fields(16, 10, false, 2), direction::decode);
}

}  // namespace

int main(int argc, char** argv) { return zarrbits::bench::main(argc, argv, register_cases); }
