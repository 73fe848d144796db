// SPDX-License-Identifier: BSL-1.0
//
// A store writer that keeps nothing. What derives from it says what becomes of the bytes that are put.
//
#ifndef ZARRBITS_ZARR_WRITE_DISCARDING_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_DISCARDING_WRITER_HPP

#include "zarr/write/store_writer.hpp"

namespace zarrbits::zarr {

class discarding_writer : public store_writer {
 public:
  using store_writer::put;
  std::unique_ptr<object_writer> begin(std::string_view key) override { return buffered_object(*this, key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override {
    put(key, bytes);
    return true;
  }
  std::optional<std::vector<std::byte>> get(std::string_view) override { return {}; }
  std::vector<std::string> list(std::string_view) override { return {}; }
  void for_each(std::string_view, const std::function<void(std::string_view, std::uint64_t)>&) override {}
  void append(std::string_view, std::string_view) override {}
  void remove(std::string_view) override {}
  void finish() override {}
};

}  // namespace zarrbits::zarr

#endif
