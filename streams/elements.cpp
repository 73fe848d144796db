// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/iostreams.hpp>

#include "streams/chain_link.hpp"

#include <istream>
#include <ostream>

namespace zarrbits::iostreams::detail {

namespace {

// Refuses elements of another size than those of the filter that a chain begins with, if it is one of `Filters`. Behind another
// filter, and in a composition with a device, nothing says what the bytes are.
template <class... Filters>
void check_size(std::streambuf* front, std::size_t size) {
  auto* const chain = dynamic_cast<boost::iostreams::detail::linked_streambuf<char>*>(front);
  if (!chain) return;
  const auto check = [&](const auto* filter) {
    if (!filter) return;
    if (const failure f = zarrbits::detail::wrong_size(filter->codec(), size)) throw codec_error(f, filter->codec().explain(f));
  };
  (check(chain_link::component<Filters>(*chain)), ...);
}

}  // namespace

std::ostream& write_bytes(std::ostream& out, std::span<const std::byte> bytes, std::size_t size) {
  check_size<encoder>(out.rdbuf(), size);
  return out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::istream& read_bytes(std::istream& in, std::span<std::byte> bytes, std::size_t size) {
  check_size<decoder, seekable_decoder>(in.rdbuf(), size);
  return in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace zarrbits::iostreams::detail
