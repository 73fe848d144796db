// SPDX-License-Identifier: BSL-1.0
#include "streams/range_reader.hpp"

#include "streams/throw.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

namespace zarrbits::iostreams::detail {

using boost::iostreams::stream_offset;

namespace {

constexpr std::uint64_t largest_offset = std::numeric_limits<stream_offset>::max();

// Refuses sizes beyond a stream position when the filter is made.
std::uint64_t streamable_size(const zarrbits::codec& c, std::uint64_t elements) {
  const std::uint64_t decoded = as_codec_error([&] { return std::max(c.decoded_size(elements), c.encoded_size(elements)); });
  if (decoded <= largest_offset) return c.decoded_size(elements);
  throw codec_error({.code = errc::size_overflow}, c.name() + ": " + std::to_string(elements) + " elements of " +
                                                       c.type().name() +
                                                       " are more bytes than a stream position can hold; read a smaller chunk");
}

}  // namespace

range_reader::range_reader(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements, std::streamsize buffer_size)
    : codec_(c), declared_elements_(elements), buffer_size_(checked_buffer_size(c, buffer_size)), elements_(elements) {
  if (declared_elements_) decoded_size_ = streamable_size(codec_, *declared_elements_);
}

void range_reader::fail(const zarrbits::failure& f) const { throw codec_error(f, codec_.explain(f)); }

// The size of the device must be the size of the chunk: checked once, before anything is read.
void range_reader::open(encoded_source& device) {
  if (opened_) return;
  device_position_.reset();
  const stream_offset end = device.seek(0, std::ios_base::end);
  if (end < 0)
    throw codec_error({.code = std::make_error_code(std::errc::invalid_seek)},
                      codec_.name() + ": the device below the seekable decoder does not report its size; use a seekable device");
  const auto encoded = static_cast<std::uint64_t>(end);
  if (declared_elements_) {
    const std::uint64_t expected_size = codec_.encoded_size(*declared_elements_);
    if (encoded != expected_size)
      throw codec_error({.code = encoded < expected_size ? errc::truncated : errc::trailing_data, .value = encoded},
                        codec_.name() + ": the device has " + std::to_string(encoded) + " bytes, but " +
                            std::to_string(*declared_elements_) + " elements of " + codec_.type().name() + " are " +
                            std::to_string(expected_size) +
                            "; use the right number of elements, or restrict() the device to the chunk");
  } else {
    elements_ = derive_elements(device, encoded);
    decoded_size_ = streamable_size(codec_, *elements_);
  }
  try {
    // bits of an element may straddle one byte on either side
    const std::uint64_t one = codec_.element_bits() / 8 + 3;
    window_.resize(std::max<std::uint64_t>(one, static_cast<std::uint64_t>(buffer_size_)));
    element_.resize(codec_.element_size());
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw codec_error({.code = errc::size_overflow}, codec_.name() + ": an element of " + codec_.type().name() + " has " +
                                                         std::to_string(codec_.element_size()) +
                                                         " bytes, more than fit in memory");
  }
  batch_ = codec_.element_bits() == 0 ? 1 : std::max<std::uint64_t>(1, (window_.size() - 2) * 8 / codec_.element_bits());
  opened_ = true;
}

// As in the streaming decoder: the count byte decides, and without one every whole element counts.
std::uint64_t range_reader::derive_elements(encoded_source& device, std::uint64_t encoded) {
  if (codec_.element_bits() == 0)
    throw codec_error({.code = errc::element_count_required}, codec_.name() + ": elements of " + codec_.type().name() +
                                                                  " take no bytes, so that their number does not follow from the "
                                                                  "size of the device; pass it");
  const bool counted = codec_.encoded_size(0) != 0;
  unsigned char count = 0;
  if (counted) {
    if (encoded == 0) fail({.code = errc::truncated});
    const std::uint64_t position = codec_.needs_element_count() ? 0 : encoded - 1;  // first_byte or last_byte
    seek_device(device, position);
    if (device.read(reinterpret_cast<char*>(&count), 1) != 1) fail({.code = errc::truncated});
    device_position_ = position + 1;
    ++total_in_;
  }
  std::uint64_t elements = 0;
  if (const zarrbits::failure f = zarrbits::detail::derive_elements(codec_, encoded, count, elements)) fail(f);
  return elements;
}

void range_reader::seek_device(encoded_source& device, std::uint64_t position) {
  if (device_position_ == position) return;
  device_position_.reset();
  if (device.seek(static_cast<stream_offset>(position), std::ios_base::beg) != static_cast<stream_offset>(position))
    throw codec_error({.code = std::make_error_code(std::errc::invalid_seek)},
                      codec_.name() + ": the device below the seekable decoder cannot seek to byte " + std::to_string(position));
  device_position_ = position;
}

// Fetches the bytes of `range`, from the window as far as possible. Bytes after the last read are read without a seek, so that
// the device keeps its own buffer. False if a nonblocking device does not have them yet.
bool range_reader::fetch(encoded_source& device, const byte_range& range, std::span<const std::byte>& bytes) {
  const std::uint64_t window_end = window_offset_ + window_size_;
  const bool overlaps = range.offset >= window_offset_ && range.offset <= window_end;
  if (overlaps && range.size <= window_end - range.offset) {
    bytes =
        std::span(window_).subspan(static_cast<std::size_t>(range.offset - window_offset_), static_cast<std::size_t>(range.size));
    return true;
  }
  const std::size_t overlap_size = overlaps ? static_cast<std::size_t>(window_end - range.offset) : 0;
  std::memmove(window_.data(), window_.data() + (window_size_ - overlap_size), overlap_size);
  window_offset_ = range.offset;
  window_size_ = overlap_size;
  seek_device(device, range.offset + overlap_size);
  while (window_size_ < range.size) {
    const std::uint64_t position = *device_position_;
    device_position_.reset();  // unknown if the device throws
    const auto missing = static_cast<std::streamsize>(range.size - window_size_);
    const std::streamsize got = device.read(reinterpret_cast<char*>(window_.data() + window_size_), missing);
    // the size of the device was checked, so it has shrunk
    if (got < 0) fail({.code = errc::truncated, .element = position_ / codec_.element_size()});
    device_position_ = position + static_cast<std::uint64_t>(got);
    if (got == 0) return false;
    window_size_ += static_cast<std::size_t>(got);
    total_in_ += static_cast<std::uint64_t>(got);
  }
  bytes = std::span(window_).first(window_size_);
  return true;
}

// Decodes as many of the elements as possible: fewer if one of them is wrong. This is an error only if the read begins with the
// wrong one, because a stream buffer reads ahead of what its user asked for. 0: the device would block.
std::uint64_t range_reader::decode(encoded_source& device, std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
  std::span<const std::byte> bytes;
  if (!fetch(device, codec_.encoded_range(*elements_, {first, count}), bytes)) return 0;
  chunk_result r = decode_range_bytes(codec_, *elements_, bytes, {first, count}, out);
  if (r) return count;
  if (r.failure.element <= first || r.failure.element >= first + count) fail(r.failure);
  count = r.failure.element - first;
  bytes = bytes.first(static_cast<std::size_t>(codec_.encoded_range(*elements_, {first, count}).size));
  r = decode_range_bytes(codec_, *elements_, bytes, {first, count},
                         out.first(static_cast<std::size_t>(count) * codec_.element_size()));
  if (!r) fail(r.failure);
  return count;
}

// A stream turns an exception from here into badbit, which the user may not check before reset().
template <class F>
auto range_reader::remembered(F&& f) -> decltype(f()) {
  try {
    const auto result = f();
    error_ = nullptr;
    return result;
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

std::streamsize range_reader::read(encoded_source& device, char* out, std::streamsize n) {
  return remembered([&] { return read_elements(device, out, n); });
}

stream_offset range_reader::seek(encoded_source& device, stream_offset offset, std::ios_base::seekdir direction) {
  return remembered([&] { return seek_element(device, offset, direction); });
}

std::streamsize range_reader::read_elements(encoded_source& device, char* out, std::streamsize n) {
  open(device);
  if (position_ == decoded_size_) return -1;
  if (n <= 0) no_room_for_more(codec_);
  const auto requested = static_cast<std::size_t>(std::min(static_cast<std::uint64_t>(n), decoded_size_ - position_));
  const std::span<std::byte> result = std::as_writable_bytes(std::span(out, requested));
  const std::size_t element_size = codec_.element_size();
  std::size_t delivered = 0;
  while (delivered < requested) {
    const std::uint64_t index = position_ / element_size;
    const auto offset_in_element = static_cast<std::size_t>(position_ % element_size);
    std::size_t step = 0;
    try {
      if (offset_in_element != 0 || requested - delivered < element_size) {
        if (element_index_ != index) {
          element_index_.reset();
          if (decode(device, index, 1, element_) != 1) break;
          element_index_ = index;
        }
        step = std::min(element_size - offset_in_element, requested - delivered);
        std::memcpy(result.data() + delivered, element_.data() + offset_in_element, step);
      } else {
        const std::uint64_t count = std::min<std::uint64_t>((requested - delivered) / element_size, batch_);
        const std::size_t size = static_cast<std::size_t>(count) * element_size;
        step = static_cast<std::size_t>(decode(device, index, count, result.subspan(delivered, size))) * element_size;
        if (step == 0) break;
      }
    } catch (const codec_error&) {
      if (delivered == 0) throw;
      break;  // deliver what came before it; the next read finds the error again
    }
    delivered += step;
    position_ += step;
  }
  total_out_ += delivered;
  return static_cast<std::streamsize>(delivered);
}

stream_offset range_reader::seek_element(encoded_source& device, stream_offset offset, std::ios_base::seekdir direction) {
  open(device);
  const std::uint64_t base = direction == std::ios_base::beg ? 0 : direction == std::ios_base::cur ? position_ : decoded_size_;
  // neither subtraction overflows: base <= decoded_size_ <= largest_offset
  const auto b = static_cast<stream_offset>(base);
  if (offset < -b || offset > static_cast<stream_offset>(decoded_size_) - b)
    throw codec_error({.code = errc::invalid_range, .element = *elements_},
                      codec_.name() + ": cannot seek " + std::to_string(offset) + " bytes from byte " + std::to_string(base) +
                          ": the chunk has " + std::to_string(*elements_) + " elements in " + std::to_string(decoded_size_) +
                          " decoded bytes");
  position_ = static_cast<std::uint64_t>(b + offset);
  return b + offset;
}

// Prepares for another device.
void range_reader::close() {
  opened_ = false;
  position_ = 0;
  device_position_.reset();
  window_size_ = 0;
  element_index_.reset();
  if (!declared_elements_) {
    elements_.reset();
    decoded_size_ = 0;
  }
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

}  // namespace zarrbits::iostreams::detail
