// SPDX-License-Identifier: BSL-1.0
//
// A netCDF-3 file as a store: its header is the metadata, and chunks are ranges of the file.
//
#include "io/byte_source.hpp"
#include "io/netcdf3_chunks.hpp"
#include "io/netcdf3_header.hpp"
#include "io/remote_url.hpp"
#include "metadata/node.hpp"
#include "remote/netcdf3_rows.hpp"
#include "remote/remote_file.hpp"
#include "text/json_text.hpp"
#include "zarr/read/netcdf3_metadata.hpp"
#include "zarr/read/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr const char* node_metadata = "zarr.json";

// Turns errors of the file into errors of the store.
template <class F>
auto with_file_errors(const std::string& name, F&& f) {
  try {
    return f();
  } catch (const io::netcdf3_error& e) {
    throw store_error("\"" + name + "\" cannot be read: " + e.what());
  } catch (const io::read_error& e) {
    throw store_error("\"" + name + "\" cannot be read: " + e.what());
  } catch (const zarrbits::error& e) {
    throw store_error(e.what(), e.kind());
  }
}

// The state of a chunk: it differs if the file's does.
io::file_state state_of_chunk(const io::file_state& file, const io::netcdf3_rows& rows) {
  return {file.regular, rows.chunk_bytes, file.seconds, file.nanoseconds,
          file.etag + "@" + std::to_string(rows.offset) + "/" + std::to_string(file.size)};
}

struct open_file {
  std::string name;
  std::unique_ptr<const io::byte_source> bytes;
  std::uint64_t cache = 0;  // bytes of a file on a server that are kept
};

// A chunk that is one range of the file.
class file_range final : public stored_object {
 public:
  file_range(std::shared_ptr<const open_file> file, const io::netcdf3_rows& rows) : file_(std::move(file)), rows_(rows) {}
  std::uint64_t size() const override { return rows_.chunk_bytes; }
  io::file_state state() const override { return state_of_chunk(file_->bytes->state(), rows_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    with_file_errors(file_->name, [&] {
      if (remote::are_read_alone(*file_->bytes, rows_, file_->cache))
        file_->bytes->remote()->read_alone(rows_.offset + offset, out);
      else file_->bytes->read(rows_.offset + offset, out);
    });
  }
  std::optional<object_location> location() const override {
    object_location result{.descriptor = file_->bytes->descriptor(), .offset = rows_.offset};
    if (const remote::remote_file* remote = file_->bytes->remote()) {
      result.url = remote->name();
      result.state = remote->state();
    }
    return result;
  }

 private:
  std::shared_ptr<const open_file> file_;
  io::netcdf3_rows rows_;
};

// A chunk whose rows are apart in the file, or that reaches over the edge of the array: bytes beyond it read as zeros.
class gathered_object final : public stored_object {
 public:
  gathered_object(std::shared_ptr<const open_file> file, const io::netcdf3_rows& rows) : file_(std::move(file)), rows_(rows) {}
  std::uint64_t size() const override { return rows_.chunk_bytes; }
  io::file_state state() const override { return state_of_chunk(file_->bytes->state(), rows_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    with_file_errors(file_->name, [&] { remote::read_rows(*file_->bytes, rows_, file_->cache, offset, out); });
  }

 private:
  std::shared_ptr<const open_file> file_;
  io::netcdf3_rows rows_;
};

class netcdf3_reader final : public store_reader {
 public:
  netcdf3_reader(open_file file, std::uint64_t memory)
      : file_(std::make_shared<const open_file>(std::move(file))), memory_(memory) {
    with_file_errors(file_->name, [&] { header_ = io::read_netcdf3_header(*file_->bytes, memory_); });
    node_names_ = netcdf3_node_names(header_);
    for (std::size_t i = 0; i < node_names_.size(); ++i) {
      nodes_.emplace(node_names_[i], i);
      chunks_.emplace_back(header_.variables[i], header_.record_stride);
    }
    opened_ = file_->bytes->state();
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    if (key == node_metadata) return metadata_object(root_text());
    const auto [variable, rest] = split(key);
    if (!variable) return nullptr;
    if (rest == node_metadata) return metadata_object(array_text(*variable));
    const io::netcdf3_chunks& chunks = chunks_[*variable];
    const auto index = netcdf3_keys.index(rest, chunks.counts().size());
    if (!index || !std::equal(index->begin(), index->end(), chunks.counts().begin(), std::less<>())) return nullptr;
    const io::netcdf3_rows rows = chunks.rows_of(*index);
    if (rows.is_range()) return std::make_unique<file_range>(file_, rows);
    return std::make_unique<gathered_object>(file_, rows);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    if (folder.empty()) {
      if (!visit(metadata_entry(""))) return;
      for (const std::string& name : node_names_) {
        if (!visit({.name = name, .is_folder = true})) return;
      }
      return;
    }
    const auto node = nodes_.find(folder);
    if (node == nodes_.end() || !visit(metadata_entry(folder + "/"))) return;
    const io::netcdf3_chunks& chunks = chunks_[node->second];
    const std::vector<std::uint64_t>& counts = chunks.counts();
    if (std::find(counts.begin(), counts.end(), std::uint64_t{0}) != counts.end()) return;
    const io::file_state file = file_->bytes->state();
    std::vector<std::uint64_t> index(counts.size());
    for (bool has_more = true; has_more;) {
      const io::netcdf3_rows rows = chunks.rows_of(index);
      store_entry e{.name = netcdf3_keys.key(index), .size = rows.chunk_bytes, .state = state_of_chunk(file, rows)};
      if (!visit(e)) return;
      has_more = false;
      for (std::size_t d = index.size(); d-- > 0 && !has_more;) {
        has_more = ++index[d] < counts[d];
        if (!has_more) index[d] = 0;
      }
    }
  }

  void require_unchanged() const override {
    const remote::remote_file* remote = file_->bytes->remote();
    with_file_errors(file_->name, [&] { require_opened(remote ? remote->state_now() : file_->bytes->state()); });
  }

 private:
  void require_opened(const io::file_state& state) const {
    if (state == opened_) return;
    throw store_error("\"" + file_->name + "\" changed while it was read; start over when no process is writing to it",
                      errc::changed);
  }

  std::unique_ptr<stored_object> metadata_object(std::string text) const {
    require_opened(file_->bytes->state());
    return std::make_unique<text_object>(std::move(text));
  }

  std::string array_text(std::size_t variable) const {
    return netcdf3_array_text(header_, header_.variables[variable], chunks_[variable].chunk_shape(), memory_);
  }

  // With the metadata of all arrays, as the stores of netCDF-4 files have them.
  std::string root_text() const {
    text::json root = text::parse_untrusted_json(netcdf3_group_text(header_, node_names_, memory_));
    text::object_builder nodes;
    for (std::size_t i = 0; i < node_names_.size(); ++i) nodes.add(node_names_[i], text::parse_untrusted_json(array_text(i)));
    metadata::set_consolidated(root, nodes.take());
    return metadata::node_text(root);
  }

  store_entry metadata_entry(const std::string& prefix) const {
    const auto object = open(prefix + node_metadata);
    return {.name = node_metadata, .size = object->size(), .state = object->state()};
  }

  // The variable of a key, and the rest of the key.
  std::pair<std::optional<std::size_t>, std::string> split(const std::string& key) const {
    const std::size_t slash = key.find('/');
    const auto node = slash == key.npos ? nodes_.end() : nodes_.find(key.substr(0, slash));
    if (node == nodes_.end()) return {};
    return {node->second, key.substr(slash + 1)};
  }

  std::shared_ptr<const open_file> file_;
  std::uint64_t memory_;
  io::netcdf3_header header_;
  io::file_state opened_;
  std::vector<std::string> node_names_;
  std::map<std::string, std::size_t> nodes_;  // variables by the names of their nodes
  std::vector<io::netcdf3_chunks> chunks_;
};

}  // namespace

std::shared_ptr<const store_reader> open_netcdf3(const std::string& path, const remote_access& remote, std::uint64_t memory,
                                                 access_pattern use) {
  if (io::is_remote(path)) {
    const auto hint = use == access_pattern::full ? io::access_hint::full : io::access_hint::partial;
    auto bytes = with_file_errors(
        path, [&] { return std::make_unique<const remote::remote_file>(path, remote, memory, std::nullopt, hint); });
    return std::make_shared<netcdf3_reader>(open_file{path, std::move(bytes), memory}, memory);
  }
  io::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw store_error("cannot open \"" + path + "\": " + std::generic_category().message(errno));
  return std::make_shared<netcdf3_reader>(open_file{path, std::make_unique<const io::local_bytes>(std::move(file))}, memory);
}

}  // namespace zarrbits::zarr
