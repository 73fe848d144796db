// SPDX-License-Identifier: BSL-1.0
//
// packbits in front of a compressor of Boost. Compresses a mask and a noisy 12-bit frame, with and without packing first, reads
// them back and compares. Masks gain by both. Packed values no longer begin at bytes, and may compress less well: measure with
// your own data.
//
// Needs Boost's compiled iostreams library (Boost::iostreams) for the compressors.
//
#include <zarrbits/iostreams.hpp>

#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace io = boost::iostreams;

namespace {

constexpr std::size_t width = 1024, height = 1024;

using bytes = std::vector<char>;

std::vector<std::uint16_t> noisy_frame() {
  std::mt19937 random(12);
  std::vector<std::uint16_t> frame(width * height);
  for (std::size_t i = 0; i < frame.size(); ++i)
    frame[i] = static_cast<std::uint16_t>((i / width + i % width + random() % 64) & 0xFFF);
  return frame;
}

std::vector<std::uint8_t> mask() {
  std::mt19937 random(1);
  std::vector<std::uint8_t> mask(width * height, 0);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const auto x = static_cast<long>(i % width) - 512, y = static_cast<long>(i / width) - 512;
    mask[i] = x * x + y * y < 300 * 300 + static_cast<long>(random() % 40000);  // a disc with a frayed edge
  }
  return mask;
}

// Writes through filters. `push` adds them in the order in which the data passes them.
template <class Elements, class Push>
bytes written(const Elements& elements, Push push) {
  bytes out;
  io::filtering_ostream stream;
  push(stream);
  stream.push(io::back_inserter(out));
  zarrbits::iostreams::write_elements(stream, elements);
  stream.reset();
  return out;
}

// The same order again: in an input stream too, the filter nearest to the program comes first.
template <class Elements, class Push>
bool reads_back(const bytes& in, const Elements& elements, Push push) {
  Elements back(elements.size());
  io::filtering_istream stream;
  push(stream);
  stream.push(io::array_source(in.data(), in.size()));
  stream.exceptions(std::ios::badbit);  // turn errors of the filters into exceptions; not earlier, because a stream without a
                                        // device is bad
  zarrbits::iostreams::read_elements(stream, back);
  return stream && stream.peek() == std::char_traits<char>::eof() && back == elements;  // peek(): the chunk is checked only at
                                                                                        // its end
}

void report(const char* how, std::size_t size, std::size_t of) {
  std::cout << "  " << std::left << std::setw(16) << how << std::right << std::setw(9) << size << " bytes  " << std::fixed
            << std::setprecision(2) << static_cast<double>(of) / static_cast<double>(size) << " : 1\n";
}

template <class Elements>
bool show(const char* title, const Elements& elements, const zarrbits::codec& codec) {
  const std::size_t size = elements.size() * codec.element_size();
  const zarrbits::iostreams::encoder encoder(codec);
  const zarrbits::iostreams::decoder decoder(codec, elements.size());
  const auto pack = [&](auto& s) { s.push(encoder); };
  const auto zlib = [&](auto& s) { s.push(io::zlib_compressor()); };
  const auto pack_zlib = [&](auto& s) { s.push(encoder), s.push(io::zlib_compressor()); };
  const auto pack_zstd = [&](auto& s) { s.push(encoder), s.push(io::zstd_compressor()); };

  const bytes packed_zlib = written(elements, pack_zlib), packed_zstd = written(elements, pack_zstd);
  std::cout << title << '\n';
  report("in memory", size, size);
  report("packbits", written(elements, pack).size(), size);
  report("zlib", written(elements, zlib).size(), size);
  report("packbits + zlib", packed_zlib.size(), size);
  report("packbits + zstd", packed_zstd.size(), size);
  const bool same = reads_back(packed_zlib, elements, [&](auto& s) { s.push(decoder), s.push(io::zlib_decompressor()); }) &&
                    reads_back(packed_zstd, elements, [&](auto& s) { s.push(decoder), s.push(io::zstd_decompressor()); });
  std::cout << "  read back: " << (same ? "the same\n" : "DIFFERENT\n");
  return same;
}

}  // namespace

int main() {
  const bool a = show("mask, bool, 1024 x 1024", mask(), zarrbits::packbits("bool"));
  const bool b = show("frame, 12 bits in uint16, 1024 x 1024", noisy_frame(), zarrbits::packbits("uint16", {.last_bit = 11}));
  return a && b ? 0 : 1;
}
