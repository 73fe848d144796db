// SPDX-License-Identifier: BSL-1.0
//
// Chunks of strings.
//
//   vlen_encoder encoder;
//   encoder.add("a");
//   out.put(key, encoder.take());
//
#ifndef ZARRBITS_CODECS_VLEN_ENCODER_HPP
#define ZARRBITS_CODECS_VLEN_ENCODER_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zarrbits::codecs {

// A chunk of strings for the codecs vlen-utf8 and vlen-bytes: their number, then each string with its length.
class vlen_encoder {
 public:
  vlen_encoder() : bytes_(4) {}
  void add(std::string_view s);
  std::size_t count() const { return count_; }
  compressors::buffer take();

 private:
  compressors::buffer bytes_;
  std::uint32_t count_ = 0;
};

}  // namespace zarrbits::codecs

#endif
