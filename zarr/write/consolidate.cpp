// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/consolidate.hpp"

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::string_view metadata = "/zarr.json";

class consolidating_sink final : public sink {
 public:
  explicit consolidating_sink(std::unique_ptr<sink> out) : out_(std::move(out)) {}

  using sink::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override {
    if (key == "zarr.json") {
      out_->put(key, with_all(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
      return;
    }
    if (key.ends_with(metadata)) {
      const std::string path(key.substr(0, key.size() - metadata.size()));
      const std::lock_guard lock(mutex_);
      nodes_.insert_or_assign({std::count(path.begin(), path.end(), '/'), path},
                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    out_->put(key, bytes);
  }
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override {
    out_->put_range(key, fd, offset, size);
  }
  bool refers() const override { return out_->refers(); }
  void refer(std::string_view key, const std::string& url, const io::file_state& state, std::uint64_t offset,
             std::uint64_t size) override {
    out_->refer(key, url, state, offset, size);
  }
  std::unique_ptr<object_writer> begin(std::string_view key) override { return out_->begin(key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override { return out_->put_new(key, bytes); }
  std::optional<std::vector<std::byte>> get(std::string_view key) override { return out_->get(key); }
  std::vector<std::string> list(std::string_view folder) override { return out_->list(folder); }
  void each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& found) override {
    out_->each(folder, found);
  }
  void append(std::string_view key, std::string_view text) override { out_->append(key, text); }
  void remove(std::string_view folder) override {
    {
      const std::lock_guard lock(mutex_);
      const std::string below = std::string(folder) + "/";
      std::erase_if(nodes_, [&](const auto& n) { return n.first.second == folder || n.first.second.starts_with(below); });
    }
    out_->remove(folder);
  }
  void unit_made(const unit_key& unit) override { out_->unit_made(unit); }
  void units_done(const std::vector<unit_key>& units, const sink_options& options) override { out_->units_done(units, options); }
  void remove_old(const std::vector<std::string>& keys) override { out_->remove_old(keys); }
  void finish() override { out_->finish(); }
  void keep() override { out_->keep(); }
  bool tells_case_apart() const override { return out_->tells_case_apart(); }
  bool found_unfinished() const override { return out_->found_unfinished(); }
  bool keeps_unfinished() const override { return out_->keeps_unfinished(); }
  bool any_order() const override { return out_->any_order(); }
  std::uint64_t objects() const noexcept override { return out_->objects(); }
  std::uint64_t bytes() const noexcept override { return out_->bytes(); }
  std::uint64_t referred_objects() const noexcept override { return out_->referred_objects(); }
  std::uint64_t referred_bytes() const noexcept override { return out_->referred_bytes(); }

 private:
  std::string with_all(const std::string& text) const {
    text::json root = text::parse_foreign_json(text);
    if (root.value("node_type", "") != "group") return text;
    text::json all = text::json::object();
    const std::lock_guard lock(mutex_);
    for (const auto& [place, node] : nodes_) all[place.second] = text::parse_foreign_json(node);
    root["consolidated_metadata"] = {{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(all)}};
    return text::python_json_text(root, 2) + "\n";
  }

  std::unique_ptr<sink> out_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::ptrdiff_t, std::string>, std::string> nodes_;  // by depth, then name
};

}  // namespace

std::unique_ptr<sink> consolidating(std::unique_ptr<sink> out) { return std::make_unique<consolidating_sink>(std::move(out)); }

}  // namespace zarrbits::zarr
