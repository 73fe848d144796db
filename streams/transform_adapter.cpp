// SPDX-License-Identifier: BSL-1.0
#include "streams/throw.hpp"

#include <zarrbits/iostreams/detail/device_guard.hpp>

#include <span>

namespace zarrbits::iostreams::detail {

template <class Transform>
transform_adapter<Transform>::transform_adapter(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements,
                                                std::streamsize buffer_size)
    : transform_(as_codec_error([&] { return Transform(c, elements); })), buffer_size_(checked_buffer_size(c, buffer_size)) {}

template <class Transform>
bool transform_adapter<Transform>::filter(const char*& in, const char* in_end, char*& out, char* out_end, bool flush) {
  if (closed_) {
    transform_.reset();
    total_in_ = total_out_ = 0;
    closed_ = false;
  }
  const auto output = [&] { return std::as_writable_bytes(std::span(out, out_end)); };
  if (in != in_end) {
    const progress p = transform_.step(std::as_bytes(std::span(in, in_end)), output());
    in += p.consumed;
    out += p.produced;
    total_in_ += p.consumed;
    total_out_ += p.produced;
    if (p.error) check();
  }
  // Only the end of the data may end the stream: if false is returned earlier, Boost silently drops what comes after it.
  if (!flush || in != in_end) return true;
  const progress p = transform_.finish(output());
  out += p.produced;
  total_out_ += p.produced;
  if (p.error) check();
  return !p.done;
}

template <class Transform>
void transform_adapter<Transform>::keep_error(const std::exception_ptr& error) noexcept {
  note_error(error);
  if (!error_) error_ = error;
}

template <class Transform>
void transform_adapter<Transform>::close() {
  if (closed_) return;
  closed_ = true;  // the counts stay readable; the next filter() starts a new chunk
  check();
}

template <class Transform>
void transform_adapter<Transform>::check() const {
  if (const zarrbits::failure f = transform_.failure()) throw codec_error(f, transform_.codec().explain(f));
}

template class transform_adapter<zarrbits::encoder>;
template class transform_adapter<zarrbits::decoder>;

}  // namespace zarrbits::iostreams::detail
