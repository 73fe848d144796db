// SPDX-License-Identifier: BSL-1.0
//
// libFuzzer over the JSON of codecs and data types. An input: the data type, a newline, the codec; each a bare name or JSON. What
// parses is written again, parses again to the same, and encodes and decodes a few elements.
#include "fuzz.hpp"

#include <zarrbits/chunk.hpp>
#include <zarrbits/codec.hpp>
#include <zarrbits/error.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace zarrbits;

extern "C" int LLVMFuzzerInitialize(int*, char***) { return 0; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  try {
    const data_type type{std::string(text.substr(0, end))};
    const codec c = parse_codec(text.substr(end + 1), type);
    const std::string json = c.json();
    fuzz::require(parse_codec(json, type).json() == json, "what was written parses to the same");
    if (type.element_size() > 4096) return 0;
    constexpr std::uint64_t elements = 5;
    std::vector<std::byte> values(static_cast<std::size_t>(c.decoded_size(elements))),
        encoded(static_cast<std::size_t>(c.encoded_size(elements)));
    if (!encode_chunk(c, values, encoded)) return 0;  // a type may have no zero
    std::vector<std::byte> decoded(values.size(), std::byte{1});
    fuzz::require(static_cast<bool>(decode_chunk(c, encoded, decoded)), "what was encoded decodes");
    fuzz::require(decoded == values, "what was encoded comes back");
  } catch (const error& e) {
    fuzz::require(*e.what() != 0, "what is refused has a sentence");
  }
  return 0;
}
