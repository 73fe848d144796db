// SPDX-License-Identifier: BSL-1.0
#include "compressors/scaleoffset.hpp"

#include "compressors/bit_reader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace zarrbits::compressors {

namespace {

// Parameters of scaleoffset: kind of scale, scale, elements, class, size, sign, order, whether there is a fill value, fill value.
constexpr std::size_t fill_index = 8, header = 21;

// `stored`: a number of `bits` bits; all ones is the fill value, if there is one.
template <class T>
T scaled(std::uint64_t stored, unsigned bits, std::uint64_t minimum, const std::uint64_t* fill, int digits) {
  const auto as_value = [](std::uint64_t v) {
    using raw = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(static_cast<raw>(v));
  };
  if (fill && stored == (std::uint64_t{1} << bits) - 1) return as_value(*fill);
  using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  return static_cast<T>(static_cast<integer>(stored)) / std::pow(static_cast<T>(10), static_cast<T>(digits)) + as_value(minimum);
}

}  // namespace

buffer decode_scaleoffset(std::span<const unsigned> v, buffer in, std::size_t size) {
  const auto fail = [](const char* reason) { throw corrupt_chunk(std::string("scaleoffset: ") + reason); };
  if (v.size() < fill_index + 2) fail("parameters that do not fit any datatype");
  const std::size_t element = v[4];
  const bool is_float = v[3] == 1;
  const auto scale = static_cast<int>(v[1]);
  if (v[3] > 1 || v[0] != (is_float ? 0U : 2U) || (element != 1 && element != 2 && element != 4 && element != 8) ||
      (is_float && element < 4) || v[6] > 1) {
    fail("parameters that do not fit any datatype");
  }
  if (!is_float && scale == static_cast<int>(8 * element)) return in;  // stored, because packing would not shrink it
  if (size % element != 0 || v[2] != size / element) fail("its length differs from the chunk's");
  if (in.size() < header) fail("it ends too early");
  const auto little = [&](std::size_t offset, std::size_t n) {
    std::uint64_t x = 0;
    for (std::size_t i = n; i-- > 0;) x = x << 8 | std::to_integer<std::uint64_t>(in[offset + i]);
    return x;
  };
  const std::uint64_t bits = little(0, 4);
  const auto length = std::min<std::size_t>(std::to_integer<std::size_t>(in[4]), 8);
  if (bits > 8 * element) fail("numbers that are wider than the datatype");
  const std::uint64_t minimum = little(5, length);
  const std::uint64_t filled = v[fill_index] | static_cast<std::uint64_t>(v[fill_index + 1]) << 32;
  const std::uint64_t* fill = v[7] == 1 ? &filled : nullptr;
  const auto width = static_cast<unsigned>(bits);
  bit_reader reader(std::span<const std::byte>(in).subspan(header), "scaleoffset");
  buffer out(size);
  if (width == 8 * element) {  // in the byte order of the machine that wrote them
    if (in.size() - header < size) fail("it ends too early");
    std::copy_n(in.begin() + header, size, out.begin());
  }
  for (std::size_t offset = 0; width < 8 * element && offset < size; offset += element) {
    const std::uint64_t stored = reader.number(width);
    std::uint64_t value = 0;
    if (is_float && element == 4) value = std::bit_cast<std::uint32_t>(scaled<float>(stored, width, minimum, fill, scale));
    else if (is_float) value = std::bit_cast<std::uint64_t>(scaled<double>(stored, width, minimum, fill, scale));
    else value = fill && stored == (std::uint64_t{1} << width) - 1 ? *fill : stored + minimum;
    for (std::size_t i = 0; i < element; ++i) out[offset + i] = static_cast<std::byte>(value >> (8 * i));
  }
  if (v[6] == 1) {
    for (std::size_t offset = 0; offset < size; offset += element) {
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(offset),
                   out.begin() + static_cast<std::ptrdiff_t>(offset + element));
    }
  }
  return out;
}

}  // namespace zarrbits::compressors
