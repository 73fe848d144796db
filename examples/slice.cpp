// SPDX-License-Identifier: BSL-1.0
//
// Reads a window out of a packed image by seeking: only the bytes of its rows are read from the file, and nothing before them is
// decoded.
//
#include <zarrbits/iostreams.hpp>

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

namespace io = boost::iostreams;

int main() {
  constexpr std::size_t width = 4096, height = 4096;                        // the image
  constexpr std::size_t top = 3000, left = 1234, rows = 16, columns = 100;  // the window
  const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});
  const auto pixel = [](std::size_t y, std::size_t x) { return static_cast<std::uint16_t>((y * 31 + x * 7) & 0xFFF); };

  {
    io::filtering_ostream out;
    out.push(zarrbits::iostreams::encoder(camera));
    out.push(zarrbits::iostreams::checked(io::file_sink("image.bits", std::ios::binary)));
    std::vector<std::uint16_t> row(width);
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) row[x] = pixel(y, x);
      zarrbits::iostreams::write_elements(out, row);
    }
    out.reset();
  }

  const zarrbits::iostreams::seekable_decoder decoder(camera, width * height, columns * sizeof(std::uint16_t));
  io::filtering_stream<io::input_seekable> in;
  in.push(decoder);
  in.push(io::file_source("image.bits", std::ios::binary), 512);  // a small buffer for the file: every seek fills it again
  in.exceptions(std::ios::badbit);

  bool same = true;
  std::vector<std::uint16_t> line(columns);
  for (std::size_t y = top; y < top + rows; ++y) {
    in.seekg(static_cast<std::streamoff>((y * width + left) * sizeof line[0]));
    zarrbits::iostreams::read_elements(in, line);
    for (std::size_t i = 0; i < columns; ++i) same = same && line[i] == pixel(y, left + i);
  }
  std::cout << "decoded " << rows << " x " << columns << " of " << height << " x " << width << " pixels from "
            << decoder.total_in() << " of " << camera.encoded_size(width * height)
            << " bytes: " << (same ? "right\n" : "WRONG\n");
  return same && in ? 0 : 1;
}
