// SPDX-License-Identifier: BSL-1.0
//
// A codec is a value: a configuration resolved once against a data type (validated, sizes known, kernels chosen), then used for
// as many chunks and streams as you like, from any number of threads.
//
//   auto c = zarrbits::parse_codec(R"({"name": "packbits", "configuration": {"last_bit": 11}})", "uint16");
//   c.encoded_size(1000);   // 1500 bytes for 1000 elements
//   c.json();               // the form that every Zarr reader accepts
//
// <zarrbits/bytes.hpp> and <zarrbits/packbits.hpp> make codecs from C++; <zarrbits/chunk.hpp> encodes and decodes whole chunks,
// <zarrbits/transform.hpp> streams.
//
#ifndef ZARRBITS_CODEC_HPP
#define ZARRBITS_CODEC_HPP

#include <zarrbits/data_type.hpp>
#include <zarrbits/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zarrbits {

namespace detail {
struct access;
struct codec_state;
}  // namespace detail

// How json() spells the keys of packbits: as published in the Zarr extension registry (first_byte, last_byte), or as in the draft
// before it (start_byte, end_byte). zarrbits reads both.
enum class spelling { published, older };

// A half-open range of bytes of an encoded chunk.
struct byte_range {
  std::uint64_t offset = 0;  // of the first byte
  std::uint64_t size = 0;    // in bytes
};

// `count` elements starting with the element `first`, in C order of the chunk.
struct element_range {
  std::uint64_t first = 0;  // index of the first one
  std::uint64_t count = 0;  // number of elements
};

// A codec of Zarr, made for a data type: knows the sizes of chunks, and is what the functions on chunks, the transforms and the
// filters take. Copies are cheap, share their state, and may be used by many threads at once. A move is a copy: the codec that
// was moved from stays as it was, so no codec is ever empty.
class ZARRBITS_API codec {
 public:
  // Shares what the other holds.
  codec(const codec&) noexcept = default;
  // Shares what the other holds.
  codec& operator=(const codec&) noexcept = default;

  // The Zarr name: "bytes", "packbits", "numcodecs.packbits".
  const std::string& name() const noexcept;
  // The data type that the codec was made for.
  const data_type& type() const noexcept;

  // The codec's object for the "codecs" list of a zarr.json, on one line: an object, never a bare string.
  std::string json(spelling s = spelling::published) const;

  // Bytes of one element in memory.
  std::size_t element_size() const noexcept;
  // Bits of one encoded element: k in the packbits text.
  std::uint64_t element_bits() const noexcept;

  // The exact size in bytes of this number of elements in memory. Throws `error` (size_overflow) if it does not fit in 64 bits.
  std::uint64_t decoded_size(std::uint64_t elements) const;
  // The exact size in bytes of this number of elements, encoded. Throws `error` (size_overflow) if it does not fit in 64 bits.
  std::uint64_t encoded_size(std::uint64_t elements) const;

  // The bytes of an encoded chunk of `elements` elements that hold the elements of `range`. Throws `error` (invalid_range,
  // size_overflow).
  byte_range encoded_range(std::uint64_t elements, element_range range) const;

  // True if a stream cannot be encoded before the number of elements is known (packbits with padding_encoding first_byte).
  bool needs_element_count() const noexcept;

  // The failure as a complete sentence: codec, element, value, what to do.
  std::string explain(const failure& f) const;

 private:
  friend struct detail::access;
  explicit codec(std::shared_ptr<const detail::codec_state> s) noexcept : state_(std::move(s)) {}

  std::shared_ptr<const detail::codec_state> state_;
};

// Settings that the JSON of a codec does not have. Every default is the safe choice.
struct codec_policy {
  bool truncate = false;              // encode drops bits that do not fit, instead of failing (never of bool)
  bool nonzero_is_true = false;       // a bool that is neither 0 nor 1 counts as true, instead of failing
  bool strict_padding = false;        // decode refuses padding bits that are not 0
  bool assume_little_endian = false;  // `bytes` without "endian" means little if the data type needs one
};

// Makes a codec from its JSON (an object with or without "configuration", or a string) or from its bare name. The names are
// "bytes" (also "endian", its old name), "packbits" and "numcodecs.packbits". Throws `error` with a sentence that names the key,
// the value, the data type and what would be right.
[[nodiscard]] ZARRBITS_API codec parse_codec(std::string_view name_or_json, const data_type& type,
                                             const codec_policy& policy = {});

}  // namespace zarrbits

#endif
