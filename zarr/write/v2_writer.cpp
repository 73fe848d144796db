// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/v2_writer.hpp"

#include "metadata/chunk_key_encoding.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "zarr/write/forwarding_writer.hpp"

#include <zarrbits/error.hpp>

#include <map>
#include <mutex>

namespace zarrbits::zarr {

namespace {

std::string to_stored_key(std::string_view key) {
  return in_unfinished_folder(key) ? std::string(key) : metadata::to_v2_key(key);
}

class v2_writer final : public forwarding_writer {
 public:
  v2_writer(std::unique_ptr<store_writer> out, bool consolidated)
      : forwarding_writer(std::move(out)), consolidated_(consolidated) {}

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override {
    if (text::is_node_key(key)) put_node(key, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    else out().put(to_stored_key(key), bytes);
  }
  void put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) override {
    out().put_range(to_stored_key(key), fd, offset, size);
  }
  std::unique_ptr<object_writer> begin(std::string_view key) override { return out().begin(to_stored_key(key)); }
  std::optional<std::vector<std::byte>> get(std::string_view key) override { return out().get(to_stored_key(key)); }
  // An object of metadata that is not the only one of its node has the key of the node, too.
  void for_each(std::string_view folder, const std::function<void(std::string_view, std::uint64_t)>& callback) override {
    out().for_each(folder, [&](std::string_view key, std::uint64_t size) {
      if (in_unfinished_folder(key)) return callback(key, size);
      if (metadata::is_v2_metadata_key(key)) callback(std::string(key.substr(0, key.rfind('/') + 1)) + "zarr.json", size);
      else callback(metadata::from_v2_key(key), size);
    });
  }
  void remove(std::string_view folder) override {
    {
      const std::lock_guard lock(mutex_);
      const std::string prefix = std::string(folder) + "/";
      std::erase_if(documents_, [&](const auto& document) { return document.first.starts_with(prefix); });
    }
    out().remove(folder);
  }

 private:
  void put_node(std::string_view key, std::string_view text) {
    const text::json node = text::parse_untrusted_json(text);
    const std::string prefix(key.substr(0, key.rfind('/') + 1));
    if (metadata::is_array(node)) {
      metadata::v2_array array;
      try {
        array = metadata::to_v2_copy(node, false);  // where chunks are missing, the conversion has seen to it
      } catch (const metadata::not_representable_in_v2& reason) {
        throw zarrbits::error(errc::unsupported,
                              "Zarr v2 cannot have the array \"/" + prefix.substr(0, prefix.size() - (prefix.empty() ? 0 : 1)) +
                                  "\": " + reason.what() + "; leave it out with `exclude`, or set `zarr_format` to 3");
      }
      put_document(prefix + ".zattrs", std::move(array.zattrs));
      put_document(prefix + ".zarray", std::move(array.zarray));
      return;
    }
    put_document(prefix + ".zattrs", metadata::v2_group_attributes(node));
    if (prefix.empty() && consolidated_) {
      std::map<std::string, text::json> documents;
      {
        const std::lock_guard lock(mutex_);
        documents.swap(documents_);
      }
      documents[".zgroup"] = metadata::v2_group();
      out().put(".zmetadata", metadata::node_text(metadata::v2_consolidated(documents)));
    }
    put_document(prefix + ".zgroup", metadata::v2_group());
  }

  void put_document(const std::string& key, text::json document) {
    out().put(key, metadata::node_text(document));
    if (!consolidated_) return;
    const std::lock_guard lock(mutex_);
    documents_.insert_or_assign(key, std::move(document));
  }

  const bool consolidated_;
  std::mutex mutex_;
  std::map<std::string, text::json> documents_;  // for .zmetadata
};

}  // namespace

std::unique_ptr<store_writer> make_v2_writer(std::unique_ptr<store_writer> out, bool consolidated) {
  return std::make_unique<v2_writer>(std::move(out), consolidated);
}

}  // namespace zarrbits::zarr
