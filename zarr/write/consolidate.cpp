// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/consolidate.hpp"

#include "metadata/node.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::string_view metadata_suffix = "/zarr.json";

class consolidating_writer final : public store_writer {
 public:
  explicit consolidating_writer(std::unique_ptr<store_writer> out) : out_(std::move(out)) {}

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override {
    if (key == "zarr.json") {
      out_->put(key, consolidated_text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
      return;
    }
    if (key.ends_with(metadata_suffix)) {
      const std::string path(key.substr(0, key.size() - metadata_suffix.size()));
      const std::lock_guard lock(mutex_);
      nodes_.insert_or_assign({std::count(path.begin(), path.end(), '/'), path},
                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    out_->put(key, bytes);
  }
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
  void remove(std::string_view folder) override {
    {
      const std::lock_guard lock(mutex_);
      const std::string prefix = std::string(folder) + "/";
      std::erase_if(nodes_, [&](const auto& n) { return n.first.second == folder || n.first.second.starts_with(prefix); });
    }
    out_->remove(folder);
  }
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

 private:
  std::string consolidated_text(const std::string& text) const {
    text::json root = text::parse_untrusted_json(text);
    if (!metadata::is_group(root)) return text;
    text::json nodes = text::json::object();
    const std::lock_guard lock(mutex_);
    for (const auto& [place, node] : nodes_) nodes[place.second] = text::parse_untrusted_json(node);
    metadata::set_consolidated(root, std::move(nodes));
    return metadata::node_text(root);
  }

  std::unique_ptr<store_writer> out_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::ptrdiff_t, std::string>, std::string> nodes_;  // by depth, then name
};

}  // namespace

std::unique_ptr<store_writer> make_consolidating_writer(std::unique_ptr<store_writer> out) {
  return std::make_unique<consolidating_writer>(std::move(out));
}

}  // namespace zarrbits::zarr
