// SPDX-License-Identifier: BSL-1.0
//
// Writes values through an encoder to a file, in one of the ways in which people do that, for test_full_device.py:
//
//   full_device WAY FILE VALUES
//
// Exit status 0: nothing was thrown. 3: something was, and its sentence is on standard output.
//
#include <zarrbits/iostreams.hpp>

#include <boost/iostreams/compose.hpp>
#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/device/file_descriptor.hpp>
#include <boost/iostreams/filter/zlib.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace io = boost::iostreams;
namespace zi = zarrbits::iostreams;

namespace {

using values = std::vector<std::uint16_t>;

const zarrbits::codec camera = zarrbits::packbits("uint16", {.last_bit = 11});

template <class... Parts>
void write(const values& v, const Parts&... parts) {
  io::filtering_ostream out;
  (out.push(parts), ...);
  zi::write_elements(out, v);
  out.reset();
}

template <class Sink>
void copy(const values& v, const Sink& sink) {
  io::copy(io::array_source(reinterpret_cast<const char*>(v.data()), v.size() * sizeof v[0]),
           io::compose(zi::encoder(camera), sink));
}

io::file_sink file(const std::string& path) { return io::file_sink(path, std::ios::binary); }
io::file_descriptor_sink descriptor(const std::string& path) { return io::file_descriptor_sink(path, std::ios::binary); }

void write_to_stream(const values& v, const std::string& path) {
  std::ofstream stream(path, std::ios::binary);
  io::filtering_ostream out;
  out.push(zi::encoder(camera));
  out.push(stream);
  zi::write_elements(out, v);
  out.reset();  // does not see what the stream still holds
  if (!stream.flush()) throw std::ios_base::failure("the stream is bad");
}

void write_to_checked_stream(const values& v, const std::string& path) {
  std::ofstream stream(path, std::ios::binary);
  write(v, zi::encoder(camera), zi::checked(stream));
}

using zarr_strategy = void (*)(const values&, const std::string&);
const std::map<std::string, zarr_strategy> ways = {
    {"file_sink", [](auto& v, auto& path) { write(v, zi::encoder(camera), file(path)); }},
    {"descriptor", [](auto& v, auto& path) { write(v, zi::encoder(camera), descriptor(path)); }},
    {"ofstream", write_to_stream},
    {"checked_file_sink", [](auto& v, auto& path) { write(v, zi::encoder(camera), zi::checked(file(path))); }},
    {"checked_descriptor", [](auto& v, auto& path) { write(v, zi::encoder(camera), zi::checked(descriptor(path))); }},
    {"checked_ofstream", write_to_checked_stream},
    {"copy_file_sink", [](auto& v, auto& path) { copy(v, file(path)); }},
    {"copy_descriptor", [](auto& v, auto& path) { copy(v, descriptor(path)); }},
    {"copy_checked", [](auto& v, auto& path) { copy(v, zi::checked(file(path))); }},
    {"two_filters",
     [](auto& v, auto& path) { write(v, zi::encoder(camera), zi::encoder(zarrbits::bytes("uint8")), file(path)); }},
    {"compressed", [](auto& v, auto& path) { write(v, zi::encoder(camera), io::zlib_compressor(), zi::checked(file(path))); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !ways.contains(argv[1])) {
    for (const auto& way : ways) std::cout << way.first << '\n';
    return argc == 1 ? 0 : 2;
  }
  values v(std::stoul(argv[3]));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint16_t>(i * 2654435761u >> 20 & 0xFFF);
  try {
    ways.at(argv[1])(v, argv[2]);
  } catch (const std::ios_base::failure& e) {
    std::cout << e.what() << '\n';
    return 3;
  }
  return 0;
}
