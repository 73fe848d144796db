// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/zarr_reader.hpp"

#include "text/format.hpp"
#include "zarr/read/chunk_decoder.hpp"
#include "zarr/read/zarr_json.hpp"
#include "zarr/read/zarr_shard.hpp"

#include <algorithm>
#include <charconv>

namespace zarrbits::zarr {

using nlohmann::json;

namespace {

constexpr std::uint64_t max_object_bytes = 2u << 30;  // limit for one object in memory

std::vector<dimension_grid> parse_grids(const json& chunk_grid, const std::vector<std::uint64_t>& shape) {
  json configuration;
  const std::string grid = parse_extension(chunk_grid, configuration);
  if (grid != "regular" && grid != "rectilinear") throw not_supported("the chunk grid " + grid);
  if (grid == "rectilinear") {
    if (const json kind = require_key(configuration, "kind"); kind != "inline")
      throw not_supported("a rectilinear chunk grid of the kind " + json_text(kind));
  }
  const char* const key = grid == "regular" ? "chunk_shape" : "chunk_shapes";
  const json& lengths = require_key(configuration, key);
  if (!lengths.is_array()) throw store_error("\"" + std::string(key) + "\" is not a list");
  if (lengths.size() != shape.size())
    throw store_error("\"" + std::string(key) + "\" and \"shape\" differ in their number of dimensions");
  std::vector<dimension_grid> edges;
  if (grid == "regular") {
    const std::vector<std::uint64_t> chunk = extents(lengths, key);
    for (std::size_t i = 0; i < shape.size(); ++i) edges.push_back(dimension_grid::regular(chunk[i], shape[i]));
  } else {
    for (std::size_t i = 0; i < shape.size(); ++i) edges.push_back(dimension_grid::parse(lengths[i], shape[i]));
  }
  return edges;
}

}  // namespace

zarr_array::zarr_array(store_folder folder, decoder_factory make_decoder) try : folder_(std::move(folder)) {
  const json j = read_node(folder_);
  if (j.value("zarr_format", json()) != 3 || j.value("node_type", json()) != "array")
    throw store_error("zarr.json does not describe a Zarr v3 array");
  for (const auto& item : j.items()) {
    const std::string& key = item.key();
    const json& value = item.value();
    static const char* const known_keys[] = {"zarr_format",         "node_type",  "shape",  "data_type",  "chunk_grid",
                                             "chunk_key_encoding",  "fill_value", "codecs", "attributes", "dimension_names",
                                             "storage_transformers"};
    const bool is_known = std::any_of(std::begin(known_keys), std::end(known_keys), [&](const char* k) { return key == k; });
    const bool optional = value.is_object() && value.value("must_understand", json(true)) == false;
    if (!is_known && !optional) throw store_error("zarr.json has the unknown key \"" + key + "\"");
  }
  if (j.contains("storage_transformers") && !j["storage_transformers"].empty()) throw not_supported("storage transformers");

  shape_ = extents(require_key(j, "shape"), "shape");
  json configuration;
  grids_ = parse_grids(require_key(j, "chunk_grid"), shape_);
  for (const dimension_grid& e : grids_) chunk_shape_.push_back(e.max_length());

  const std::string keys = parse_extension(require_key(j, "chunk_key_encoding"), configuration);
  if (keys != "default" && keys != "v2") throw not_supported("the chunk key encoding " + keys);
  v2_keys_ = keys == "v2";
  const std::string separator = configuration.value("separator", std::string(v2_keys_ ? "." : "/"));
  if (separator != "." && separator != "/") throw store_error("the separator of the chunk keys is neither \".\" nor \"/\"");
  separator_ = separator[0];

  type_ = parse_type(require_key(j, "data_type"));
  fill_ = parse_fill(type_, require_key(j, "fill_value"));
  decoder_ = make_decoder({require_key(j, "codecs"), j["data_type"], type_, chunk_shape_, folder_.max_string_bytes});
  if (const auto& shards = decoder_->shards()) {
    if (const std::uint64_t size = shards->index_size; size > folder_.max_string_bytes)
      throw not_supported("an index of a shard that takes " + text::format_bytes(size) + " of memory, more than the " +
                          text::format_bytes(folder_.max_string_bytes) + " that are allowed; increase `memory`");
    if (!is_regular()) throw not_supported("shards in a rectilinear chunk grid");
    for (std::size_t i = 0; i < shape_.size(); ++i) per_shard_.push_back(chunk_shape_[i] / shards->chunk_shape[i]);
    chunk_shape_ = shards->chunk_shape;
    for (std::size_t i = 0; i < shape_.size(); ++i) grids_[i] = dimension_grid::regular(chunk_shape_[i], shape_[i]);
  } else {
    per_shard_.assign(shape_.size(), 1);
  }
  for (const dimension_grid& e : grids_) chunks_.push_back(e.chunks());
} catch (const json::exception& e) {
  throw store_error(std::string("zarr.json is invalid: ") + e.what());
} catch (const zarrbits::error& e) {
  if (!is_codec_error(e)) throw;
  throw store_error(e.what());
}

void zarr_array::require_decodable() const { decoder_->require_decodable(); }

bool zarr_array::is_regular() const noexcept {
  return std::all_of(grids_.begin(), grids_.end(), [](const dimension_grid& e) { return e.is_regular(); });
}

zarr_array::chunk_index zarr_array::shape_of(const chunk_index& chunk) const {
  chunk_index shape;
  for (std::size_t i = 0; i < chunk.size(); ++i) shape.push_back(grids_[i].length(chunk[i]));
  return shape;
}

std::string zarr_array::key_of(const std::vector<std::uint64_t>& index) const {
  std::string key = v2_keys_ ? "" : "c";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i > 0 || !v2_keys_) key += separator_;
    key += std::to_string(index[i]);
  }
  if (key.empty()) key = "0";
  return key;
}

std::optional<std::vector<std::uint64_t>> zarr_array::index_of(const std::string& key) const {
  std::vector<std::uint64_t> index;
  std::string_view rest = key;
  if (!v2_keys_) {
    if (!rest.starts_with('c')) return {};
    rest.remove_prefix(1);
    if (!rest.empty() && rest[0] != separator_) return {};
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (shape_.empty()) return rest == (v2_keys_ ? "0" : "") ? std::optional(index) : std::nullopt;
  while (index.size() < shape_.size()) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc()) return {};
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    index.push_back(n);
    if (index.size() == shape_.size()) break;
    if (rest.empty() || rest[0] != separator_) return {};
    rest.remove_prefix(1);
  }
  if (!rest.empty()) return {};
  return index;
}

// The shard that holds a chunk, and the chunk's index in it.
zarr_array::chunk_location zarr_array::locate(const chunk_index& chunk) const {
  chunk_location p{chunk_index(chunk.size()), 0};
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    p.shard[i] = chunk[i] / per_shard_[i];
    p.inside = p.inside * per_shard_[i] + chunk[i] % per_shard_[i];
  }
  return p;
}

// Null if absent. The last one stays open, because chunks are read shard by shard.
std::shared_ptr<const zarr_shard> zarr_array::open_shard(const chunk_index& shard) const {
  if (!last_ || last_->first != shard) {
    last_.reset();
    auto object = folder_.open(key_of(shard));
    last_.emplace(shard, object ? std::make_shared<const zarr_shard>(std::move(object), *decoder_) : nullptr);
  }
  return last_->second;
}

bool zarr_array::read_chunk(const chunk_index& chunk, element_buffer& out) const {
  auto stored = read_stored(chunk);
  if (!stored) return false;
  decode(chunk, std::move(*stored), out);
  return true;
}

void zarr_array::decode(const chunk_index& chunk, std::vector<std::byte> stored, element_buffer& out) const {
  if (is_regular()) decode(std::move(stored), out);
  else decoder_->decode(shape_of(chunk), std::move(stored), out);
}

std::optional<std::vector<std::byte>> zarr_array::read_stored(const chunk_index& chunk) const {
  const auto range = find_stored(chunk);
  if (!range) return {};
  return read(*range);
}

std::vector<std::byte> zarr_array::read(const object_range& range) {
  if (range.size > max_object_bytes)
    throw not_supported("an object of " + std::to_string(range.size) + " bytes, which is too large to read at once");
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.size));
  range.object->read(range.offset, bytes);
  return bytes;
}

std::optional<zarr_array::object_range> zarr_array::find_stored(const chunk_index& chunk) const {
  if (!decoder_->shards()) {
    std::shared_ptr<const stored_object> object = folder_.open(key_of(chunk));
    if (!object) return {};
    const std::uint64_t size = object->size();
    return object_range{std::move(object), 0, size};
  }
  const chunk_location place = locate(chunk);
  const auto shard = open_shard(place.shard);
  if (!shard || !shard->has_chunk(place.inside)) return {};
  const auto [offset, size] = shard->range(place.inside);
  return object_range{shard->object(), offset, size};
}

std::unique_ptr<stored_object> zarr_array::open_object(const chunk_index& index) const { return folder_.open(key_of(index)); }

void zarr_array::decode(std::vector<std::byte> stored, element_buffer& out) const { decoder_->decode(std::move(stored), out); }

bool zarr_array::in_storage_order(const chunk_index& a, const chunk_index& b) const {
  const chunk_location p = locate(a), q = locate(b);
  return p.shard != q.shard ? p.shard < q.shard : a < b;
}

bool zarr_array::contains_shard(const chunk_index& shard) const {
  for (std::size_t i = 0; i < shard.size(); ++i) {
    if (shard[i] > chunks_[i] / per_shard_[i] || shard[i] * per_shard_[i] >= chunks_[i]) return false;
  }
  return true;
}

// The existing chunks of a shard, as chunks of the array. False if there are more than `max_count`.
bool zarr_array::list_shard(const chunk_index& shard, std::size_t max_count, std::vector<chunk_index>& out) const {
  const auto open = open_shard(shard);
  for (std::uint64_t k = 0; open && k < open->chunks(); ++k) {
    if (!open->has_chunk(k)) continue;
    if (out.size() >= max_count) return false;
    chunk_index index(shard.size());
    std::uint64_t remaining = k;
    for (std::size_t i = index.size(); i-- > 0;) {
      index[i] = shard[i] * per_shard_[i] + remaining % per_shard_[i];
      remaining /= per_shard_[i];
    }
    // the last shards also have chunks beyond the edge of the array
    if (std::equal(index.begin(), index.end(), chunks_.begin(), std::less<>())) out.push_back(std::move(index));
  }
  return true;
}

// Whether keys of chunks can begin with this one, as a folder.
bool zarr_array::can_hold_objects(std::string key) const {
  for (std::size_t i = 0; separator_ == '/' && i < shape_.size(); ++i) {
    if (index_of(key += "/0")) return true;
  }
  return false;
}

void zarr_array::for_each_object(const std::function<bool(const chunk_index&, const store_entry&)>& callback) const {
  bool keep_going = true;
  // keys have at most one part for each dimension, and "c"
  const std::function<void(const store_folder&, const std::string&, std::size_t)> visit =
      [&](const store_folder& folder, const std::string& prefix, std::size_t depth) {
    folder.list([&](const store_entry& e) {
      if (e.is_folder) {
        if (depth <= shape_.size()) visit(folder / e.name, prefix + e.name + "/", depth + 1);
      } else if (const auto index = index_of(prefix + e.name); index && contains_shard(*index)) {
        keep_going = callback(*index, e);
      } else if (!e.is_readable && can_hold_objects(prefix + e.name)) {
        throw store_error((folder / e.name).name() + " is neither a folder nor a link to one that is there, so that its chunks " +
                          "cannot be read; get the folder");
      }
      return keep_going;
    });
  };
  visit(folder_, "", 0);
}

std::optional<std::vector<zarr_array::chunk_index>> zarr_array::list_chunks(std::size_t max_count) const {
  std::vector<chunk_index> out;
  bool is_complete = true;
  for_each_object([&](const chunk_index& index, const store_entry&) {
    if (decoder_->shards()) is_complete = list_shard(index, max_count, out);
    else if (out.size() >= max_count) is_complete = false;
    else out.push_back(index);
    return is_complete;
  });
  if (!is_complete) return {};
  return out;
}

}  // namespace zarrbits::zarr
