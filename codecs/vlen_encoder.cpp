// SPDX-License-Identifier: BSL-1.0
#include "codecs/vlen_encoder.hpp"

namespace zarrbits::codecs {

void vlen_encoder::add(std::string_view s) {
  if (s.size() > 0xFFFFFFFFU || count_ == 0xFFFFFFFFU)
    throw compressors::corrupt_chunk("a string of 4 GiB or more, which Zarr's codecs cannot hold");
  const auto n = static_cast<std::uint32_t>(s.size());
  for (unsigned i = 0; i < 4; ++i) bytes_.push_back(static_cast<std::byte>(n >> (8 * i)));
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  bytes_.insert(bytes_.end(), p, p + s.size());
  ++count_;
}

compressors::buffer vlen_encoder::take() {
  for (unsigned i = 0; i < 4; ++i) bytes_[i] = static_cast<std::byte>(count_ >> (8 * i));
  compressors::buffer out = std::move(bytes_);
  bytes_.assign(4, std::byte{0});
  count_ = 0;
  return out;
}

}  // namespace zarrbits::codecs
