// SPDX-License-Identifier: BSL-1.0
//
// A store writer that passes everything on to another one. What derives from it changes some of that.
//
#ifndef ZARRBITS_ZARR_WRITE_FORWARDING_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_FORWARDING_WRITER_HPP

#include "zarr/write/store_writer.hpp"

#include <utility>

namespace zarrbits::zarr {

class forwarding_writer : public store_writer {
 public:
  explicit forwarding_writer(std::unique_ptr<store_writer> out) : out_(std::move(out)) {}

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override { out_->put(key, bytes); }
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override {
    out_->put_range(key, fd, offset, size);
  }
  bool supports_references() const override { return out_->supports_references(); }
  void put_reference(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
                     std::uint64_t size) override {
    out_->put_reference(key, url, state, offset, size);
  }
  std::unique_ptr<object_writer> begin(std::string_view key) override { return out_->begin(key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override { return out_->put_new(key, bytes); }
  std::optional<std::vector<std::byte>> get(std::string_view key) override { return out_->get(key); }
  std::vector<std::string> list(std::string_view folder) override { return out_->list(folder); }
  void for_each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& callback) override {
    out_->for_each(folder, callback);
  }
  void append(std::string_view key, std::string_view text) override { out_->append(key, text); }
  void remove(std::string_view folder) override { out_->remove(folder); }
  void end_unit(const unit_key& unit) override { out_->end_unit(unit); }
  void end_units(const std::vector<unit_key>& units, const store_writer_options& options) override {
    out_->end_units(units, options);
  }
  void remove_old(const std::vector<std::string>& keys) override { out_->remove_old(keys); }
  void finish() override { out_->finish(); }
  void keep_unfinished() override { out_->keep_unfinished(); }
  bool is_case_sensitive() const override { return out_->is_case_sensitive(); }
  bool found_unfinished() const override { return out_->found_unfinished(); }
  bool can_resume() const override { return out_->can_resume(); }
  bool is_order_independent() const override { return out_->is_order_independent(); }
  std::uint64_t objects() const noexcept override { return out_->objects(); }
  std::uint64_t bytes() const noexcept override { return out_->bytes(); }
  std::uint64_t referenced_objects() const noexcept override { return out_->referenced_objects(); }
  std::uint64_t referenced_bytes() const noexcept override { return out_->referenced_bytes(); }

 protected:
  store_writer& out() const { return *out_; }

 private:
  std::unique_ptr<store_writer> out_;
};

}  // namespace zarrbits::zarr

#endif
