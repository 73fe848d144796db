// SPDX-License-Identifier: BSL-1.0
//
// Codecs as incremental transforms: bytes in, bytes out, cut anywhere.
//
//   zarrbits::encoder e(zarrbits::packbits("bool"));
//   std::span<const std::byte> in = ...;                 // any piece, however small
//   auto p = e.step(in, out);                            // p.consumed, p.produced, p.error
//   ...
//   do { p = e.finish(out); write(out.first(p.produced)); } while (!p.done && !p.error);
//
// The contract, which any class that models `transform` keeps:
//  - greedy: when step() returns without an error, all of `in` is consumed or all of `out` is filled;
//  - the cuts of input and output never change the output bytes;
//  - finish() says that the input has ended; call it until `done` (or an error), then further calls produce nothing;
//  - step() after finish() with more input is an error (trailing_data);
//  - an error is sticky: every later call returns it and does nothing, until reset();
//  - there is no natural end: a decoder that has all its elements reports further input as trailing_data;
//  - nothing is read or written outside the spans, nothing is allocated, nothing throws, and at most 64 bytes are carried over.
//
#ifndef ZARRBITS_TRANSFORM_HPP
#define ZARRBITS_TRANSFORM_HPP

#include <zarrbits/codec.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

namespace zarrbits {

// The result of one call of a transform.
struct [[nodiscard]] progress {
  std::size_t consumed = 0;  // bytes taken from the front of the input
  std::size_t produced = 0;  // bytes written to the front of the output
  bool done = false;         // finish() only: all output has been delivered
  std::error_code error;     // sticky: every further call returns it
};

// A class that transforms bytes piece by piece, with the contract at the top of this file.
template <class T>
concept transform = requires(T t, std::span<const std::byte> in, std::span<std::byte> out) {
  { t.step(in, out) }
  noexcept->std::same_as<progress>;
  { t.finish(out) }
  noexcept->std::same_as<progress>;
  { t.reset() }
  noexcept;
};

namespace detail {

// The state between calls.
struct carry {
  std::uint64_t bits_low = 0;  // bits that wait for output (encoder) or for a whole component (decoder), first bit lowest
  std::uint64_t bits_high = 0;
  std::uint64_t elements = 0;   // whole elements so far
  std::uint64_t value = 0;      // failure().value
  std::byte component[8] = {};  // encoder: received bytes of a component; decoder: bytes still to deliver
  std::byte held[2] = {};       // decoder: bytes that may be the last ones
  std::uint8_t component_bytes = 0;
  std::uint8_t held_bytes = 0;
  std::uint8_t bit_count = 0;
  std::uint8_t padding_count = 0;  // as read by the decoder
  std::uint8_t phase = 0;
  std::uint8_t error = 0;    // errc
  std::uint32_t run = 0;     // the next run of components of the element,
  std::uint32_t in_run = 0;  // and the next of its components
};
static_assert(sizeof(carry) <= 64, "transforms promise to carry at most 64 bytes");

}  // namespace detail

// A transform that encodes: takes elements in C order and native byte order, gives encoded bytes.
class ZARRBITS_API encoder {
 public:
  // `elements`: the number of elements that will come; any other number is then an error (element_count_mismatch). Required if
  // codec.needs_element_count(): throws `error` (element_count_required) without it.
  explicit encoder(zarrbits::codec c, std::optional<std::uint64_t> elements = {});

  // Takes elements from `in`, cut at any byte, and writes encoded bytes to `out`; both may have any size.
  progress step(std::span<const std::byte> in, std::span<std::byte> out) noexcept;
  // Call this after the last element: delivers the rest. Call it again with more room until the result is `done`.
  progress finish(std::span<std::byte> out) noexcept;
  void reset() noexcept;  // prepare for another chunk with the same codec and number of elements

  const zarrbits::codec& codec() const noexcept { return codec_; }     // the codec that it was made with
  zarrbits::failure failure() const noexcept;                          // what went wrong; empty if nothing did
  std::uint64_t elements() const noexcept { return carry_.elements; }  // whole elements taken so far

 private:
  zarrbits::codec codec_;
  std::optional<std::uint64_t> expected_;
  detail::carry carry_;
};

// A transform that decodes: takes encoded bytes, gives elements in C order and native byte order.
class ZARRBITS_API decoder {
 public:
  // `elements`: the number of elements of the chunk; a length or count byte that says otherwise is then an error. Without it, the
  // count byte decides. If there is none (padding_encoding none), every whole element comes out, and up to 7 of them may be
  // padding.
  explicit decoder(zarrbits::codec c, std::optional<std::uint64_t> elements = {});

  // Takes encoded bytes from `in`, cut at any byte, and writes elements to `out`; both may have any size.
  progress step(std::span<const std::byte> in, std::span<std::byte> out) noexcept;
  // Call this at the end of the chunk: delivers the rest, and says whether the chunk was complete. Call it again with more room
  // until the result is `done`.
  progress finish(std::span<std::byte> out) noexcept;
  void reset() noexcept;  // prepare for another chunk with the same codec and number of elements

  const zarrbits::codec& codec() const noexcept { return codec_; }     // the codec that it was made with
  zarrbits::failure failure() const noexcept;                          // what went wrong; empty if nothing did
  std::uint64_t elements() const noexcept { return carry_.elements; }  // whole elements made so far

 private:
  zarrbits::codec codec_;
  std::optional<std::uint64_t> expected_;
  detail::carry carry_;
};

static_assert(transform<encoder> && transform<decoder>);

}  // namespace zarrbits

#endif
