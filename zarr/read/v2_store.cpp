// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/v2_store.hpp"

#include "metadata/from_v2.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"
#include "text/memory_estimate.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

namespace {

using remark_list = std::vector<detail::attribute_remark>;

constexpr std::uint64_t max_v2_metadata_bytes = 64U << 20;

// `key`: for sentences. `memory`: that the values may take.
text::json object_of(const stored_object& object, const std::string& key, std::uint64_t memory, remark_list& remarks) {
  const std::vector<std::byte> bytes = read_object(object, max_v2_metadata_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const std::string reason = text::json_memory_error(text, memory); !reason.empty())
    throw store_error("\"" + key + "\" " + reason);
  text::json parsed;
  try {
    parsed = text::parse_untrusted_node(text, "\"" + key + "\"", remarks, key.ends_with(".zattrs"));
  } catch (const zarrbits::error& e) {
    throw store_error(e.what());
  }
  if (!parsed.is_object()) throw store_error("\"" + key + "\" is not a JSON object");
  return parsed;
}

class v2_reader final : public store_reader {
 public:
  v2_reader(std::shared_ptr<const store_reader> store, std::string name, std::uint64_t memory)
      : store_(std::move(store)), name_(std::move(name)), memory_(memory) {}

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    constexpr std::string_view metadata = "zarr.json";
    const bool is_metadata = key == metadata || (key.ends_with(metadata) && key[key.size() - metadata.size() - 1] == '/');
    if (!is_metadata) {
      if (metadata::is_v2_metadata_key(key)) return nullptr;  // they are in the zarr.json
      return store_->open(key);
    }
    const std::string node = key.substr(0, key.size() - metadata.size());
    const auto array = store_->open(node + ".zarray");
    const auto group = array ? nullptr : store_->open(node + ".zgroup");
    if (!array && !group) return nullptr;
    const auto attributes = store_->open(node + ".zattrs");
    remark_list remarks, ignored;
    const std::string path = name_ + "/" + node;
    const text::json zattrs = attributes ? object_of(*attributes, path + ".zattrs", 2 * memory_, remarks) : text::json();
    try {
      return as_store_errors([&] {
        text::json document =
            array ? metadata::v3_array_of(object_of(*array, path + ".zarray", 2 * memory_, ignored), zattrs, remarks)
                  : metadata::v3_group_of(object_of(*group, path + ".zgroup", 2 * memory_, ignored), zattrs);
        const auto consolidated = group && node.empty() ? store_->open(".zmetadata") : nullptr;
        if (consolidated) {
          const text::json zmetadata = object_of(*consolidated, path + ".zmetadata", 4 * memory_, ignored);
          metadata::set_consolidated(document, metadata::v3_nodes_of(zmetadata));
        }
        if (!remarks.empty()) metadata::set_remarks(document, remarks);
        return std::make_unique<text_object>(text::python_json_text(document));
      });
    } catch (const text::json::exception& e) {
      throw store_error("the metadata of Zarr v2 at \"" + path + "\" are invalid: " + e.what());
    }
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    store_->list(folder, [&](const store_entry& e) { return metadata::is_v2_metadata_key(e.name) || visit(e); });
  }

  bool is_v2() const noexcept override { return true; }

 private:
  std::shared_ptr<const store_reader> store_;
  std::string name_;  // for sentences
  std::uint64_t memory_;
};

}  // namespace

bool is_v2_store(const store_reader& store) {
  if (store.open("zarr.json")) return false;
  return store.open(".zgroup") || store.open(".zarray");
}

std::shared_ptr<const store_reader> as_v3(std::shared_ptr<const store_reader> store, const std::string& name,
                                          std::uint64_t memory) {
  return std::make_shared<v2_reader>(std::move(store), name, memory);
}

}  // namespace zarrbits::zarr
