// SPDX-License-Identifier: BSL-1.0
//
// Codecs through Boost.Iostreams, and the core's own ways to a chunk. The kernels are the best ones, or those of
// ZARRBITS_KERNELS.
//
//   chunk/encode/16/12            encode_chunk: the whole chunk at once
//   chunk/encode/numcodecs        with a count byte in front, so that the packed bits are not aligned
//   step/encode/16/12             zarrbits::encoder in pieces of 64 KiB; its ratio is to encode_chunk
//   range/decode/16/12            decode_range of the middle half; bytes are those decoded
//   push/encode/16/12             filtering_ostream: push(encoder), push(array_sink), one write()
//   push/boost/encode/16/12       the same, its ratio is to the same transform with the buffers that Boost gives a filter that
//   asks for none push/decode/16/12             filtering_istream, one read() compose/encode/16/12          bio::copy from
//   array_source into compose(encoder, array_sink)
//
#include "bench/data.hpp"
#include "bench/harness.hpp"
#include "core/codec_state.hpp"
#include "core/kernels/kernels.hpp"

#include <zarrbits/iostreams.hpp>
#include <zarrbits/zarrbits.hpp>

#include <boost/iostreams/compose.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <cstring>
#include <string>

namespace {

namespace io = boost::iostreams;
using namespace zarrbits;
using bench::decoded_buffer, bench::encoded_buffer, bench::other_buffer;
using bench::row, bench::subject;

char* chars(std::byte* p) { return reinterpret_cast<char*>(p); }

// The same transform as zarrbits::iostreams::encoder, without the tag by which that one asks for larger buffers: 4096 bytes
// behind the filter and 128 in front of it, as in Boost's own compressors.
class untuned_encoder : public io::symmetric_filter<zarrbits::iostreams::detail::transform_adapter<encoder>> {
 public:
  explicit untuned_encoder(const codec& c)
      : io::symmetric_filter<zarrbits::iostreams::detail::transform_adapter<encoder>>(
            io::default_device_buffer_size, c, std::nullopt, std::streamsize{io::default_device_buffer_size}) {}
};

struct job {
  codec c;
  std::size_t bytes;
  std::size_t elements = bytes / c.element_size();
  std::size_t encoded = static_cast<std::size_t>(c.encoded_size(elements));

  std::span<const std::byte> decoded_in() const { return {decoded_buffer(), bytes}; }
  std::span<std::byte> decoded_out() const { return {other_buffer(), bytes}; }
  std::span<std::byte> encoded_bytes() const { return {encoded_buffer(), encoded}; }

  bool encode() const { return static_cast<bool>(encode_chunk(c, decoded_in(), encoded_bytes())); }
  bool decode() const { return static_cast<bool>(decode_chunk(c, encoded_bytes(), decoded_out())); }

  // Data for either direction.
  void prepare() const {
    bench::fill(detail::access::state(c).runs[0].format, decoded_buffer(), bytes);
    encode();
  }
  bool is_encoded() const { return decode() && std::memcmp(other_buffer(), decoded_buffer(), bytes) == 0; }
  bool is_decoded() const { return std::memcmp(other_buffer(), decoded_buffer(), bytes) == 0; }

  template <class Transform>
  bool step(std::span<const std::byte> in, std::span<std::byte> out) const {
    Transform t(c, elements);
    constexpr std::size_t piece = std::size_t{64} << 10;
    while (!in.empty()) {
      const progress p = t.step(in.first(std::min(piece, in.size())), out);
      if (p.error || (p.consumed == 0 && p.produced == 0)) return false;
      in = in.subspan(p.consumed);
      out = out.subspan(p.produced);
    }
    const progress p = t.finish(out);
    return p.done && !p.error;
  }

  template <class Encoder>
  bool push(const Encoder& e) const {
    io::filtering_ostream out;
    out.push(e);
    out.push(io::array_sink(chars(encoded_buffer()), encoded));
    out.write(chars(decoded_buffer()), static_cast<std::streamsize>(bytes));
    out.reset();
    return true;
  }
  bool pull() const {
    io::filtering_istream in;
    in.push(zarrbits::iostreams::decoder(c, elements));
    in.push(io::array_source(chars(encoded_buffer()), encoded));
    in.read(chars(other_buffer()), static_cast<std::streamsize>(bytes));
    return in.gcount() == static_cast<std::streamsize>(bytes);
  }
  bool copy() const {
    io::copy(io::array_source(chars(decoded_buffer()), bytes),
             io::compose(zarrbits::iostreams::encoder(c, elements), io::array_sink(chars(encoded_buffer()), encoded)));
    return true;
  }
};

void add_codec(const std::string& name, const codec& c, std::size_t bytes) {
  const job j{c, bytes};
  const auto add = [&](const std::string& what, std::function<subject()> make, const char* base = "") {
    bench::add({.name = what + "/" + name, .kernels = detail::kernels().name, .base = base, .bytes = bytes}, [=](row&) {
      j.prepare();
      return make();
    });
  };
  const auto encoded = [j] { return j.is_encoded(); };
  const auto decoded = [j] { return j.is_decoded(); };
  add("chunk/encode", [=] { return subject{.run = [j] { return j.encode(); }, .verify = encoded}; });
  add("chunk/decode", [=] { return subject{.run = [j] { return j.decode(); }, .verify = decoded}; });
  add(
      "step/encode",
      [=] {
    return subject{.run = [j] { return j.step<encoder>(j.decoded_in(), j.encoded_bytes()); },
                   .verify = encoded,
                   .base = [j] { return j.encode(); }};
      },
      "encode_chunk");
  add(
      "step/decode",
      [=] {
    return subject{.run = [j] { return j.step<decoder>(j.encoded_bytes(), j.decoded_out()); },
                   .verify = decoded,
                   .base = [j] { return j.decode(); }};
      },
      "decode_chunk");
  add("push/decode", [=] { return subject{.run = [j] { return j.pull(); }, .verify = decoded}; });
  if (c.needs_element_count()) return;
  add("push/encode",
      [=] { return subject{.run = [j] { return j.push(zarrbits::iostreams::encoder(j.c)); }, .verify = encoded}; });
  add(
      "push/boost/encode",
      [=] {
    return subject{.run = [j] { return j.push(zarrbits::iostreams::encoder(j.c)); },
                   .verify = encoded,
                   .base = [j] { return j.push(untuned_encoder(j.c)); }};
      },
      "default buffers of Boost");
  add("compose/encode", [=] { return subject{.run = [j] { return j.copy(); }, .verify = encoded}; });
}

// The middle half of a chunk, from an element on that does not begin at a byte where k is not a multiple of 8.
void add_range(const std::string& name, const codec& c, std::size_t bytes) {
  const job j{c, 2 * bytes};
  const std::uint64_t count = j.elements / 2, first = j.elements / 4 + 1;
  bench::add({.name = "range/decode/" + name, .kernels = detail::kernels().name, .bytes = bytes}, [=](row&) {
    j.prepare();
    const auto wanted = decoded_buffer() + first * c.element_size();
    return subject{.run =
                       [=] {
      return static_cast<bool>(decode_range(j.c, j.elements, j.encoded_bytes(), {first, count}, j.decoded_out()));
                   },
                   .verify = [=] { return std::memcmp(other_buffer(), wanted, bytes) == 0; }};
  });
}

void register_cases() {
  for (const std::size_t bytes : bench::sizes()) {
    add_codec("swap/4", zarrbits::bytes("uint32", {.endian = endian::big}), bytes);
    add_codec("bool", packbits("bool"), bytes);
    add_codec("numcodecs", numcodecs_packbits(), bytes);
    add_codec("8/4", packbits("uint8", {.last_bit = 3}), bytes);
    add_codec("16/12", packbits("uint16", {.last_bit = 11}), bytes);
    add_codec("32/20", packbits("uint32", {.last_bit = 19}), bytes);
    add_codec("64/40", packbits("uint64", {.last_bit = 39}), bytes);
    if (2 * bytes > bench::largest_size) continue;
    add_range("bool", packbits("bool"), bytes);
    add_range("16/12", packbits("uint16", {.last_bit = 11}), bytes);
  }
}

}  // namespace

int main(int argc, char** argv) { return zarrbits::bench::main(argc, argv, register_cases); }
