// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/rechunker.hpp"

#include "io/files.hpp"
#include "text/format.hpp"
#include "zarr/write/metadata.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::conversion {

using zarr::element_buffer;
using zarr::zarr_array;
using zarr_strategy = zarr_array_plan::strategy_type;

namespace {

constexpr std::uint64_t piece = 8U << 20;  // of an object that is copied through memory

void sort_unique(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool contains(const std::vector<std::uint64_t>& sorted, std::uint64_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

std::uint64_t product_of(const extents& grid) { return box{extents(grid.size(), 0), grid}.elements(); }

bool is_same_box(const box& a, const box& b) { return a.first == b.first && a.shape == b.shape; }

}  // namespace

rechunker::rechunker(const zarr_array& array, const zarr_array_plan& change, const std::string& path,
                     const convert_options& options, zarr::store_writer* out)
    : array_(array),
      change_(change),
      path_(path),
      options_(options),
      out_(out),
      array_box_{extents(change.shape.size(), 0), change.shape},
      element_(array.type().variable() ? 0 : array.type().size) {
  for (std::size_t d = 0; d < change.shape.size(); ++d) {
    source_chunks_.push_back(array.grid(d).chunks());
    const std::uint64_t per_object = array.chunks_per_shard()[d];
    source_grid_.push_back(source_chunks_[d] / per_object + (source_chunks_[d] % per_object != 0));
  }
  if (change.strategy != zarr_strategy::rechunk && !change.regular) target_grid_ = source_grid_;
  else target_grid_ = grid_of(change.shape, change.object_shape());
  items_grid_ = change.strategy == zarr_strategy::rechunk ? grid_of(change.shape, change.plan.region) : target_grid_;
}

void rechunker::list() {
  for (const extents* grid : {&source_chunks_, &target_grid_, &items_grid_}) product_of(*grid);  // throws
  const std::uint64_t max_count = options_.memory / 8 / sizeof(std::uint64_t);
  const auto too_many = [&] {
    return error(errc::unsupported, "array \"" + path_ + "\" of \"" + options_.source + "\" has or gets more than " +
                                        text::pluralize(max_count, "chunk") +
                                        ", more than the memory can list; increase `memory`, or use larger chunks");
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> listed;
  array_.for_each_object([&](const zarr_array::chunk_index& index, const zarr::store_entry& object) {
    if (listed.size() >= max_count) throw too_many();
    listed.emplace_back(number_of(index, source_grid_), zarr::fingerprint(object.state));
    source_bytes_ += object.size;
    return true;
  });
  std::sort(listed.begin(), listed.end());
  for (const auto& [number, state] : listed) {
    if (!existing_.empty() && existing_.back() == number) continue;  // "0" and "00"
    existing_.push_back(number);
    states_.push_back(state);
  }
  if (change_.strategy == zarr_strategy::copy) {
    items_ = existing_;
    return;
  }
  for (const std::uint64_t number : existing_) {
    const extents object = index_of(number, source_grid_);
    index_range range;
    if (change_.strategy == zarr_strategy::rechunk) {
      const box b = object_box(object);
      if (b.empty()) continue;
      range = overlapping_cells(b, change_.plan.region);
    } else {  // the chunks are the same
      for (std::size_t d = 0; d < object.size(); ++d) {
        const std::uint64_t per_object = array_.chunks_per_shard()[d],
                            last = std::min((object[d] + 1) * per_object, source_chunks_[d]) - 1;
        range.first.push_back(object[d] * per_object / change_.per_shard[d]);
        range.last.push_back(last / change_.per_shard[d]);
      }
    }
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < range.first.size(); ++d) n = saturating_mul(n, range.last[d] - range.first[d] + 1);
    if (n > max_count || items_.size() > max_count - n) {
      sort_unique(items_);
      if (n > max_count || items_.size() > max_count - n) throw too_many();
    }
    each_index(range.first, range.last, [&](const extents& cell) { items_.push_back(number_of(cell, items_grid_)); });
  }
  sort_unique(items_);
}

void rechunker::add_identity(text::sha256& sum) const {
  sum.add_number(existing_.size());
  for (const numbers* sequence : {&existing_, &states_}) {
    for (const std::uint64_t number : *sequence) sum.add_number(number);
  }
}

std::optional<std::uint64_t> rechunker::item_of(std::string_view coordinates) const {
  auto index = zarr::chunk_coordinates(coordinates);
  if (!index || index->size() != target_grid_.size()) return {};
  const extents object = change_.object_shape();
  for (std::size_t d = 0; d < index->size(); ++d) {
    if ((*index)[d] >= target_grid_[d]) return {};
    if (change_.strategy == zarr_strategy::rechunk) (*index)[d] = (*index)[d] * object[d] / change_.plan.region[d];
  }
  const auto entry = std::lower_bound(items_.begin(), items_.end(), number_of(*index, items_grid_));
  if (entry == items_.end() || *entry != number_of(*index, items_grid_)) return {};
  return static_cast<std::uint64_t>(entry - items_.begin());
}

std::uint64_t rechunker::objects() const {
  if (change_.strategy != zarr_strategy::rechunk) return items();
  std::uint64_t per_region = 1;
  const extents object = change_.object_shape();
  for (std::size_t d = 0; d < object.size(); ++d) per_region = saturating_mul(per_region, change_.plan.region[d] / object[d]);
  return std::min(saturating_mul(items(), per_region), product_of(target_grid_));
}

std::uint64_t rechunker::bytes_of(const extents& shape) const {
  std::uint64_t n = std::max<std::uint64_t>(element_bytes(array_.type()), 1);
  for (const std::uint64_t extent : shape) n = saturating_mul(n, extent);
  return n;
}

std::uint64_t rechunker::chunk_bytes() const { return std::max(bytes_of(array_.chunk_shape()), bytes_of(change_.chunk)); }

std::uint64_t rechunker::memory() const {
  const auto bytes_within = [&](extents shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = std::min(shape[d], change_.shape[d]);
    return bytes_of(shape);
  };
  const std::uint64_t source_chunk_bytes = bytes_of(array_.chunk_shape()), target_chunk_bytes = bytes_of(change_.chunk);
  switch (change_.strategy) {
    case zarr_strategy::copy: return piece;
    case zarr_strategy::reshard: return std::max(piece, source_chunk_bytes);
    case zarr_strategy::recode: return saturating_mul(source_chunk_bytes, 4);
    case zarr_strategy::rechunk: break;
  }
  const std::uint64_t region = change_.chunk_by_chunk ? target_chunk_bytes : bytes_within(change_.plan.region);
  const std::uint64_t gathered = change_.plan.two_passes() ? saturating_mul(bytes_within(change_.plan.staged), 2) : 0;
  const std::uint64_t decoded = saturating_mul(source_chunk_bytes, 2), encoded = saturating_mul(target_chunk_bytes, 3);
  return std::max(region, gathered) + std::min(decoded, UINT64_MAX / 4) + std::min(encoded, UINT64_MAX / 4);
}

std::uint64_t rechunker::plain_bytes() const { return saturating_mul(bytes_of(change_.object_shape()), objects()); }

// The elements of an object of the source, within the array.
box rechunker::object_box(const extents& object) const {
  box b;
  for (std::size_t d = 0; d < object.size(); ++d) {
    const std::uint64_t per_object = array_.chunks_per_shard()[d], first = array_.grid(d).start(object[d] * per_object);
    const std::uint64_t next = (object[d] + 1) * per_object;
    const std::uint64_t end = next < source_chunks_[d] ? array_.grid(d).start(next) : change_.shape[d];
    b.first.push_back(first);
    b.shape.push_back(end - first);
  }
  return b;
}

index_range rechunker::source_chunks(const box& b) const {
  index_range range;
  for (std::size_t d = 0; d < b.first.size(); ++d) {
    range.first.push_back(array_.grid(d).chunk_of(b.first[d]));
    range.last.push_back(array_.grid(d).chunk_of(b.first[d] + b.shape[d] - 1));
  }
  return range;
}

// With the elements beyond the edge of the array.
box rechunker::source_box(const extents& chunk) const {
  box b;
  for (std::size_t d = 0; d < chunk.size(); ++d) b.first.push_back(array_.grid(d).start(chunk[d]));
  b.shape = array_.shape_of(chunk);
  return b;
}

extents rechunker::object_of(const extents& chunk) const {
  extents object;
  for (std::size_t d = 0; d < chunk.size(); ++d) object.push_back(chunk[d] / array_.chunks_per_shard()[d]);
  return object;
}

bool rechunker::object_exists(const extents& chunk) const {
  return contains(existing_, number_of(object_of(chunk), source_grid_));
}

error rechunker::has_changed() const {
  return error(errc::changed,
               "array \"" + path_ + "\" of the source \"" + options_.source +
                   "\" was changed while it was converted; convert it when no other process writes to it",
               {options_.source, path_});
}

void rechunker::require_listed(const zarr::stored_object* object, const extents& index) const {
  const auto entry = std::lower_bound(existing_.begin(), existing_.end(), number_of(index, source_grid_));
  if (object && zarr::fingerprint(object->state()) == states_[static_cast<std::size_t>(entry - existing_.begin())]) return;
  throw has_changed();
}

// Where an existing object has the chunk; a shard may be without it.
std::optional<zarr_array::object_range> rechunker::find_chunk(const zarr_array& array, const extents& chunk) const {
  auto stored = array.find_stored(chunk);
  if (stored) require_listed(stored->object.get(), object_of(chunk));
  else require_listed(array.open_object(object_of(chunk)).get(), object_of(chunk));
  return stored;
}

bool rechunker::read(const zarr_array& array, const extents& chunk, element_buffer& target) const {
  const auto stored = find_chunk(array, chunk);
  if (!stored) return false;
  std::vector<std::byte> bytes = zarr_array::read(*stored);
  require_listed(stored->object.get(), object_of(chunk));  // it may have been written in place meanwhile
  array.decode(chunk, std::move(bytes), target);
  return true;
}

std::string rechunker::key_of(const extents& object) const { return zarr::chunk_key(path_ == "/" ? "" : path_, object); }

void rechunker::record_lost_chunk(array_result& result, const extents& chunk, const std::string& reason) const {
  if (!options_.keep_going)
    throw error(errc::damaged_source,
                "chunk " + (chunk.empty() ? "0" : joined_text(chunk, '/')) + " of \"" + path_ + "\" in \"" + options_.source +
                    "\" is damaged: " + reason + "; leave such chunks out with `keep_going`",
                {options_.source, path_});
  result.lost_chunks.emplace(chunk, reason);
}

rechunker::values rechunker::filled(const box& b) const {
  values v;
  const auto n = static_cast<std::size_t>(b.elements());
  if (array_.type().variable()) {
    v.strings.assign(n, array_.fill().strings[0]);
  } else {
    v.data.resize(n * static_cast<std::size_t>(element_));
    fill_elements(v.data, array_.fill().data);
  }
  return v;
}

void rechunker::read_chunks(const zarr_array& array, const box& b, values& target, numbers& present, array_result& result) const {
  const index_range range = source_chunks(b);
  std::vector<extents> chunks;
  each_index(range.first, range.last, [&](const extents& chunk) {
    if (object_exists(chunk)) chunks.push_back(chunk);
  });
  std::sort(chunks.begin(), chunks.end(), [&](const extents& x, const extents& y) { return array.in_storage_order(x, y); });
  element_buffer one;
  for (const extents& chunk : chunks) {
    try {
      if (!read(array, chunk, one)) continue;
    } catch (const zarr::store_error& e) {
      if (e.code == errc::changed) throw has_changed();
      record_lost_chunk(result, chunk, e.what());
      continue;
    }
    const box chunk_box = source_box(chunk), shared = intersect(chunk_box, b);
    if (array.type().variable()) copy_elements(one.strings, chunk_box, target.strings, b, shared);
    else copy_elements(one.data, chunk_box, target.data, b, shared, static_cast<std::size_t>(element_));
    present.push_back(number_of(chunk, source_chunks_));
  }
}

bool rechunker::is_present(const box& b, const numbers& present) const {
  const index_range range = source_chunks(b);
  bool has_chunk = false;
  // rows of chunks are ranges of numbers
  extents first = range.first, last = range.last;
  std::uint64_t row = 1;
  if (!first.empty()) {
    row = last.back() - first.back() + 1;
    last.back() = first.back();
  }
  each_index(first, last, [&](const extents& chunk) {
    if (has_chunk) return;
    const std::uint64_t number = number_of(chunk, source_chunks_);
    const auto next = std::lower_bound(present.begin(), present.end(), number);
    has_chunk = next != present.end() && *next - number < row;
  });
  return has_chunk;
}

// Writes an object of chunks, of which make() gives one, or none.
template <class Make>
void rechunker::write_object(const extents& object, const Make& make, array_result& result) const {
  const std::string key = key_of(object);
  if (!change_.shards) {
    if (auto bytes = make(object, nullptr, 0)) {
      out_->put(key, *bytes);
      result.store_bytes += bytes->size();
    }
    return;
  }
  zarr::shard_writer shard(*out_, key, static_cast<std::size_t>(product_of(change_.per_shard)));
  const extents grid = grid_of(change_.shape, change_.chunk);
  extents first, last;
  for (std::size_t d = 0; d < object.size(); ++d) {
    first.push_back(object[d] * change_.per_shard[d]);
    last.push_back(std::min(first[d] + change_.per_shard[d], grid[d]) - 1);
  }
  each_index(first, last, [&](const extents& chunk) {
    extents inside;
    for (std::size_t d = 0; d < chunk.size(); ++d) inside.push_back(chunk[d] - first[d]);
    const auto number = static_cast<std::size_t>(number_of(inside, change_.per_shard));
    if (auto bytes = make(chunk, &shard, number)) shard.add(number, *bytes);
  });
  result.store_bytes += shard.commit();
}

void rechunker::copy_object(const zarr_array& array, const extents& object, array_result& result) const {
  const auto source = array.open_object(object);
  require_listed(source.get(), object);
  const std::string key = key_of(object);
  const std::uint64_t size = source->size();
  if (source->descriptor() >= 0) {
    out_->put_range(key, source->descriptor(), 0, size);
  } else if (size <= piece) {
    out_->put(key, zarr::read_object(*source, piece));
  } else {
    const auto target = out_->begin(key);
    std::vector<std::byte> bytes;
    for (std::uint64_t offset = 0; offset < size; offset += bytes.size()) {
      bytes.resize(static_cast<std::size_t>(std::min(piece, size - offset)));
      source->read(offset, bytes);
      target->append(bytes);
    }
    target->commit();
  }
  require_listed(source.get(), object);  // it may have been written in place meanwhile
  result.store_bytes += size;
  ++result.counts.raw;
}

// The bytes of a chunk that stays as it is, or none if it does not exist or the kernel has copied it.
std::optional<compressors::buffer> rechunker::resharded(const zarr_array& array, const extents& object, const extents& chunk,
                                                        zarr::shard_writer* shard, std::size_t number,
                                                        array_result& result) const {
  const auto stored = find_chunk(array, chunk);
  if (!stored) return {};
  ++result.counts.raw;
  const int file = stored->object->descriptor();
  if (file < 0) {
    const std::vector<std::byte> bytes = zarr_array::read(*stored);
    return compressors::buffer(bytes.begin(), bytes.end());
  }
  const std::uint64_t sizes[] = {stored->size};
  if (shard) {
    shard->add_range(number, file, stored->offset, sizes);
  } else {
    out_->put_range(key_of(object), file, stored->offset, stored->size);
    result.store_bytes += stored->size;
  }
  require_listed(stored->object.get(), object_of(chunk));  // it may have been written in place meanwhile
  return {};
}

// Chunks of the same shape, in other objects or with other codecs.
void rechunker::make_object(const zarr_array& array, const extents& object, array_result& result) const {
  element_buffer one;
  write_object(
      object,
      [&](const extents& chunk, zarr::shard_writer* shard, std::size_t number) -> std::optional<compressors::buffer> {
        try {
          if (!object_exists(chunk)) return {};
          if (change_.strategy == zarr_strategy::reshard) return resharded(array, object, chunk, shard, number, result);
          if (!read(array, chunk, one)) return {};
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          record_lost_chunk(result, chunk, e.what());
          return {};
        }
        ++result.counts.recoded;
        const extents shape = array.shape_of(chunk);
        return array.type().variable() ? change_.encoder->encode(one.strings, shape) : change_.encoder->encode(one.data, shape);
      },
      result);
}

// Bit by bit: -0.0 is not 0.0, and a NaN may hold more than another one.
bool rechunker::is_fill(const values& v) const {
  const zarr::element_buffer& fill = array_.fill();
  if (array_.type().variable())
    return std::all_of(v.strings.begin(), v.strings.end(), [&](const std::string& s) { return s == fill.strings[0]; });
  // each element is as the one before it
  const auto size = static_cast<std::size_t>(element_);
  return v.data.empty() || (std::memcmp(v.data.data(), fill.data.data(), size) == 0 &&
                            std::memcmp(v.data.data(), v.data.data() + size, v.data.size() - size) == 0);
}

// Encodes a chunk whose elements in the array are in `from`; none if it has only the fill value.
std::optional<compressors::buffer> rechunker::encoded(const values& from, const box& of_from, const box& chunk,
                                                      const box& inside) const {
  const bool strings = array_.type().variable();
  const auto encode = [&](const values& v) -> std::optional<compressors::buffer> {
    if (!options_.write_empty_chunks && is_fill(v)) return {};
    return strings ? change_.encoder->encode(v.strings, chunk.shape) : change_.encoder->encode(v.data, chunk.shape);
  };
  if (is_same_box(chunk, of_from)) return encode(from);
  values one;
  if (!is_same_box(chunk, inside)) one = filled(chunk);
  else if (strings) one.strings.resize(static_cast<std::size_t>(chunk.elements()));
  else one.data.resize(static_cast<std::size_t>(chunk.elements() * element_));
  if (strings) copy_elements(from.strings, of_from, one.strings, chunk, inside);
  else copy_elements(from.data, of_from, one.data, chunk, inside, static_cast<std::size_t>(element_));
  return encode(one);
}

// Calls `callback` with the chunks of a region, with and without the elements beyond the edge of the array, and writes
// its results.
template <class Each>
void rechunker::write_region(const box& region, const Each& callback, array_result& result) const {
  const index_range objects = overlapping_cells(region, change_.object_shape());
  each_index(objects.first, objects.last, [&](const extents& object) {
    write_object(
        object,
        [&](const extents& chunk, zarr::shard_writer*, std::size_t) -> std::optional<compressors::buffer> {
          const box chunk_box = {cell_box(chunk, change_.chunk, change_.shape).first, change_.chunk},
                    inside = intersect(chunk_box, array_box_);
          auto bytes = inside.empty() ? std::nullopt : callback(chunk_box, inside);
          if (bytes) ++result.counts.recoded;
          return bytes;
        },
        result);
  });
}

void rechunker::make_region(const zarr_array& array, const extents& index, array_result& result) const {
  const box region = cell_box(index, change_.plan.region, change_.shape);
  if (change_.chunk_by_chunk) return make_chunk_by_chunk(array, region, result);
  values v = filled(region);
  numbers chunks_read;
  if (scratch_) read_tiles(region, v);
  else read_chunks(array, region, v, chunks_read, result);
  std::sort(chunks_read.begin(), chunks_read.end());
  const numbers& present = scratch_ ? present_ : chunks_read;
  write_region(
      region,
      [&](const box& chunk, const box& inside) -> std::optional<compressors::buffer> {
        if (!is_present(inside, present)) return {};
        return encoded(v, region, chunk, inside);
      },
      result);
}

// Like make_region(), if the memory does not hold the region.
void rechunker::make_chunk_by_chunk(const zarr_array& array, const box& region, array_result& result) const {
  write_region(
      region,
      [&](const box& chunk, const box& inside) -> std::optional<compressors::buffer> {
        values v = filled(inside);
        numbers chunks_read;
        read_chunks(array, inside, v, chunks_read, result);
        if (chunks_read.empty()) return {};
        return encoded(v, inside, chunk, inside);
      },
      result);
}

array_result rechunker::make(std::uint64_t first, std::uint64_t count) const {
  array_result result;
  const zarr_array array = array_;  // it keeps a shard open, so each thread has its own
  for (std::uint64_t i = first; i < first + count; ++i) {
    const extents index = index_of(items_.at(static_cast<std::size_t>(i)), items_grid_);
    switch (change_.strategy) {
      case zarr_strategy::copy: try { copy_object(array, index, result);
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          record_lost_chunk(result, index, e.what());
        }
        break;
      case zarr_strategy::reshard:
      case zarr_strategy::recode: make_object(array, index, result); break;
      case zarr_strategy::rechunk: make_region(array, index, result); break;
    }
  }
  result.counts.lost = result.lost_chunks.size();
  if (change_.strategy == zarr_strategy::recode || change_.strategy == zarr_strategy::rechunk) result.worst = outcome::recoded;
  return result;
}

// The tiles of a region are stored one after the other, and the regions, too.
std::uint64_t rechunker::tile_offset(const box& tile, const box& region) const {
  return (elements_before(region, array_box_) + elements_before(tile, region)) * element_;
}

std::uint64_t rechunker::plan_staging(const std::vector<bool>& needed, const std::string& scratch_folder) {
  scratch_ = std::make_unique<scratch_file>(scratch_folder);
  staged_grid_ = grid_of(change_.shape, change_.plan.staged);
  product_of(staged_grid_);  // throws
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (needed[i]) needed_.push_back(items_[i]);
  }
  std::size_t capacity = std::size_t{1} << 20;
  for (const std::uint64_t number : existing_) {
    const box b = object_box(index_of(number, source_grid_));
    if (b.empty()) continue;
    const index_range range = overlapping_cells(b, change_.plan.staged);
    each_index(range.first, range.last, [&](const extents& cell) { staged_.push_back(number_of(cell, staged_grid_)); });
    if (staged_.size() < capacity) continue;
    sort_unique(staged_);
    capacity = std::max(capacity, 2 * staged_.size());
  }
  sort_unique(staged_);
  if (needed_.size() < items_.size()) {
    std::erase_if(staged_, [&](std::uint64_t number) {
      const index_range regions =
          overlapping_cells(cell_box(index_of(number, staged_grid_), change_.plan.staged, change_.shape), change_.plan.region);
      bool is_needed = false;
      each_index(regions.first, regions.last,
                 [&](const extents& cell) { is_needed = is_needed || contains(needed_, number_of(cell, items_grid_)); });
      return !is_needed;
    });
  }
  return staged_.size();
}

void rechunker::stage(std::uint64_t number, array_result& result) {
  const zarr_array array = array_;
  const box b =
      cell_box(index_of(staged_.at(static_cast<std::size_t>(number)), staged_grid_), change_.plan.staged, change_.shape);
  values v = filled(b);
  numbers chunks_read;
  read_chunks(array, b, v, chunks_read, result);
  const index_range regions = overlapping_cells(b, change_.plan.region);
  compressors::buffer bytes;
  each_index(regions.first, regions.last, [&](const extents& cell) {
    if (!contains(needed_, number_of(cell, items_grid_))) return;
    const box region = cell_box(cell, change_.plan.region, change_.shape), tile = intersect(region, b);
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    copy_elements(v.data, b, bytes, tile, tile, static_cast<std::size_t>(element_));
    scratch_->write(tile_offset(tile, region), bytes);
  });
  const std::lock_guard lock(mutex_);
  present_.insert(present_.end(), chunks_read.begin(), chunks_read.end());
}

void rechunker::finish_staging() { sort_unique(present_); }

void rechunker::read_tiles(const box& region, values& target) const {
  const index_range boxes = overlapping_cells(region, change_.plan.staged);
  compressors::buffer bytes;
  each_index(boxes.first, boxes.last, [&](const extents& cell) {
    if (!contains(staged_, number_of(cell, staged_grid_))) return;
    const box tile = intersect(region, cell_box(cell, change_.plan.staged, change_.shape));
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    scratch_->read(tile_offset(tile, region), bytes);
    copy_elements(bytes, tile, target.data, region, tile, static_cast<std::size_t>(element_));
  });
}

}  // namespace zarrbits::conversion
