// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/zarr_reader.hpp"

#include "text/format.hpp"
#include "zarr/read/chunk_decoder.hpp"
#include "zarr/read/zarr_shard.hpp"

#include <algorithm>

namespace zarrbits::zarr {

using nlohmann::json;

namespace {

constexpr std::uint64_t max_object_bytes = 2u << 30;  // limit for one object in memory

}  // namespace

zarr_array::zarr_array(store_folder folder, decoder_factory make_decoder) try : folder_(std::move(folder)) {
  const metadata::parsed_array parsed = as_store_errors([&] { return metadata::parse_array(read_node(folder_)); });
  shape_ = parsed.shape;
  grids_ = parsed.grid;
  keys_ = parsed.keys;
  for (const metadata::dimension_grid& e : grids_) chunk_shape_.push_back(e.max_length());
  type_ = parse_type(parsed.data_type);
  fill_ = parse_fill(type_, parsed.fill_value);
  decoder_ = make_decoder({parsed.codecs, parsed.data_type, type_, chunk_shape_, folder_.max_string_bytes});
  if (const auto& shards = decoder_->shards()) {
    if (const std::uint64_t size = shards->index_size; size > folder_.max_string_bytes)
      throw not_supported(reason_code::too_large,
                          "an index of a shard that takes " + text::format_bytes(size) + " of memory, more than the " +
                              text::format_bytes(folder_.max_string_bytes) + " that are allowed; increase `memory`");
    if (!is_regular()) throw not_supported(reason_code::unsupported_feature, "shards in a rectilinear chunk grid");
    for (std::size_t i = 0; i < shape_.size(); ++i) per_shard_.push_back(chunk_shape_[i] / shards->chunk_shape[i]);
    chunk_shape_ = shards->chunk_shape;
    for (std::size_t i = 0; i < shape_.size(); ++i) grids_[i] = metadata::dimension_grid::regular(chunk_shape_[i], shape_[i]);
  } else {
    per_shard_.assign(shape_.size(), 1);
  }
  for (const metadata::dimension_grid& e : grids_) chunks_.push_back(e.chunks());
} catch (const json::exception& e) {
  throw store_error(std::string("zarr.json is invalid: ") + e.what());
} catch (const zarrbits::error& e) {
  if (!is_codec_error(e)) throw;
  throw store_error(e.what(), errc::damaged_store, text::reason_code_of(e.kind()));
}

void zarr_array::require_decodable() const { decoder_->require_decodable(); }

bool zarr_array::is_regular() const noexcept {
  return std::all_of(grids_.begin(), grids_.end(), [](const metadata::dimension_grid& e) { return e.is_regular(); });
}

zarr_array::chunk_index zarr_array::shape_of(const chunk_index& chunk) const {
  chunk_index shape;
  for (std::size_t i = 0; i < chunk.size(); ++i) shape.push_back(grids_[i].length(chunk[i]));
  return shape;
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
    auto object = folder_.open(keys_.key(shard));
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
    throw not_supported(reason_code::too_large,
                        "an object of " + std::to_string(range.size) + " bytes, which is too large to read at once");
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.size));
  range.object->read(range.offset, bytes);
  return bytes;
}

std::optional<zarr_array::object_range> zarr_array::find_stored(const chunk_index& chunk) const {
  if (!decoder_->shards()) {
    std::shared_ptr<const stored_object> object = folder_.open(keys_.key(chunk));
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

std::unique_ptr<stored_object> zarr_array::open_object(const chunk_index& index) const { return folder_.open(keys_.key(index)); }

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
  for (std::size_t i = 0; keys_.separator == '/' && i < shape_.size(); ++i) {
    if (keys_.index(key += "/0", shape_.size())) return true;
  }
  return false;
}

void zarr_array::for_each_object(const std::function<bool(const chunk_index&, const store_entry&)>& callback) const {
  for_each_object(callback, {});
}

void zarr_array::for_each_object(const std::function<bool(const chunk_index&, const store_entry&)>& callback,
                                 const other_visitor& other) const {
  bool keep_going = true;
  // keys have at most one part for each dimension, and "c"
  const std::function<void(const store_folder&, const std::string&, std::size_t)> visit =
      [&](const store_folder& folder, const std::string& prefix, std::size_t depth) {
    folder.list([&](const store_entry& e) {
      if (e.is_folder) {
        if (depth <= shape_.size()) visit(folder / e.name, prefix + e.name + "/", depth + 1);
        else if (other) other(prefix + e.name, e, {});
        return keep_going;
      }
      const std::string key = prefix + e.name;
      const auto index = keys_.index(key, shape_.size());
      // readers of "c/0" do not find "c/00"
      const bool is_chunk = index && (!other || keys_.key(*index) == key);
      if (is_chunk && contains_shard(*index)) {
        keep_going = callback(*index, e);
      } else if (other && (e.is_readable || !can_hold_objects(key))) {
        if (key != "zarr.json") other(key, e, is_chunk ? index : std::nullopt);
      } else if (!e.is_readable && can_hold_objects(key)) {
        throw store_error((folder / e.name).name() + " is neither a folder nor a link to one that is there, so that its chunks " +
                          "cannot be read; get the folder");
      }
      return keep_going;
    });
  };
  visit(folder_, "", 0);
}

bool zarr_array::is_sharded() const noexcept { return decoder_->shards().has_value(); }

std::optional<std::vector<zarr_array::chunk_index>> zarr_array::list_chunks_of(const chunk_index& object,
                                                                               std::size_t max_count) const {
  std::vector<chunk_index> out;
  if (!decoder_->shards()) out.push_back(object);
  else if (!list_shard(object, max_count, out)) return {};
  return out;
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
