// SPDX-License-Identifier: BSL-1.0
// The program of the README, as it stands: it compiles without warnings against the installed package and does what it says.
#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cstdint>
#include <vector>
#include <zarrbits/iostreams.hpp>

int main() {
  namespace io = boost::iostreams;
  const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});  // 12 of 16 bits
  // the same: zarrbits::parse_codec(R"({"name":"packbits","configuration":{"last_bit":11}})", "uint16")
  std::vector<std::uint16_t> frame(1 << 20, 0xABC), back(frame.size());
  {
    io::filtering_ostream out;
    out.push(zarrbits::iostreams::encoder(camera));
    out.push(zarrbits::iostreams::checked(io::file_sink("frame.bits", std::ios::binary)));
    zarrbits::iostreams::write_elements(out, frame);
    out.reset();  // throws if a value did not fit, or a byte was not written
  }
  io::filtering_istream in;
  in.push(zarrbits::iostreams::decoder(camera, frame.size()));
  in.push(io::file_source("frame.bits", std::ios::binary));
  zarrbits::iostreams::read_elements(in, back);
  return frame == back ? 0 : 1;
}
