// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/rechunker.hpp"

#include "io/files.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "metadata/node.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::conversion {

using zarr::element_buffer;
namespace {

constexpr std::uint64_t piece = 8U << 20;  // of an object that is copied through memory

void sort_unique(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool contains(const std::vector<std::uint64_t>& sorted, std::uint64_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

// Throws if it is more than 2^64.
std::uint64_t product_of(const array::extents& grid) { return array::box{array::extents(grid.size(), 0), grid}.elements(); }

}  // namespace

rechunker::rechunker(const source_array& array, const zarr_array_plan& change, const std::string& path,
                     const convert_options& options, zarr::store_writer* out)
    : array_(array),
      change_(change),
      path_(path),
      options_(options),
      out_(out),
      array_box_{array::extents(change.shape.size(), 0), change.shape},
      element_(array.type().variable() ? 0 : array.type().size),
      target_chunks_{change.shape, change.chunk},
      target_objects_{change.shape, change.object_shape()},
      regions_{change.shape, change.plan.region},
      staged_boxes_{change.shape, change.plan.staged} {
  for (std::size_t d = 0; d < change.shape.size(); ++d) {
    source_chunks_.push_back(array.grid(d).chunks());
    const std::uint64_t per_object = array.chunks_per_shard()[d];
    source_grid_.push_back(source_chunks_[d] / per_object + (source_chunks_[d] % per_object != 0));
  }
  if (change.strategy != zarr_strategy::rechunk && !change.regular) target_grid_ = source_grid_;
  else target_grid_ = target_objects_.counts();
  items_grid_ = change.strategy == zarr_strategy::rechunk ? regions_.counts() : target_grid_;
}

void rechunker::list() {
  for (const array::extents* grid : {&source_chunks_, &target_grid_, &items_grid_}) product_of(*grid);  // throws
  const std::uint64_t max_count = options_.execution.memory / 8 / sizeof(std::uint64_t);
  const auto too_many = [&] {
    return error(errc::unsupported, "array \"" + path_ + "\" of \"" + options_.source.name + "\" has or gets more than " +
                                        text::pluralize(max_count, "chunk") +
                                        ", more than the memory can list; increase `memory`, or use larger chunks");
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> listed;
  array_.for_each_object([&](const array::extents& index, const zarr::store_entry& object, std::size_t part) {
    if (listed.size() >= max_count) throw too_many();
    listed.emplace_back(array::ravel(index, source_grid_), zarr::fingerprint(object.state));
    source_bytes_ += object.size;
    if (bytes_of_parts_.size() <= part) bytes_of_parts_.resize(part + 1);
    bytes_of_parts_[part] += object.size;
    return true;
  });
  std::sort(listed.begin(), listed.end());
  for (const auto& [number, state] : listed) {
    if (!existing_.empty() && existing_.back() == number) continue;  // "0" and "00"
    existing_.push_back(number);
    states_.push_back(state);
  }
  if (change_.writes_gaps && (has_gaps() || options_.execution.keep_going || array::product(array_.chunks_per_shard()) > 1)) {
    const std::uint64_t n = product_of(items_grid_);
    if (n > max_count) throw too_many();
    require_plausible_gaps();
    gap_encoder_.emplace(change_.codecs, metadata::data_type_of(change_.document));
    for (std::uint64_t number = 0; number < n; ++number) items_.push_back(number);
    return;
  }
  if (change_.strategy == zarr_strategy::copy) {
    items_ = existing_;
    return;
  }
  for (const std::uint64_t number : existing_) {
    const array::extents object = array::unravel(number, source_grid_);
    array::box range;
    if (change_.strategy == zarr_strategy::rechunk) {
      const array::box b = object_box(object);
      if (b.empty()) continue;
      range = regions_.chunks_over(b);
    } else {  // the chunks are the same
      for (std::size_t d = 0; d < object.size(); ++d) {
        const std::uint64_t per_object = array_.chunks_per_shard()[d],
                            last = std::min((object[d] + 1) * per_object, source_chunks_[d]) - 1;
        range.first.push_back(object[d] * per_object / change_.per_shard[d]);
        range.shape.push_back(last / change_.per_shard[d] - range.first[d] + 1);
      }
    }
    const std::uint64_t n = array::product(range.shape);
    if (n > max_count || items_.size() > max_count - n) {
      sort_unique(items_);
      if (n > max_count || items_.size() > max_count - n) throw too_many();
    }
    array::for_each_index(range, [&](const array::extents& cell) { items_.push_back(array::ravel(cell, items_grid_)); });
  }
  sort_unique(items_);
}

// Throws if chunks that are missing would take far more than those that are not.
void rechunker::require_plausible_gaps() const {
  constexpr std::uint64_t max_ratio = 1000, max_chunk_bytes = std::uint64_t{2} << 30;
  const std::uint64_t missing = product_of(source_grid_) - existing_.size(),
                      object = array::saturating_mul(bytes_of(array_.chunk_shape()), array::product(array_.chunks_per_shard())),
                      plain = array::saturating_mul(missing, object);
  const bool is_plausible = options_.execution.allow_expansion ||
                            plain <= std::max<std::uint64_t>(options_.execution.memory, 64U << 20) ||
                            plain / max_ratio <= source_bytes_;
  if (is_plausible && chunk_bytes() <= max_chunk_bytes) return;
  throw error(errc::unsupported, "Zarr v2 cannot have its fill value, and chunks that are missing would become " +
                                     text::format_bytes(plain) +
                                     ", more than 1,000 times as much as the others, and more than `memory` allows; set " +
                                     "`zarr_format` to 3, or `allow_expansion` if the store can be trusted");
}

void rechunker::add_identity(text::sha256& sum) const {
  sum.add_number(existing_.size());
  for (const numbers* sequence : {&existing_, &states_}) {
    for (const std::uint64_t number : *sequence) sum.add_number(number);
  }
}

std::optional<std::uint64_t> rechunker::item_of(std::string_view coordinates) const {
  auto index = metadata::chunk_coordinates(coordinates);
  if (!index || index->size() != target_grid_.size()) return {};
  const array::extents object = change_.object_shape();
  for (std::size_t d = 0; d < index->size(); ++d) {
    if ((*index)[d] >= target_grid_[d]) return {};
    if (change_.strategy == zarr_strategy::rechunk) (*index)[d] = (*index)[d] * object[d] / change_.plan.region[d];
  }
  const auto entry = std::lower_bound(items_.begin(), items_.end(), array::ravel(*index, items_grid_));
  if (entry == items_.end() || *entry != array::ravel(*index, items_grid_)) return {};
  return static_cast<std::uint64_t>(entry - items_.begin());
}

bool rechunker::has_gaps() const { return existing_.size() < product_of(source_grid_); }

std::uint64_t rechunker::objects() const {
  if (change_.strategy != zarr_strategy::rechunk) return items();
  std::uint64_t per_region = 1;
  const array::extents object = change_.object_shape();
  for (std::size_t d = 0; d < object.size(); ++d)
    per_region = array::saturating_mul(per_region, change_.plan.region[d] / object[d]);
  return std::min(array::saturating_mul(items(), per_region), product_of(target_grid_));
}

std::uint64_t rechunker::bytes_of(const array::extents& shape) const {
  return array::saturating_mul(array::product(shape), std::max<std::uint64_t>(element_bytes(array_.type()), 1));
}

std::uint64_t rechunker::chunk_bytes() const { return std::max(bytes_of(array_.chunk_shape()), bytes_of(change_.chunk)); }

std::uint64_t rechunker::memory() const {
  const auto bytes_within = [&](array::extents shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = std::min(shape[d], change_.shape[d]);
    return bytes_of(shape);
  };
  const std::uint64_t source_chunk_bytes = bytes_of(array_.chunk_shape()), target_chunk_bytes = bytes_of(change_.chunk);
  switch (change_.strategy) {
    case zarr_strategy::copy: return piece;
    case zarr_strategy::reshard: return std::max(piece, source_chunk_bytes);
    case zarr_strategy::recode: return array::saturating_mul(source_chunk_bytes, 4);
    case zarr_strategy::rechunk: break;
  }
  const std::uint64_t region = change_.chunk_by_chunk ? target_chunk_bytes : bytes_within(change_.plan.region);
  const std::uint64_t gathered = change_.plan.two_passes() ? array::saturating_mul(bytes_within(change_.plan.staged), 2) : 0;
  const std::uint64_t decoded = array::saturating_mul(source_chunk_bytes, 2),
                      encoded = array::saturating_mul(target_chunk_bytes, 3);
  return std::max(region, gathered) + std::min(decoded, UINT64_MAX / 4) + std::min(encoded, UINT64_MAX / 4);
}

std::uint64_t rechunker::plain_bytes() const { return array::saturating_mul(bytes_of(change_.object_shape()), objects()); }

// The elements of an object of the source, within the array.
array::box rechunker::object_box(const array::extents& object) const {
  array::box b;
  for (std::size_t d = 0; d < object.size(); ++d) {
    const std::uint64_t per_object = array_.chunks_per_shard()[d], first = array_.grid(d).start(object[d] * per_object);
    const std::uint64_t next = (object[d] + 1) * per_object;
    const std::uint64_t end = next < source_chunks_[d] ? array_.grid(d).start(next) : change_.shape[d];
    b.first.push_back(first);
    b.shape.push_back(end - first);
  }
  return b;
}

array::box rechunker::source_chunks(const array::box& b) const {
  array::box chunks;
  for (std::size_t d = 0; d < b.first.size(); ++d) {
    chunks.first.push_back(array_.grid(d).chunk_of(b.first[d]));
    chunks.shape.push_back(array_.grid(d).chunk_of(b.first[d] + b.shape[d] - 1) - chunks.first[d] + 1);
  }
  return chunks;
}

// With the elements beyond the edge of the array.
array::box rechunker::source_box(const array::extents& chunk) const {
  array::box b;
  for (std::size_t d = 0; d < chunk.size(); ++d) b.first.push_back(array_.grid(d).start(chunk[d]));
  b.shape = array_.shape_of(chunk);
  return b;
}

array::extents rechunker::object_of(const array::extents& chunk) const {
  array::extents object;
  for (std::size_t d = 0; d < chunk.size(); ++d) object.push_back(chunk[d] / array_.chunks_per_shard()[d]);
  return object;
}

bool rechunker::object_exists(const array::extents& chunk) const {
  return contains(existing_, array::ravel(object_of(chunk), source_grid_));
}

error rechunker::has_changed() const {
  return error(errc::changed,
               "array \"" + path_ + "\" of the source \"" + options_.source.name +
                   "\" was changed while it was converted; convert it when no other process writes to it",
               {options_.source.name, path_});
}

void rechunker::require_listed(const zarr::stored_object* object, const array::extents& index) const {
  const auto entry = std::lower_bound(existing_.begin(), existing_.end(), array::ravel(index, source_grid_));
  if (object && zarr::fingerprint(object->state()) == states_[static_cast<std::size_t>(entry - existing_.begin())]) return;
  throw has_changed();
}

// Where an existing object has the chunk; a shard may be without it.
std::optional<zarr::zarr_array::object_range> rechunker::find_chunk(const source_array& array,
                                                                    const array::extents& chunk) const {
  auto stored = array.find_stored(chunk);
  if (stored) require_listed(stored->object.get(), object_of(chunk));
  else require_listed(array.open_object(object_of(chunk)).get(), object_of(chunk));
  return stored;
}

bool rechunker::read(const source_array& array, const array::extents& chunk, element_buffer& target) const {
  const auto stored = find_chunk(array, chunk);
  if (!stored) return false;
  std::vector<std::byte> bytes = zarr::zarr_array::read(*stored);
  require_listed(stored->object.get(), object_of(chunk));  // it may have been written in place meanwhile
  array.decode(chunk, std::move(bytes), target);
  return true;
}

std::string rechunker::key_of(const array::extents& object) const {
  return metadata::chunk_key(path_ == "/" ? "" : path_, object);
}

void rechunker::record_lost_chunk(array_result& result, const array::extents& chunk, const std::string& reason) const {
  if (!options_.execution.keep_going) {
    const auto [store, index] = array_.find_source(chunk);
    const std::string& source = store.empty() ? options_.source.name : store;
    throw error(errc::damaged_source,
                "chunk " + (index.empty() ? "0" : array::joined_text(index, '/')) + " of \"" + path_ + "\" in \"" + source +
                    "\" is damaged: " + reason + "; leave such chunks out with `keep_going`",
                {source, path_});
  }
  result.lost_chunks.emplace(chunk, reason);
}

rechunker::values rechunker::filled(const array::box& b) const {
  values v;
  const auto n = static_cast<std::size_t>(b.elements());
  if (array_.type().variable()) {
    v.strings.assign(n, array_.fill().strings[0]);
  } else {
    v.data.resize(n * static_cast<std::size_t>(element_));
    array::fill_elements(v.data, array_.fill().data);
  }
  return v;
}

void rechunker::read_chunks(const source_array& array, const array::box& b, values& target, numbers& present,
                            array_result& result) const {
  std::vector<array::extents> chunks;
  array::for_each_index(source_chunks(b), [&](const array::extents& chunk) {
    if (object_exists(chunk)) chunks.push_back(chunk);
  });
  std::sort(chunks.begin(), chunks.end(),
            [&](const array::extents& x, const array::extents& y) { return array.in_storage_order(x, y); });
  element_buffer one;
  for (const array::extents& chunk : chunks) {
    try {
      if (!read(array, chunk, one)) continue;
    } catch (const zarr::store_error& e) {
      if (e.code == errc::changed) throw has_changed();
      record_lost_chunk(result, chunk, e.what());
      continue;
    }
    const array::box chunk_box = source_box(chunk), shared = array::intersect(chunk_box, b);
    if (array.type().variable()) array::copy_elements(one.strings, chunk_box, target.strings, b, shared);
    else array::copy_elements(one.data, chunk_box, target.data, b, shared, static_cast<std::size_t>(element_));
    present.push_back(array::ravel(chunk, source_chunks_));
  }
}

bool rechunker::is_present(const array::box& b, const numbers& present) const {
  bool has_chunk = false;
  // rows of chunks are ranges of numbers
  array::box rows = source_chunks(b);
  const std::uint64_t row = rows.shape.empty() ? 1 : std::exchange(rows.shape.back(), 1);
  array::for_each_index(rows, [&](const array::extents& chunk) {
    if (has_chunk) return;
    const std::uint64_t number = array::ravel(chunk, source_chunks_);
    const auto next = std::lower_bound(present.begin(), present.end(), number);
    has_chunk = next != present.end() && *next - number < row;
  });
  return has_chunk;
}

// Writes an object of chunks, of which make() gives one, or none.
template <class Make>
void rechunker::write_object(const array::extents& object, const Make& make, array_result& result) const {
  const std::string key = key_of(object);
  if (!change_.shards) {
    if (auto bytes = make(object, nullptr, 0)) {
      out_->put(key, *bytes);
      result.store_bytes += bytes->size();
    }
    return;
  }
  zarr::shard_writer shard(*out_, key, static_cast<std::size_t>(product_of(change_.per_shard)));
  const array::chunk_grid shards = array::shards_of(target_chunks_, change_.per_shard);
  array::for_each_index(shards.box_of(object), [&](const array::extents& chunk) {
    const auto number = static_cast<std::size_t>(shards.offset_in_chunk(chunk));
    if (auto bytes = make(chunk, &shard, number)) shard.add(number, *bytes);
  });
  result.store_bytes += shard.commit();
}

bool rechunker::refer_to(const std::string& key, const zarr::stored_object& object, std::uint64_t offset,
                         std::uint64_t size) const {
  if (!out_->supports_references()) return false;
  const auto location = object.location();
  if (!location) return false;
  if (location->descriptor >= 0) out_->put_range(key, location->descriptor, location->offset + offset, size);
  else out_->put_reference(key, location->url, location->state, location->offset + offset, size);
  return true;
}

void rechunker::copy_object(const source_array& array, const array::extents& object, array_result& result) const {
  const auto source = array.open_object(object);
  require_listed(source.get(), object);
  const std::string key = key_of(object);
  const std::uint64_t size = source->size();
  if (refer_to(key, *source, 0, size)) {
    // nothing to copy
  } else if (source->descriptor() >= 0) {
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
std::optional<compressors::buffer> rechunker::resharded(const source_array& array, const array::extents& object,
                                                        const array::extents& chunk, zarr::shard_writer* shard,
                                                        std::size_t number, array_result& result) const {
  const auto stored = find_chunk(array, chunk);
  if (!stored) return missing_chunk(array, chunk);
  ++result.counts.raw;
  if (!shard && refer_to(key_of(object), *stored->object, stored->offset, stored->size)) {
    result.store_bytes += stored->size;
    require_listed(stored->object.get(), object_of(chunk));
    return {};
  }
  const int file = stored->object->descriptor();
  if (file < 0) {
    const std::vector<std::byte> bytes = zarr::zarr_array::read(*stored);
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
void rechunker::make_object(const source_array& array, const array::extents& object, array_result& result) const {
  element_buffer one;
  write_object(
      object,
      [&](const array::extents& chunk, zarr::shard_writer* shard, std::size_t number) -> std::optional<compressors::buffer> {
        try {
          if (!object_exists(chunk)) return missing_chunk(array, chunk);
          if (change_.strategy == zarr_strategy::reshard || (change_.keeps_stored_chunks && array.is_stored_chunk(chunk)))
            return resharded(array, object, chunk, shard, number, result);
          if (!read(array, chunk, one)) return missing_chunk(array, chunk);
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          record_lost_chunk(result, chunk, e.what());
          return missing_chunk(array, chunk);
        }
        ++result.counts.recoded;
        const array::extents shape = array.shape_of(chunk);
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

std::optional<compressors::buffer> rechunker::missing_chunk(const source_array& array, const array::extents& chunk) const {
  if (!gap_encoder_) return {};
  const array::extents shape = array.shape_of(chunk);
  const values v = filled({array::extents(shape.size(), 0), shape});
  return array.type().variable() ? gap_encoder_->encode(v.strings, shape) : gap_encoder_->encode(v.data, shape);
}

// A lost chunk, or one that is missing, where objects stay as they are.
void rechunker::put_missing_chunk(const source_array& array, const array::extents& chunk, array_result& result) const {
  const auto bytes = missing_chunk(array, chunk);
  if (!bytes) return;
  out_->put(key_of(chunk), *bytes);
  result.store_bytes += bytes->size();
}

// Encodes a chunk whose elements in the array are in `from`; none if it has only the fill value.
std::optional<compressors::buffer> rechunker::encoded(const values& from, const array::box& of_from, const array::box& chunk,
                                                      const array::box& inside) const {
  const bool strings = array_.type().variable();
  const auto encode = [&](const values& v) -> std::optional<compressors::buffer> {
    if (!options_.encoding.write_empty_chunks && !change_.writes_gaps && is_fill(v)) return {};
    return strings ? change_.encoder->encode(v.strings, chunk.shape) : change_.encoder->encode(v.data, chunk.shape);
  };
  if (chunk == of_from) return encode(from);
  values one;
  if (chunk != inside) one = filled(chunk);
  else if (strings) one.strings.resize(static_cast<std::size_t>(chunk.elements()));
  else one.data.resize(static_cast<std::size_t>(chunk.elements() * element_));
  if (strings) array::copy_elements(from.strings, of_from, one.strings, chunk, inside);
  else array::copy_elements(from.data, of_from, one.data, chunk, inside, static_cast<std::size_t>(element_));
  return encode(one);
}

// Calls `callback` with the chunks of a region, with and without the elements beyond the edge of the array, and writes
// its results.
template <class Each>
void rechunker::write_region(const array::box& region, const Each& callback, array_result& result) const {
  const array::box objects = target_objects_.chunks_over(region);
  array::for_each_index(objects, [&](const array::extents& object) {
    write_object(
        object,
        [&](const array::extents& chunk, zarr::shard_writer*, std::size_t) -> std::
                                                                               optional<compressors::buffer> {
      const array::box chunk_box = {target_chunks_.start(chunk), change_.chunk}, inside = array::intersect(chunk_box, array_box_);
      auto bytes = inside.empty() ? std::nullopt : callback(chunk_box, inside);
      if (bytes) ++result.counts.recoded;
      return bytes;
        },
        result);
  });
}

void rechunker::make_region(const source_array& array, const array::extents& index, array_result& result) const {
  const array::box region = regions_.box_of(index);
  if (change_.chunk_by_chunk) return make_chunk_by_chunk(array, region, result);
  values v = filled(region);
  numbers chunks_read;
  if (scratch_) read_tiles(region, v);
  else read_chunks(array, region, v, chunks_read, result);
  std::sort(chunks_read.begin(), chunks_read.end());
  const numbers& present = scratch_ ? present_ : chunks_read;
  write_region(
      region,
      [&](const array::box& chunk, const array::box& inside) -> std::optional<compressors::buffer> {
        if (!gap_encoder_ && !is_present(inside, present)) return {};
        return encoded(v, region, chunk, inside);
      },
      result);
}

// Like make_region(), if the memory does not hold the region.
void rechunker::make_chunk_by_chunk(const source_array& array, const array::box& region, array_result& result) const {
  write_region(
      region,
      [&](const array::box& chunk, const array::box& inside) -> std::optional<compressors::buffer> {
        values v = filled(inside);
        numbers chunks_read;
        read_chunks(array, inside, v, chunks_read, result);
        if (!gap_encoder_ && chunks_read.empty()) return {};
        return encoded(v, inside, chunk, inside);
      },
      result);
}

array_result rechunker::make(std::uint64_t first, std::uint64_t count) const {
  array_result result;
  const source_array array = array_;  // it keeps a shard open, so each thread has its own
  for (std::uint64_t i = first; i < first + count; ++i) {
    const array::extents index = array::unravel(items_.at(static_cast<std::size_t>(i)), items_grid_);
    switch (change_.strategy) {
      case zarr_strategy::copy:
        try {
          if (contains(existing_, items_.at(static_cast<std::size_t>(i)))) copy_object(array, index, result);
          else put_missing_chunk(array, index, result);
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          record_lost_chunk(result, index, e.what());
          put_missing_chunk(array, index, result);
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
std::uint64_t rechunker::tile_offset(const array::box& tile, const array::box& region) const {
  return (array::elements_before(region, array_box_) + array::elements_before(tile, region)) * element_;
}

std::uint64_t rechunker::plan_staging(const std::vector<bool>& needed, const std::string& scratch_folder) {
  scratch_ = std::make_unique<io::scratch_file>(scratch_folder);
  staged_grid_ = staged_boxes_.counts();
  product_of(staged_grid_);  // throws
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (needed[i]) needed_.push_back(items_[i]);
  }
  std::size_t capacity = std::size_t{1} << 20;
  for (const std::uint64_t number : existing_) {
    const array::box b = object_box(array::unravel(number, source_grid_));
    if (b.empty()) continue;
    const array::box range = staged_boxes_.chunks_over(b);
    array::for_each_index(range, [&](const array::extents& cell) { staged_.push_back(array::ravel(cell, staged_grid_)); });
    if (staged_.size() < capacity) continue;
    sort_unique(staged_);
    capacity = std::max(capacity, 2 * staged_.size());
  }
  sort_unique(staged_);
  if (needed_.size() < items_.size()) {
    std::erase_if(staged_, [&](std::uint64_t number) {
      const array::box regions = regions_.chunks_over(staged_boxes_.box_of(array::unravel(number, staged_grid_)));
      bool is_needed = false;
      array::for_each_index(regions, [&](const array::extents& cell) {
        is_needed = is_needed || contains(needed_, array::ravel(cell, items_grid_));
      });
      return !is_needed;
    });
  }
  return staged_.size();
}

void rechunker::stage(std::uint64_t number, array_result& result) {
  const source_array array = array_;
  const array::box b = staged_boxes_.box_of(array::unravel(staged_.at(static_cast<std::size_t>(number)), staged_grid_));
  values v = filled(b);
  numbers chunks_read;
  read_chunks(array, b, v, chunks_read, result);
  const array::box regions = regions_.chunks_over(b);
  compressors::buffer bytes;
  array::for_each_index(regions, [&](const array::extents& cell) {
    if (!contains(needed_, array::ravel(cell, items_grid_))) return;
    const array::box region = regions_.box_of(cell), tile = array::intersect(region, b);
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    array::copy_elements(v.data, b, bytes, tile, tile, static_cast<std::size_t>(element_));
    scratch_->write(tile_offset(tile, region), bytes);
  });
  const std::lock_guard lock(mutex_);
  present_.insert(present_.end(), chunks_read.begin(), chunks_read.end());
}

void rechunker::finish_staging() { sort_unique(present_); }

void rechunker::read_tiles(const array::box& region, values& target) const {
  const array::box boxes = staged_boxes_.chunks_over(region);
  compressors::buffer bytes;
  array::for_each_index(boxes, [&](const array::extents& cell) {
    if (!contains(staged_, array::ravel(cell, staged_grid_))) return;
    const array::box tile = array::intersect(region, staged_boxes_.box_of(cell));
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    scratch_->read(tile_offset(tile, region), bytes);
    array::copy_elements(bytes, tile, target.data, region, tile, static_cast<std::size_t>(element_));
  });
}

}  // namespace zarrbits::conversion
