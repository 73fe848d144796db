// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/iostreams/elements.hpp>

#include <istream>
#include <ostream>

namespace zarrbits::iostreams::detail {

std::ostream& write_bytes(std::ostream& out, std::span<const std::byte> bytes) {
  return out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::istream& read_bytes(std::istream& in, std::span<std::byte> bytes) {
  return in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace zarrbits::iostreams::detail
