// SPDX-License-Identifier: BSL-1.0
//
// Writes elements of a C++ type to a stream, and reads them, as they are in memory: the input of encoder, the output of decoder.
//
//   std::vector<std::uint16_t> frame(1 << 20);
//   zarrbits::iostreams::write_elements(out, frame);
//   zarrbits::iostreams::read_elements(in, frame);     // as many as frame has
//
#ifndef ZARRBITS_IOSTREAMS_ELEMENTS_HPP
#define ZARRBITS_IOSTREAMS_ELEMENTS_HPP

#include <zarrbits/chunk.hpp>

#include <cstddef>
#include <iosfwd>
#include <ranges>
#include <span>

namespace zarrbits::iostreams {

namespace detail {

// `size`: of each element.
std::ostream& write_bytes(std::ostream& out, std::span<const std::byte> bytes, std::size_t size);
std::istream& read_bytes(std::istream& in, std::span<std::byte> bytes, std::size_t size);

}  // namespace detail

// As out.write() of the memory of all elements (<zarrbits/chunk.hpp> defines elements). The state of the stream says whether it
// succeeded; a value that does not fit in the codec of a filter may show only when the stream is reset(). Throws codec_error
// (element_size_mismatch), and writes nothing, if the chain begins with an encoder for elements of another size, as encode()
// does.
template <elements_in_memory R>
std::ostream& write_elements(std::ostream& out, const R& elements) {
  return detail::write_bytes(out, std::as_bytes(std::span(elements)), sizeof(std::ranges::range_value_t<R>));
}

// As in.read() of as many elements as there is room for: if fewer come, the stream fails, and in.gcount() is the number of bytes
// that came. Throws codec_error (element_size_mismatch), and reads nothing, if the chain begins with a decoder for elements of
// another size.
template <writable_elements R>
std::istream& read_elements(std::istream& in, R&& elements) {
  return detail::read_bytes(in, std::as_writable_bytes(std::span(elements)), sizeof(std::ranges::range_value_t<R>));
}

}  // namespace zarrbits::iostreams

#endif
