// SPDX-License-Identifier: BSL-1.0
//
// Stores below an address of HTTP. Such a server lists nothing: the nodes are those of the consolidated metadata, and each chunk
// that an array may have is asked for. One that does not exist was never written.
//
#include "zarr/read/web_reader.hpp"

#include "io/remote_url.hpp"
#include "io/thread_pool.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "remote/remote_object.hpp"
#include "text/json_text.hpp"
#include "text/memory_estimate.hpp"
#include "text/node_names.hpp"
#include "text/percent.hpp"
#include "zarr/read/sorted_keys.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::uint64_t max_root_bytes = 64U << 20, object_bytes = 250;  // with what a map takes for an entry

template <class F>
auto with_web_errors(F&& f) {
  try {
    return f();
  } catch (const zarrbits::error& e) {
    throw store_error(e.what(), e.kind());
  }
}

class web_file final : public stored_object {
 public:
  web_file(std::unique_ptr<remote::remote_object> object, io::file_state state)
      : object_(std::move(object)), state_(std::move(state)) {}
  std::uint64_t size() const override { return state_.size; }
  io::file_state state() const override { return state_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) with_web_errors([&] { object_->read(state_, offset, out); });
  }

 private:
  std::unique_ptr<remote::remote_object> object_;
  io::file_state state_;
};

bool is_path(std::string_view path) {
  for (bool is_last = false; !is_last;) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos) return false;
    is_last = part.size() == path.size();
    path.remove_prefix(part.size() + (is_last ? 0 : 1));
  }
  return true;
}

class web_reader final : public store_reader {
 public:
  web_reader(std::string name, const remote_access& remote, std::uint64_t memory)
      : name_(std::move(name)), remote_(remote), memory_(std::max<std::uint64_t>(memory, 16U << 20)) {
    if (io::full_url(name_).find_first_of("?#") != std::string::npos)
      throw store_error("a store at \"" + name_ +
                            "\" cannot be read: its chunks have other addresses, with other signatures; "
                            "download the store first",
                        errc::unsupported);
    while (name_.ends_with('/')) name_.pop_back();
    if (const auto root = read_json("zarr.json")) add_v3(*root);
    else if (const auto consolidated = read_json(".zmetadata")) add_v2(*consolidated);
    else
      throw store_error("\"" + name_ +
                            "\" has neither a zarr.json nor a .zmetadata; check the address, or download the store if "
                            "its metadata are not consolidated",
                        errc::not_found);
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    if (const auto entry = metadata_.find(key); entry != metadata_.end())
      return std::make_unique<text_object>(entry->second.text);
    if (text::is_node_key(key) || metadata::is_v2_metadata_key(key.substr(key.rfind('/') + 1))) return nullptr;
    std::optional<io::file_state> state;
    {
      const std::lock_guard lock(mutex_);
      if (const auto entry = chunks_.find(key); entry != chunks_.end()) state = entry->second;
      else if (listed_.contains(array_of(key))) return nullptr;
    }
    if (!state) state = state_of(key);
    return state->regular ? std::make_unique<web_file>(remote::find_object(url_of(key), remote_), *state) : nullptr;
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    const std::string array = array_of(folder.empty() ? "x" : folder + "/x");
    if (arrays_.contains(array)) find_chunks(array);
    bool goes_on = true;
    std::set<std::string> names;
    const auto visit_once = [&](const store_entry& e) {
      goes_on = !names.insert(e.name).second || visit(e);
      return goes_on;
    };
    list_sorted(
        metadata_, folder, [](const metadata_text& m) { return text_object(m.text).state(); }, visit_once);
    if (!goes_on) return;
    std::map<std::string, io::file_state, std::less<>> chunks;  // `visit` may open some
    {
      const std::lock_guard lock(mutex_);
      const std::string prefix = folder.empty() ? "" : folder + "/";
      for (auto i = chunks_.lower_bound(prefix); i != chunks_.end() && i->first.starts_with(prefix); ++i) chunks.insert(*i);
    }
    list_sorted(
        chunks, folder, [](const io::file_state& state) { return state; }, visit_once);
  }

 private:
  struct metadata_text {
    std::string text;
    std::uint64_t size = 0;
  };
  // The chunks that an array may have.
  struct chunk_keys {
    metadata::chunk_key_encoding encoding;
    std::vector<std::uint64_t> counts;
  };

  std::string url_of(const std::string& key) const { return name_ + "/" + text::escape_url_path(key); }

  // Not regular if it is absent.
  io::file_state state_of(const std::string& key) const {
    return with_web_errors([&] { return remote::find_object(url_of(key), remote_)->current_state(); });
  }

  std::optional<text::json> read_json(const std::string& key) const {
    const io::file_state state = state_of(key);
    if (!state.regular) return {};
    const std::vector<std::byte> bytes = read_object(web_file(remote::find_object(url_of(key), remote_), state), max_root_bytes);
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const std::string reason = text::json_memory_error(content, memory_); !reason.empty())
      throw store_error("\"" + url_of(key) + "\" " + reason);
    text::json document = text::parse_untrusted_json(content);
    if (!document.is_object()) throw store_error("\"" + url_of(key) + "\" is not a JSON object");
    return document;
  }

  void add_text(const std::string& path, const char* leaf, std::string content) {
    if (!path.empty() && !is_path(path)) throw store_error("the consolidated metadata of \"" + name_ + "\" name an invalid path");
    const std::uint64_t size = content.size();
    metadata_.insert_or_assign(path.empty() ? leaf : path + "/" + leaf, metadata_text{std::move(content), size});
  }

  void add_array(const std::string& path, const metadata::chunk_key_encoding& encoding,
                 const std::optional<std::vector<std::uint64_t>>& counts) {
    if (counts) arrays_.insert_or_assign(path, chunk_keys{encoding, *counts});
  }

  void add_v3(const text::json& root) {
    add_text("", "zarr.json", text::python_json_text(root));
    if (metadata::is_array(root)) return add_array("", metadata::key_encoding_of(root), metadata::chunks_along(root));
    const text::json& nodes = metadata::consolidated_nodes_of(root);
    if (!nodes.is_object())
      throw store_error("the metadata of \"" + name_ +
                            "\" are not consolidated, and its server does not list what it has; "
                            "consolidate them, or download the store",
                        errc::unsupported);
    for (const auto& [path, node] : nodes.items()) {
      add_text(path, "zarr.json", text::python_json_text(node));
      if (metadata::is_array(node)) add_array(path, metadata::key_encoding_of(node), metadata::chunks_along(node));
    }
  }

  void add_v2(const text::json& document) {
    add_text("", ".zmetadata", text::python_json_text(document));
    const text::json& nodes = metadata::member(document, "metadata");
    if (!nodes.is_object()) throw store_error("\"" + url_of(".zmetadata") + "\" has no metadata of nodes");
    for (const auto& [key, node] : nodes.items()) {
      const std::size_t slash = key.rfind('/');
      const std::string path = slash == std::string::npos ? "" : key.substr(0, slash), leaf = key.substr(slash + 1);
      if (!metadata::is_v2_metadata_key(leaf) || leaf == ".zmetadata") continue;
      add_text(path, leaf.c_str(), text::python_json_text(node));
      if (leaf == ".zarray")
        add_array(path, {.v2 = true, .separator = metadata::v2_separator(node)}, metadata::v2_chunks_along(node));
    }
  }

  // The array that a key may belong to.
  std::string array_of(const std::string& key) const {
    for (std::size_t end = key.rfind('/'); end != std::string::npos;
         end = end == 0 ? std::string::npos : key.rfind('/', end - 1)) {
      if (std::string path = key.substr(0, end); arrays_.contains(path)) return path;
    }
    return "";
  }

  void find_chunks(const std::string& array) const {
    const chunk_keys& keys = arrays_.at(array);
    {
      const std::lock_guard lock(mutex_);
      if (listed_.contains(array)) return;
    }
    std::uint64_t count = 1;
    for (const std::uint64_t n : keys.counts) {
      if (__builtin_mul_overflow(count, n, &count)) count = ~std::uint64_t{0};
    }
    if (count > memory_ / object_bytes)
      throw store_error("array \"/" + array + "\" of \"" + name_ + "\" may have " + std::to_string(count) +
                            " chunks, and a list of them takes more memory than is allowed; increase `memory`",
                        errc::refused);
    std::map<std::string, io::file_state, std::less<>> found_chunks;
    std::mutex mutex;
    io::thread_pool pool(std::max(1U, remote_.connections), ~std::uint64_t{0});
    std::vector<std::uint64_t> index(keys.counts.size(), 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string key = (array.empty() ? "" : array + "/") + keys.encoding.key(index);
      pool.submit(1, [&, key] {
        io::file_state state = state_of(key);
        const std::lock_guard lock(mutex);
        if (state.regular) found_chunks.emplace(key, std::move(state));
      });
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == keys.counts[d];) index[d] = 0;
    }
    pool.finish();
    const std::lock_guard lock(mutex_);
    chunks_.merge(found_chunks);
    listed_.insert(array);
  }

  std::string name_;
  const remote_access remote_;
  const std::uint64_t memory_;
  std::map<std::string, metadata_text, std::less<>> metadata_;  // by their keys
  std::map<std::string, chunk_keys, std::less<>> arrays_;       // by their paths
  mutable std::mutex mutex_;
  mutable std::map<std::string, io::file_state, std::less<>> chunks_;  // that exist
  mutable std::set<std::string, std::less<>> listed_;                  // arrays of which all chunks are known
};

}  // namespace

std::shared_ptr<const store_reader> open_web(const std::string& name, const remote_access& remote, std::uint64_t memory) {
  return with_web_errors([&] { return std::make_shared<web_reader>(name, remote, memory); });
}

}  // namespace zarrbits::zarr
