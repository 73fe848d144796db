// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/counting_writer.hpp"

#include "zarr/write/discarding_writer.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace zarrbits::conversion {

namespace {

class counting_writer final : public zarr::discarding_writer {
 public:
  using discarding_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override { count(key, bytes.size()); }
};

}  // namespace

std::unique_ptr<zarr::store_writer> make_counting_writer() { return std::make_unique<counting_writer>(); }

}  // namespace zarrbits::conversion
