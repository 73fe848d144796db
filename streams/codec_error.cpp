// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/iostreams.hpp>

namespace zarrbits::iostreams {

codec_error::codec_error(const zarrbits::failure& f, const std::string& sentence)
    : std::ios_base::failure(sentence, f.code), failure_(f), sentence_(std::make_shared<const std::string>(sentence)) {}

// The base class would append the message of code(), which repeats it.
const char* codec_error::what() const noexcept { return sentence_->c_str(); }

namespace detail {

void no_room_for_more(const zarrbits::codec& c) {
  throw codec_error({.code = errc::buffer_too_small},
                    c.name() +
                        ": a read of 0 bytes, but more follow: the memory that is written to is full, or restrict() ends within "
                        "the chunk; use "
                        "room for the whole result, and restrict() the device below the filter instead of the filter");
}

}  // namespace detail

}  // namespace zarrbits::iostreams
