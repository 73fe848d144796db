// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/change_chunks.hpp"

#include "io/files.hpp"
#include "text/words.hpp"
#include "zarr/write/node.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::conversion {

using zarr::zarr_array;
using zarr::zarr_values;
using way = array_change::way_type;

namespace {

constexpr std::uint64_t piece = 8U << 20;  // of an object that is copied through memory

void sort_unique(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool has(const std::vector<std::uint64_t>& sorted, std::uint64_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

std::uint64_t product_of(const extents& grid) { return box{extents(grid.size(), 0), grid}.elements(); }

bool same(const box& a, const box& b) { return a.first == b.first && a.shape == b.shape; }

}  // namespace

change_chunks::change_chunks(const zarr_array& array, const array_change& change, const std::string& path,
                             const convert_options& options, zarr::sink* out)
    : array_(array),
      change_(change),
      path_(path),
      options_(options),
      out_(out),
      whole_{extents(change.shape.size(), 0), change.shape},
      element_(array.type().variable() ? 0 : array.type().size) {
  for (std::size_t d = 0; d < change.shape.size(); ++d) {
    source_chunks_.push_back(array.edges(d).chunks());
    const std::uint64_t each = array.chunks_per_shard()[d];
    source_grid_.push_back(source_chunks_[d] / each + (source_chunks_[d] % each != 0));
  }
  if (change.way != way::rechunk && !change.regular) target_grid_ = source_grid_;
  else target_grid_ = grid_of(change.shape, change.object_shape());
  items_grid_ = change.way == way::rechunk ? grid_of(change.shape, change.plan.region) : target_grid_;
}

void change_chunks::list() {
  for (const extents* grid : {&source_chunks_, &target_grid_, &items_grid_}) product_of(*grid);  // throws
  const std::uint64_t most = options_.memory / 8 / sizeof(std::uint64_t);
  const auto too_many = [&] {
    return error(errc::unsupported, "array \"" + path_ + "\" of \"" + options_.source + "\" has or gets more than " +
                                        text::counted(most, "chunk") +
                                        ", more than the memory can list; increase `memory`, or use larger chunks");
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  array_.each_object([&](const zarr_array::chunk_index& index, const zarr::store_entry& object) {
    if (found.size() >= most) throw too_many();
    found.emplace_back(number_of(index, source_grid_), zarr::number_for(object.state));
    source_bytes_ += object.size;
    return true;
  });
  std::sort(found.begin(), found.end());
  for (const auto& [number, state] : found) {
    if (!existing_.empty() && existing_.back() == number) continue;  // "0" and "00"
    existing_.push_back(number);
    states_.push_back(state);
  }
  if (change_.way == way::copy) {
    items_ = existing_;
    return;
  }
  for (const std::uint64_t number : existing_) {
    const extents object = index_of(number, source_grid_);
    index_range range;
    if (change_.way == way::rechunk) {
      const box b = object_box(object);
      if (b.empty()) continue;
      range = touched(b, change_.plan.region);
    } else {  // the chunks are the same
      for (std::size_t d = 0; d < object.size(); ++d) {
        const std::uint64_t each = array_.chunks_per_shard()[d], last = std::min((object[d] + 1) * each, source_chunks_[d]) - 1;
        range.first.push_back(object[d] * each / change_.per_shard[d]);
        range.last.push_back(last / change_.per_shard[d]);
      }
    }
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < range.first.size(); ++d) n = times(n, range.last[d] - range.first[d] + 1);
    if (n > most || items_.size() > most - n) {
      sort_unique(items_);
      if (n > most || items_.size() > most - n) throw too_many();
    }
    each_index(range.first, range.last, [&](const extents& at) { items_.push_back(number_of(at, items_grid_)); });
  }
  sort_unique(items_);
}

void change_chunks::add_identity(text::sha256& sum) const {
  sum.add_number(existing_.size());
  for (const numbers* all : {&existing_, &states_}) {
    for (const std::uint64_t each : *all) sum.add_number(each);
  }
}

std::optional<std::uint64_t> change_chunks::item_of(std::string_view coordinates) const {
  auto index = zarr::chunk_coordinates(coordinates);
  if (!index || index->size() != target_grid_.size()) return {};
  const extents object = change_.object_shape();
  for (std::size_t d = 0; d < index->size(); ++d) {
    if ((*index)[d] >= target_grid_[d]) return {};
    if (change_.way == way::rechunk) (*index)[d] = (*index)[d] * object[d] / change_.plan.region[d];
  }
  const auto at = std::lower_bound(items_.begin(), items_.end(), number_of(*index, items_grid_));
  if (at == items_.end() || *at != number_of(*index, items_grid_)) return {};
  return static_cast<std::uint64_t>(at - items_.begin());
}

std::uint64_t change_chunks::objects() const {
  if (change_.way != way::rechunk) return items();
  std::uint64_t each = 1;
  const extents object = change_.object_shape();
  for (std::size_t d = 0; d < object.size(); ++d) each = times(each, change_.plan.region[d] / object[d]);
  return std::min(times(items(), each), product_of(target_grid_));
}

std::uint64_t change_chunks::bytes_of(const extents& shape) const {
  std::uint64_t n = std::max<std::uint64_t>(element_bytes(array_.type()), 1);
  for (const std::uint64_t extent : shape) n = times(n, extent);
  return n;
}

std::uint64_t change_chunks::chunk_bytes() const { return std::max(bytes_of(array_.chunk_shape()), bytes_of(change_.chunk)); }

std::uint64_t change_chunks::memory() const {
  const auto within = [&](extents shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = std::min(shape[d], change_.shape[d]);
    return bytes_of(shape);
  };
  const std::uint64_t from = bytes_of(array_.chunk_shape()), to = bytes_of(change_.chunk);
  switch (change_.way) {
    case way::copy: return piece;
    case way::regroup: return std::max(piece, from);
    case way::recode: return times(from, 4);
    case way::rechunk: break;
  }
  const std::uint64_t region = change_.chunk_by_chunk ? to : within(change_.plan.region);
  const std::uint64_t gathered = change_.plan.two_passes() ? times(within(change_.plan.gathered), 2) : 0;
  const std::uint64_t decoded = times(from, 2), encoded = times(to, 3);
  return std::max(region, gathered) + std::min(decoded, UINT64_MAX / 4) + std::min(encoded, UINT64_MAX / 4);
}

std::uint64_t change_chunks::plain_bytes() const { return times(bytes_of(change_.object_shape()), objects()); }

// The elements of an object of the source, within the array.
box change_chunks::object_box(const extents& object) const {
  box b;
  for (std::size_t d = 0; d < object.size(); ++d) {
    const std::uint64_t each = array_.chunks_per_shard()[d], first = array_.edges(d).start(object[d] * each);
    const std::uint64_t next = (object[d] + 1) * each;
    const std::uint64_t end = next < source_chunks_[d] ? array_.edges(d).start(next) : change_.shape[d];
    b.first.push_back(first);
    b.shape.push_back(end - first);
  }
  return b;
}

index_range change_chunks::source_chunks(const box& b) const {
  index_range range;
  for (std::size_t d = 0; d < b.first.size(); ++d) {
    range.first.push_back(array_.edges(d).chunk_of(b.first[d]));
    range.last.push_back(array_.edges(d).chunk_of(b.first[d] + b.shape[d] - 1));
  }
  return range;
}

// With the elements beyond the edge of the array.
box change_chunks::source_box(const extents& chunk) const {
  box b;
  for (std::size_t d = 0; d < chunk.size(); ++d) b.first.push_back(array_.edges(d).start(chunk[d]));
  b.shape = array_.shape_of(chunk);
  return b;
}

extents change_chunks::object_of(const extents& chunk) const {
  extents object;
  for (std::size_t d = 0; d < chunk.size(); ++d) object.push_back(chunk[d] / array_.chunks_per_shard()[d]);
  return object;
}

bool change_chunks::object_exists(const extents& chunk) const {
  return has(existing_, number_of(object_of(chunk), source_grid_));
}

error change_chunks::has_changed() const {
  return error(errc::changed,
               "array \"" + path_ + "\" of the source \"" + options_.source +
                   "\" was changed while it was converted; convert it when no other process writes to it",
               {options_.source, path_});
}

void change_chunks::require_listed(const zarr::stored_object* object, const extents& index) const {
  const auto at = std::lower_bound(existing_.begin(), existing_.end(), number_of(index, source_grid_));
  if (object && zarr::number_for(object->state()) == states_[static_cast<std::size_t>(at - existing_.begin())]) return;
  throw has_changed();
}

// Where an existing object has the chunk; a shard may be without it.
std::optional<zarr_array::stored_range> change_chunks::found(const zarr_array& array, const extents& chunk) const {
  auto stored = array.find_stored(chunk);
  if (stored) require_listed(stored->object.get(), object_of(chunk));
  else require_listed(array.open_object(object_of(chunk)).get(), object_of(chunk));
  return stored;
}

bool change_chunks::read(const zarr_array& array, const extents& chunk, zarr_values& to) const {
  const auto stored = found(array, chunk);
  if (!stored) return false;
  std::vector<std::byte> bytes = zarr_array::read(*stored);
  require_listed(stored->object.get(), object_of(chunk));  // it may have been written in place meanwhile
  array.decode(chunk, std::move(bytes), to);
  return true;
}

std::string change_chunks::key_of(const extents& object) const { return zarr::chunk_key(path_ == "/" ? "" : path_, object); }

void change_chunks::lose(array_result& done, const extents& chunk, const std::string& why) const {
  if (!options_.keep_going)
    throw error(errc::damaged_source,
                "chunk " + (chunk.empty() ? "0" : joined_text(chunk, '/')) + " of \"" + path_ + "\" in \"" + options_.source +
                    "\" is damaged: " + why + "; leave such chunks out with `keep_going`",
                {options_.source, path_});
  done.lost.emplace(chunk, why);
}

change_chunks::values change_chunks::filled(const box& b) const {
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

void change_chunks::read_chunks(const zarr_array& array, const box& b, values& to, numbers& present, array_result& done) const {
  const index_range range = source_chunks(b);
  std::vector<extents> chunks;
  each_index(range.first, range.last, [&](const extents& at) {
    if (object_exists(at)) chunks.push_back(at);
  });
  std::sort(chunks.begin(), chunks.end(), [&](const extents& x, const extents& y) { return array.in_storage_order(x, y); });
  zarr_values one;
  for (const extents& at : chunks) {
    try {
      if (!read(array, at, one)) continue;
    } catch (const zarr::store_error& e) {
      if (e.code == errc::changed) throw has_changed();
      lose(done, at, e.what());
      continue;
    }
    const box from = source_box(at), shared = both(from, b);
    if (array.type().variable()) copy_elements(one.strings, from, to.strings, b, shared);
    else copy_elements(one.data, from, to.data, b, shared, static_cast<std::size_t>(element_));
    present.push_back(number_of(at, source_chunks_));
  }
}

bool change_chunks::is_present(const box& b, const numbers& present) const {
  const index_range range = source_chunks(b);
  bool found = false;
  // rows of chunks are ranges of numbers
  extents first = range.first, last = range.last;
  std::uint64_t row = 1;
  if (!first.empty()) {
    row = last.back() - first.back() + 1;
    last.back() = first.back();
  }
  each_index(first, last, [&](const extents& at) {
    if (found) return;
    const std::uint64_t number = number_of(at, source_chunks_);
    const auto next = std::lower_bound(present.begin(), present.end(), number);
    found = next != present.end() && *next - number < row;
  });
  return found;
}

// Writes an object of chunks, of which make() gives one, or none.
template <class Make>
void change_chunks::write_object(const extents& object, const Make& make, array_result& done) const {
  const std::string key = key_of(object);
  if (!change_.shards) {
    if (auto bytes = make(object, nullptr, 0)) {
      out_->put(key, *bytes);
      done.store_bytes += bytes->size();
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
  done.store_bytes += shard.commit();
}

void change_chunks::copy_object(const zarr_array& array, const extents& object, array_result& done) const {
  const auto from = array.open_object(object);
  require_listed(from.get(), object);
  const std::string key = key_of(object);
  const std::uint64_t size = from->size();
  if (from->descriptor() >= 0) {
    out_->put_range(key, from->descriptor(), 0, size);
  } else if (size <= piece) {
    out_->put(key, zarr::read_object(*from, piece));
  } else {
    const auto to = out_->begin(key);
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < size; at += bytes.size()) {
      bytes.resize(static_cast<std::size_t>(std::min(piece, size - at)));
      from->read(at, bytes);
      to->append(bytes);
    }
    to->commit();
  }
  require_listed(from.get(), object);  // it may have been written in place meanwhile
  done.store_bytes += size;
  ++done.counts.raw;
}

// The bytes of a chunk that stays as it is, or none if it does not exist or the kernel has copied it.
std::optional<compressors::buffer> change_chunks::regrouped(const zarr_array& array, const extents& object, const extents& chunk,
                                               zarr::shard_writer* shard, std::size_t number, array_result& done) const {
  const auto stored = found(array, chunk);
  if (!stored) return {};
  ++done.counts.raw;
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
    done.store_bytes += stored->size;
  }
  require_listed(stored->object.get(), object_of(chunk));  // it may have been written in place meanwhile
  return {};
}

// Chunks of the same shape, in other objects or with other codecs.
void change_chunks::make_object(const zarr_array& array, const extents& object, array_result& done) const {
  zarr_values one;
  write_object(
      object,
      [&](const extents& chunk, zarr::shard_writer* shard, std::size_t number) -> std::optional<compressors::buffer> {
        try {
          if (!object_exists(chunk)) return {};
          if (change_.way == way::regroup) return regrouped(array, object, chunk, shard, number, done);
          if (!read(array, chunk, one)) return {};
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          lose(done, chunk, e.what());
          return {};
        }
        ++done.counts.recoded;
        const extents shape = array.shape_of(chunk);
        return array.type().variable() ? change_.encoder->encode(one.strings, shape) : change_.encoder->encode(one.data, shape);
      },
      done);
}

// Bit by bit: -0.0 is not 0.0, and a NaN may hold more than another one.
bool change_chunks::is_fill(const values& v) const {
  const zarr::zarr_values& fill = array_.fill();
  if (array_.type().variable())
    return std::all_of(v.strings.begin(), v.strings.end(), [&](const std::string& s) { return s == fill.strings[0]; });
  // each element is as the one before it
  const auto size = static_cast<std::size_t>(element_);
  return v.data.empty() || (std::memcmp(v.data.data(), fill.data.data(), size) == 0 &&
                            std::memcmp(v.data.data(), v.data.data() + size, v.data.size() - size) == 0);
}

// Encodes a chunk whose elements in the array are in `from`; none if it has only the fill value.
std::optional<compressors::buffer> change_chunks::encoded(const values& from, const box& of_from, const box& chunk, const box& inside) const {
  const bool strings = array_.type().variable();
  const auto encode = [&](const values& v) -> std::optional<compressors::buffer> {
    if (!options_.write_empty_chunks && is_fill(v)) return {};
    return strings ? change_.encoder->encode(v.strings, chunk.shape) : change_.encoder->encode(v.data, chunk.shape);
  };
  if (same(chunk, of_from)) return encode(from);
  values one;
  if (!same(chunk, inside)) one = filled(chunk);
  else if (strings) one.strings.resize(static_cast<std::size_t>(chunk.elements()));
  else one.data.resize(static_cast<std::size_t>(chunk.elements() * element_));
  if (strings) copy_elements(from.strings, of_from, one.strings, chunk, inside);
  else copy_elements(from.data, of_from, one.data, chunk, inside, static_cast<std::size_t>(element_));
  return encode(one);
}

// Calls `each` with the chunks of a region, with and without what is beyond the edge of the array, and writes what it returns.
template <class Each>
void change_chunks::write_region(const box& region, const Each& each, array_result& done) const {
  const index_range objects = touched(region, change_.object_shape());
  each_index(objects.first, objects.last, [&](const extents& object) {
    write_object(
        object,
        [&](const extents& chunk, zarr::shard_writer*, std::size_t) -> std::optional<compressors::buffer> {
          const box all = {in_grid(chunk, change_.chunk, change_.shape).first, change_.chunk}, inside = both(all, whole_);
          auto bytes = inside.empty() ? std::nullopt : each(all, inside);
          if (bytes) ++done.counts.recoded;
          return bytes;
        },
        done);
  });
}

void change_chunks::make_region(const zarr_array& array, const extents& index, array_result& done) const {
  const box region = in_grid(index, change_.plan.region, change_.shape);
  if (change_.chunk_by_chunk) return make_chunk_by_chunk(array, region, done);
  values v = filled(region);
  numbers found;
  if (scratch_) read_tiles(region, v);
  else read_chunks(array, region, v, found, done);
  std::sort(found.begin(), found.end());
  const numbers& present = scratch_ ? present_ : found;
  write_region(
      region,
      [&](const box& chunk, const box& inside) -> std::optional<compressors::buffer> {
        if (!is_present(inside, present)) return {};
        return encoded(v, region, chunk, inside);
      },
      done);
}

// The same if the memory does not hold the region.
void change_chunks::make_chunk_by_chunk(const zarr_array& array, const box& region, array_result& done) const {
  write_region(
      region,
      [&](const box& chunk, const box& inside) -> std::optional<compressors::buffer> {
        values v = filled(inside);
        numbers found;
        read_chunks(array, inside, v, found, done);
        if (found.empty()) return {};
        return encoded(v, inside, chunk, inside);
      },
      done);
}

array_result change_chunks::make(std::uint64_t first, std::uint64_t count) const {
  array_result done;
  const zarr_array array = array_;  // it keeps a shard open, so each thread has its own
  for (std::uint64_t i = first; i < first + count; ++i) {
    const extents index = index_of(items_.at(static_cast<std::size_t>(i)), items_grid_);
    switch (change_.way) {
      case way::copy: try { copy_object(array, index, done);
        } catch (const zarr::store_error& e) {
          if (e.code == errc::changed) throw has_changed();
          lose(done, index, e.what());
        }
        break;
      case way::regroup:
      case way::recode: make_object(array, index, done); break;
      case way::rechunk: make_region(array, index, done); break;
    }
  }
  done.counts.lost = done.lost.size();
  if (change_.way == way::recode || change_.way == way::rechunk) done.worst = outcome::recoded;
  return done;
}

// The tiles of a region are stored one after the other, and the regions, too.
std::uint64_t change_chunks::tile_offset(const box& tile, const box& region) const {
  return (elements_before(region, whole_) + elements_before(tile, region)) * element_;
}

std::uint64_t change_chunks::plan_gathering(const std::vector<bool>& needed, const std::string& scratch_folder) {
  scratch_ = std::make_unique<scratch_file>(scratch_folder);
  gathered_grid_ = grid_of(change_.shape, change_.plan.gathered);
  product_of(gathered_grid_);  // throws
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (needed[i]) needed_.push_back(items_[i]);
  }
  std::size_t room = std::size_t{1} << 20;
  for (const std::uint64_t number : existing_) {
    const box b = object_box(index_of(number, source_grid_));
    if (b.empty()) continue;
    const index_range range = touched(b, change_.plan.gathered);
    each_index(range.first, range.last, [&](const extents& at) { gathered_.push_back(number_of(at, gathered_grid_)); });
    if (gathered_.size() < room) continue;
    sort_unique(gathered_);
    room = std::max(room, 2 * gathered_.size());
  }
  sort_unique(gathered_);
  if (needed_.size() < items_.size()) {
    std::erase_if(gathered_, [&](std::uint64_t number) {
      const index_range regions =
          touched(in_grid(index_of(number, gathered_grid_), change_.plan.gathered, change_.shape), change_.plan.region);
      bool any = false;
      each_index(regions.first, regions.last, [&](const extents& at) { any = any || has(needed_, number_of(at, items_grid_)); });
      return !any;
    });
  }
  return gathered_.size();
}

void change_chunks::gather(std::uint64_t number, array_result& done) {
  const zarr_array array = array_;
  const box b =
      in_grid(index_of(gathered_.at(static_cast<std::size_t>(number)), gathered_grid_), change_.plan.gathered, change_.shape);
  values v = filled(b);
  numbers found;
  read_chunks(array, b, v, found, done);
  const index_range regions = touched(b, change_.plan.region);
  compressors::buffer bytes;
  each_index(regions.first, regions.last, [&](const extents& at) {
    if (!has(needed_, number_of(at, items_grid_))) return;
    const box region = in_grid(at, change_.plan.region, change_.shape), tile = both(region, b);
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    copy_elements(v.data, b, bytes, tile, tile, static_cast<std::size_t>(element_));
    scratch_->write(tile_offset(tile, region), bytes);
  });
  const std::lock_guard held(mutex_);
  present_.insert(present_.end(), found.begin(), found.end());
}

void change_chunks::finish_gathering() { sort_unique(present_); }

void change_chunks::read_tiles(const box& region, values& to) const {
  const index_range boxes = touched(region, change_.plan.gathered);
  compressors::buffer bytes;
  each_index(boxes.first, boxes.last, [&](const extents& at) {
    if (!has(gathered_, number_of(at, gathered_grid_))) return;
    const box tile = both(region, in_grid(at, change_.plan.gathered, change_.shape));
    bytes.resize(static_cast<std::size_t>(tile.elements() * element_));
    scratch_->read(tile_offset(tile, region), bytes);
    copy_elements(bytes, tile, to.data, region, tile, static_cast<std::size_t>(element_));
  });
}

}  // namespace zarrbits::conversion
