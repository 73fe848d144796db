// SPDX-License-Identifier: BSL-1.0
#include "append/staged_append.hpp"

#include "io/remote_url.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "text/sha256.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace zarrbits::append {

std::string checksum_of_text(std::string_view text) {
  text::sha256 sum;
  sum.add(text);
  return sum.hex();
}

std::unique_ptr<staged_append> staged_append::begin(const std::string& store, const zarr::store_writer_options& options) {
  std::string name = text::strip_trailing_slashes(store);
  if (!io::is_object_store(store)) return append_in_directory(std::move(name), options);
#ifdef ZARRBITS_WITH_S3
  return append_in_s3(std::move(name), options);
#else
  throw zarrbits::error(errc::unsupported,
                        "this zarrbits was built without libcurl and cannot append to \"" + store +
                            "\"; choose a store in a directory, or build it with -DZARRBITS_S3=ON",
                        {store});
#endif
}

void staged_append::refuse_store(bool is_v2) const {
  const std::string prefix = "nothing can be appended to \"" + store_ + "\": ";
  if (is_v2)
    throw zarrbits::error(
        errc::unsupported,
        prefix +
            "it is a store of Zarr v2, and only those of Zarr v3 can grow; convert it to a new store, and append "
            "to that",
        {store_});
  throw zarrbits::error(errc::not_found, prefix + "there is no such store; make it with `concat`", {store_});
}

void staged_append::refuse(const std::string& reason) const {
  throw zarrbits::error(errc::damaged_store,
                        "an append to \"" + store_ + "\" was cut off and cannot be resumed: " + reason + "; remove \"" + store_ +
                            "/" + text::append_folder + "\" and append again",
                        {store_});
}

void staged_append::refuse_changed(const std::string& key) const {
  refuse("\"" + key + "\" of the store was changed by another program");
}

void staged_append::declare(const std::vector<replaced_metadata>& metadata, std::uint64_t chunk_bytes) {
  text::json list = text::json::array();
  for (const replaced_metadata& m : metadata) {
    if (checksum_of_text(store_text(m.key)) != m.old_checksum)
      throw zarrbits::error(errc::changed,
                            "nothing was appended to \"" + store_ + "\": another program changed \"" + m.key +
                                "\" in the meantime; run the same command again when it has ended",
                            {store_});
    if (checksum_of_text(staged_text(m.key)) != m.new_checksum)
      throw zarrbits::error(errc::io_failed,
                            "nothing was appended to \"" + store_ + "\": \"" + folder() + "/" + m.key +
                                "\" is not as it was written; run the same command again",
                            {store_});
    list.push_back({{"key", m.key}, {"before", m.old_checksum}, {"after", m.new_checksum}});
  }
  put_list(text::json_text(list) + "\n", chunk_bytes);
}

void staged_append::commit() {
  const text::json declared = text::parse_untrusted_json(list());
  const auto text_of = [](const text::json& j, const char* key) {
    return j.is_object() && j.contains(key) && j[key].is_string() ? std::optional(j[key].get<std::string>()) : std::nullopt;
  };
  if (!declared.is_array()) refuse("its list of metadata cannot be read");
  std::vector<replaced_metadata> metadata;
  bool switched = false;
  for (const text::json& item : declared) {
    const auto key = text_of(item, "key"), old_checksum = text_of(item, "before"), new_checksum = text_of(item, "after");
    if (!key || !old_checksum || !new_checksum || !text::is_node_key(*key)) refuse("its list of metadata cannot be read");
    zarr::check_key(*key);
    const std::string current = checksum_of_text(store_text(*key));
    if (current != *old_checksum && current != *new_checksum) refuse_changed(*key);
    switched = switched || current != *old_checksum;
    metadata.push_back({*key, *old_checksum, *new_checksum});
  }
  if (!switched) move_chunks();  // else all of them are moved
  for (const replaced_metadata& entry : metadata) move_metadata(entry);
  remove_list();
  discard();
}

}  // namespace zarrbits::append
