// SPDX-License-Identifier: BSL-1.0
#include "append/append_target.hpp"

#include "append/existing_zarr_array.hpp"
#include "append/staged_append.hpp"
#include "codecs/codec_chain.hpp"
#include "io/files.hpp"
#include "io/remote_url.hpp"
#include "metadata/node.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "text/sha256.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <fcntl.h>
#include <utility>

namespace zarrbits::append {

namespace {

// Checksum of the beginning and the end of a file: every change of HDF5 metadata changes one of them.
std::string checksum_of_ends(const std::string& name, std::uint64_t size) {
  constexpr std::uint64_t max_bytes = 16384;
  const io::file_descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto n = static_cast<std::size_t>(std::min(size, max_bytes));
  std::vector<std::byte> bytes(n);
  text::sha256 sum;
  try {
    for (const std::uint64_t offset : {std::uint64_t{0}, size - n}) {
      io::read_range(file.get(), offset, bytes);
      sum.add(bytes);
    }
  } catch (const io::read_error& e) {
    throw zarrbits::error(errc::damaged_store, "\"" + name + "\" cannot be read: " + e.what(), {name});
  }
  return sum.hex(32);
}

}  // namespace

text::json state_note(const hdf5::source_files::entry& file) {
  if (io::is_remote(file.name)) return {{"size", file.state.size}, {"etag", file.state.etag}};
  return {{"size", file.state.size},
          {"modified", {static_cast<std::int64_t>(file.state.seconds), static_cast<std::int64_t>(file.state.nanoseconds)}},
          {"checksum", checksum_of_ends(file.name, file.state.size)}};
}

text::json source_notes(const std::vector<joined_source>& sources, const hdf5::source_files& files) {
  text::json list = text::json::array();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const joined_source& s = sources[i];
    if (s.left_out) continue;
    text::json note = {{"file", hdf5::text_or_base64(text::base_name(s.file))}, {"first", s.first}, {"count", s.count}};
    note.update(state_note(files.list()[i]));
    list.push_back(std::move(note));
  }
  return list;
}

append_target::append_target(const std::string& path, const remote_access& remote, const std::vector<std::string>& sources,
                             std::uint64_t memory, const std::optional<source_base>& base)
    : name_(path), names_(base, sources, path) {
  text::sha256 sum;
  try {
    read(io::is_object_store(path) ? remote : remote_access(), sources, memory);
    for (const auto& [node, metadata] : nodes_) {
      sum.add_field(node);
      sum.add_field(text::json_text(metadata));
    }
  } catch (const zarr::store_error& error) {
    throw zarrbits::error(errc::damaged_store, "nothing can be appended to \"" + path + "\": " + error.what(), {path});
  }
  checksum_ = sum.hex();
  read_sources();
}

void append_target::read(const remote_access& remote, const std::vector<std::string>& sources, std::uint64_t memory) {
  root_.emplace(
      zarr::open_store(name_, remote, sources, memory, zarr::access_pattern::sparse, zarr::symbolic_links::refuse, &names_));
  root_->max_string_bytes = memory / 4;
  std::vector<zarr::store_folder> todo{*root_};
  while (!todo.empty()) {
    const zarr::store_folder folder = std::move(todo.back());
    todo.pop_back();
    const auto bytes = zarr::read_metadata_bytes(folder);
    if (!bytes) throw zarr::store_error("there is no " + (folder / "zarr.json").name());
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    texts_[folder.path().empty() ? "zarr.json" : folder.path() + "/zarr.json"] = checksum_of_text(text);
    text::json node = text::parse_untrusted_json(text);
    if (!metadata::is_v3(node) || metadata::kind_of(node) == metadata::node_kind::none)
      throw zarr::store_error((folder / "zarr.json").name() + " is not a node of Zarr v3");
    if (!metadata::mutable_attributes(node).is_object())
      throw zarr::store_error((folder / "zarr.json").name() + " has attributes that are not an object");
    metadata::take_digest_note(node);  // the values change
    const bool group = metadata::is_group(node);
    nodes_["/" + folder.path()] = std::move(node);
    if (!group) continue;
    for (zarr::store_folder& child : folder.nodes()) todo.push_back(std::move(child));
  }
}

const text::json* append_target::node(const std::string& path) const {
  const auto entry = nodes_.find(path);
  return entry == nodes_.end() ? nullptr : &entry->second;
}

text::json append_target::notes(const std::string& path) const {
  const text::json* const n = node(path);
  if (!n) return text::json::object();
  for (const text::json* location : {&metadata::attributes_of(*n), n}) {
    for (const char* key : {text::annotation_key, text::hidden_annotation_key}) {
      if (location->contains(key) && (*location)[key].is_object()) return (*location)[key];
    }
  }
  return text::json::object();
}

bool append_target::has_notes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    text::json remaining = notes(entry.first);
    // the list of appended files is all that an append leaves in a store of another program
    if (entry.first == "/" && metadata::attributes_of(entry.second).contains(text::hidden_annotation_key))
      remaining.erase("sources");
    return !remaining.empty();
  });
}

void append_target::read_sources() {
  const text::json notes_of_root = notes("/");
  const auto list = notes_of_root.find("sources");
  if (list == notes_of_root.end()) return;
  const auto refuse = [&] {
    throw zarrbits::error(errc::damaged_store,
                          "\"" + name_ + "\" has no valid list of the files that it was made from; make it again with `concat`",
                          {name_});
  };
  if (!list->is_array()) refuse();
  for (const text::json& item : *list) {
    const auto number = [&](const char* key) {
      if (!item.is_object() || !item.contains(key) || !item[key].is_number_unsigned()) refuse();
      return item[key].get<std::uint64_t>();
    };
    recorded_source s;
    s.first = number("first");
    s.count = number("count");
    if (item.contains("file") && item["file"].is_string()) s.file = item["file"].get<std::string>();
    if (item.contains("size")) {
      s.state = text::json::object();
      for (const char* key : {"size", "modified", "checksum", "etag"}) {
        if (item.contains(key)) s.state[key] = item[key];
      }
    }
    sources_.push_back(std::move(s));
  }
}

zarr::zarr_array append_target::open_array(const std::string& path) const {
  try {
    return zarr::zarr_array(path == "/" ? *root_ : *root_ / path.substr(1), codecs::make_decoder);
  } catch (const zarr::not_supported& e) {
    throw zarrbits::error(errc::unsupported,
                          "array \"" + path + "\" of \"" + name_ + "\" cannot grow: zarrbits does not support " + e.what(),
                          {name_, path});
  } catch (const zarr::store_error& e) {
    throw zarrbits::error(errc::damaged_store, "array \"" + path + "\" of \"" + name_ + "\" cannot be read: " + e.what(),
                          {name_, path});
  }
}

std::shared_ptr<const existing_array> append_target::array(const std::string& path, std::size_t axis) const {
  const text::json* const n = node(path);
  if (!n || !metadata::is_array(*n)) return nullptr;
  return existing_zarr_array::make(name_, path, *n, path == "/" ? *root_ : *root_ / path.substr(1), open_array(path), axis);
}

std::string append_target::difference(const std::string& path, const hdf5::chunk_source& data) const {
  const text::json* const n = node(path);
  if (!n || !metadata::is_array(*n)) return "is not in the store";
  if (data.null) return notes(path).value("null_dataspace", text::json()) == true ? "" : "their extents differ";
  return compare_values(open_array(path), data);
}

std::vector<double> append_target::last_values(const std::string& path) const { return last_numbers(open_array(path)); }

}  // namespace zarrbits::append
