// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/consolidate.hpp"

#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "zarr/write/forwarding_writer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::string_view metadata_suffix = "/zarr.json";

class consolidating_writer final : public forwarding_writer {
 public:
  using forwarding_writer::forwarding_writer;

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override {
    if (key == "zarr.json") {
      out().put(key, consolidated_text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
      return;
    }
    if (key.ends_with(metadata_suffix)) {
      const std::string path(key.substr(0, key.size() - metadata_suffix.size()));
      const std::lock_guard lock(mutex_);
      nodes_.insert_or_assign({std::count(path.begin(), path.end(), '/'), path},
                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    out().put(key, bytes);
  }
  void remove(std::string_view folder) override {
    {
      const std::lock_guard lock(mutex_);
      const std::string prefix = std::string(folder) + "/";
      std::erase_if(nodes_, [&](const auto& n) { return n.first.second == folder || n.first.second.starts_with(prefix); });
    }
    out().remove(folder);
  }

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

  mutable std::mutex mutex_;
  std::map<std::pair<std::ptrdiff_t, std::string>, std::string> nodes_;  // by depth, then name
};

}  // namespace

std::unique_ptr<store_writer> make_consolidating_writer(std::unique_ptr<store_writer> out) {
  return std::make_unique<consolidating_writer>(std::move(out));
}

}  // namespace zarrbits::zarr
