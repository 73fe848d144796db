// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/source_array.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/joined_parts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace zarrbits::conversion {

using array::box;
using zarr::element_buffer;
using zarr::zarr_array;

element_buffer filled(std::uint64_t elements, const element_buffer& fill) {
  const auto n = static_cast<std::size_t>(elements);
  element_buffer result;
  if (!fill.strings.empty()) {
    result.strings.assign(n, fill.strings[0]);
  } else {
    result.data.resize(n * fill.data.size());
    array::fill_elements(result.data, fill.data);
  }
  return result;
}

namespace {

// The lengths of a part's chunks along the axis: those of its grid, the last of which ends with the part, unless no part follows.
void append_lengths(nlohmann::json& lengths, const source_array::part& part, std::size_t axis, std::uint64_t usual_length,
                    bool is_last_part) {
  const metadata::dimension_grid of_gap = metadata::dimension_grid::regular(usual_length, part.length);
  const metadata::dimension_grid& grid = part.array ? part.array->grid(axis) : of_gap;
  const std::uint64_t last = grid.chunks() - 1, last_length = is_last_part ? grid.length(last) : part.length - grid.start(last);
  for (const auto& run : grid.runs()) {
    const bool has_last = run.first_chunk + run.count > last;
    const std::uint64_t count = std::min(run.count, last - std::min(last, run.first_chunk));
    if (count > 0) lengths.push_back({run.length, count});
    if (has_last) break;
  }
  lengths.push_back(last_length);
}

// The elements of another box, with fill values where it has more.
element_buffer reshaped(const element_buffer& elements, const box& from, const box& to, const element_buffer& fill) {
  element_buffer result = filled(to.elements(), fill);
  const box shared = array::intersect(from, to);
  if (!fill.strings.empty()) array::copy_elements(elements.strings, from, result.strings, to, shared);
  else array::copy_elements(elements.data, from, result.data, to, shared, fill.data.size());
  return result;
}

// Stands for a chunk that a part does not have.
zarr::text_object absent_chunk() { return zarr::text_object(""); }

}  // namespace

source_array::source_array(zarr_array array)
    : shape_(array.shape()),
      chunk_shape_(array.chunk_shape()),
      per_shard_(array.chunks_per_shard()),
      usual_per_shard_(per_shard_) {
  whole_ = {0, array.type(), array.fill()};
  for (std::size_t d = 0; d < shape_.size(); ++d) grids_.push_back(array.grid(d));
  first_chunk_ = first_object_ = {0};
  parts_.push_back({std::move(array), shape_.empty() ? 1 : shape_[0]});
}

source_array::source_array(std::vector<part> parts, whole joined)
    : whole_(std::move(joined)), parts_(std::move(parts)), is_joined_(true) {
  const std::size_t axis = whole_.axis;
  const auto& first = *std::find_if(parts_.begin(), parts_.end(), [](const part& p) { return p.array.has_value(); })->array;
  shape_ = first.shape();
  chunk_shape_ = first.chunk_shape();
  per_shard_ = usual_per_shard_ = first.chunks_per_shard();
  const std::uint64_t length = chunk_shape_[axis], in_shard = per_shard_[axis];
  bool is_one_grid = true, are_whole_shards = true;
  shape_[axis] = 0;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const part& p = parts_[k];
    const bool is_last = k + 1 == parts_.size();
    if (__builtin_add_overflow(shape_[axis], p.length, &shape_[axis]) || shape_[axis] > INT64_MAX)
      throw zarr::not_supported(reason_code::too_large, "joined arrays of more than 2^63 elements along a dimension");
    const std::uint64_t end_of_chunks = is_last ? 0 : p.length % length;
    is_one_grid = is_one_grid && end_of_chunks == 0 &&
                  (!p.array || (p.array->grid(axis).is_regular() && p.array->chunk_shape()[axis] == length));
    are_whole_shards = are_whole_shards && (is_last || p.length / length % in_shard == 0) &&
                       (!p.array || p.array->chunks_per_shard() == per_shard_);
    if (!p.array) continue;
    const metadata::dimension_grid& grid = p.array->grid(axis);
    const bool is_cut = !is_last && grid.start(grid.chunks() - 1) + grid.length(grid.chunks() - 1) > p.length;
    has_stored_chunks_ = has_stored_chunks_ && !is_cut && !p.change && !p.own_fill && p.is_stored_alike;
  }
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (d != axis) {
      grids_.push_back(first.grid(d));
    } else if (is_one_grid) {
      grids_.push_back(metadata::dimension_grid::regular(length, shape_[axis]));
    } else {
      nlohmann::json lengths = nlohmann::json::array();
      for (const part& p : parts_) append_lengths(lengths, p, axis, length, &p == &parts_.back());
      grids_.push_back(metadata::dimension_grid::parse(lengths, shape_[axis]));
    }
  }
  chunk_shape_[axis] = grids_[axis].max_length();
  const auto has = [&](const auto& property) { return std::any_of(parts_.begin(), parts_.end(), property); };
  divides_shards_ = has([](const part& p) { return p.array && p.array->is_sharded(); }) &&
                    (!is_one_grid || !are_whole_shards || has([](const part& p) { return p.own_fill.has_value(); }));
  if (divides_shards_) per_shard_.assign(shape_.size(), 1);
  std::uint64_t begin = 0;
  for (const part& p : parts_) {
    first_chunk_.push_back(grids_[axis].chunk_of(begin));
    first_object_.push_back(first_chunk_.back() / per_shard_[axis]);
    begin += p.length;
  }
}

bool source_array::is_regular() const noexcept {
  return std::all_of(grids_.begin(), grids_.end(), [](const metadata::dimension_grid& g) { return g.is_regular(); });
}

source_array::extents source_array::chunks() const {
  extents result;
  for (const metadata::dimension_grid& grid : grids_) result.push_back(grid.chunks());
  return result;
}

source_array::extents source_array::usual_chunk() const {
  for (const part& p : parts_) {
    if (p.array) return p.array->chunk_shape();
  }
  return chunk_shape_;
}

void source_array::require_decodable() const {
  for (const part& p : parts_) {
    if (p.array) p.array->require_decodable();
  }
}

source_array::located source_array::find_part(extents index, const std::vector<std::uint64_t>& first) const {
  if (!is_joined()) return {0, std::move(index)};
  std::uint64_t& along_axis = index[whole_.axis];
  const auto next = std::upper_bound(first.begin(), first.end(), along_axis);
  const auto number = static_cast<std::size_t>(next - first.begin()) - 1;
  along_axis -= first[number];
  return {number, std::move(index)};
}

source_array::extents source_array::shape_of(const extents& chunk) const {
  if (!is_joined()) return parts_[0].array->shape_of(chunk);
  extents shape(chunk.size());
  for (std::size_t d = 0; d < chunk.size(); ++d) shape[d] = grids_[d].length(chunk[d]);
  return shape;
}

std::pair<std::string, source_array::extents> source_array::find_source(const extents& chunk) const {
  located entry = find_part(chunk, first_chunk_);
  return {parts_[entry.part].source, std::move(entry.index)};
}

bool source_array::in_storage_order(const extents& a, const extents& b) const {
  const located x = find_part(a, first_chunk_), y = find_part(b, first_chunk_);
  if (x.part != y.part) return x.part < y.part;
  const auto& array = parts_[x.part].array;
  return array ? array->in_storage_order(x.index, y.index) : a < b;
}

source_array::extents source_array::in_whole(std::size_t number, extents index, const std::vector<std::uint64_t>& first) const {
  if (is_joined()) index[whole_.axis] += first[number];
  return index;
}

void source_array::for_each_object(const object_visitor& visit) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (!parts_[k].array) continue;
    if (!(parts_[k].own_fill ? visit_all_chunks(k, visit) : visit_objects(k, visit))) return;
  }
}

bool source_array::visit_objects(std::size_t number, const object_visitor& visit) const {
  const zarr_array& array = *parts_[number].array;
  bool goes_on = true;
  array.for_each_object([&](const zarr_array::chunk_index& index, const zarr::store_entry& object) {
    if (!divides_shards_) return goes_on = visit(in_whole(number, index, first_object_), object, number);
    constexpr std::size_t max_chunks = std::size_t{1} << 26;  // of a shard
    const auto chunks = array.list_chunks_of(index, max_chunks);
    if (!chunks) throw zarr::not_supported(reason_code::too_large, "shards of more than 2^26 chunks");
    zarr::store_entry share = object;
    for (std::size_t i = 0; goes_on && i < chunks->size(); ++i) {
      share.size = object.size / chunks->size() + (i == 0 ? object.size % chunks->size() : 0);
      goes_on = visit(in_whole(number, (*chunks)[i], first_chunk_), share, number);
    }
    return goes_on;
  });
  return goes_on;
}

// Also those that the part does not have.
bool source_array::visit_all_chunks(std::size_t number, const object_visitor& visit) const {
  const zarr_array& array = *parts_[number].array;
  std::map<extents, zarr::store_entry> objects;
  array.for_each_object([&](const zarr_array::chunk_index& index, const zarr::store_entry& object) {
    objects.emplace(index, object);
    return true;
  });
  const zarr::store_entry absent{.name = {}, .state = absent_chunk().state()};
  bool goes_on = true;
  const box all{extents(array.chunks().size(), 0), array.chunks()};
  if (all.empty()) return true;
  extents chunk = all.first;
  do {
    extents object = chunk;
    for (std::size_t d = 0; d < object.size(); ++d) object[d] /= array.chunks_per_shard()[d];
    const auto entry = objects.find(object);
    zarr::store_entry one = entry == objects.end() ? absent : entry->second;
    if (array.is_sharded()) one.size /= array::product(array.chunks_per_shard());
    goes_on = visit(in_whole(number, chunk, first_chunk_), one, number);
  } while (goes_on && array::next_index(chunk, all.shape, all.first));
  return goes_on;
}

std::optional<std::vector<source_array::extents>> source_array::list_chunks(std::size_t max_count) const {
  if (!is_joined()) return parts_[0].array->list_chunks(max_count);
  std::vector<extents> result;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (!parts_[k].array) continue;
    const zarr_array& array = *parts_[k].array;
    const box all{extents(array.chunks().size(), 0), array.chunks()};
    std::optional<std::vector<extents>> chunks;
    if (!parts_[k].own_fill) chunks = array.list_chunks(max_count - result.size());
    else if (array::product(array.chunks()) <= max_count - result.size())
      array::for_each_index(all, [&, &list = chunks.emplace()](const extents& chunk) { list.push_back(chunk); });
    if (!chunks) return {};
    for (extents& chunk : *chunks) result.push_back(in_whole(k, std::move(chunk), first_chunk_));
  }
  return result;
}

std::optional<std::vector<std::byte>> source_array::read_stored(const extents& chunk) const {
  const located entry = find_part(chunk, first_chunk_);
  const part& p = parts_[entry.part];
  if (!p.array) return {};
  auto stored = p.array->read_stored(entry.index);
  if (!stored && p.own_fill) stored.emplace();
  return stored;
}

std::unique_ptr<zarr::stored_object> source_array::open_object(const extents& object) const {
  located entry = find_part(object, first_object_);
  const part& p = parts_[entry.part];
  if (!p.array) return nullptr;
  if (divides_shards_) {
    for (std::size_t d = 0; d < entry.index.size(); ++d) entry.index[d] /= p.array->chunks_per_shard()[d];
  }
  auto stored = p.array->open_object(entry.index);
  return stored || !p.own_fill ? std::move(stored) : std::make_unique<zarr::text_object>(absent_chunk());
}

std::optional<zarr_array::object_range> source_array::find_stored(const extents& chunk) const {
  const located entry = find_part(chunk, first_chunk_);
  const part& p = parts_[entry.part];
  if (!p.array) return {};
  auto stored = p.array->find_stored(entry.index);
  if (!stored && p.own_fill) {
    extents object = chunk;
    for (std::size_t d = 0; d < object.size(); ++d) object[d] /= per_shard_[d];
    stored = zarr_array::object_range{open_object(object), 0, 0};
  }
  return stored;
}

bool source_array::is_stored_chunk(const extents& chunk) const {
  if (has_stored_chunks_) return true;
  const located entry = find_part(chunk, first_chunk_);
  const part& p = parts_[entry.part];
  return p.array && !p.change && !p.own_fill && p.is_stored_alike && p.array->shape_of(entry.index) == shape_of(chunk);
}

void source_array::decode(const extents& chunk, std::vector<std::byte> stored, element_buffer& out) const {
  const located entry = find_part(chunk, first_chunk_);
  const part& p = parts_[entry.part];
  if (p.own_fill && stored.empty() && !p.array->find_stored(entry.index)) {
    if (!p.unrepresentable_fill.empty())
      throw unrepresentable_value("of its fill value, which chunks have that were never written: " + p.unrepresentable_fill);
    out = filled(array::product(shape_of(chunk)), *p.own_fill);
    return;
  }
  p.array->decode(entry.index, std::move(stored), out);
  if (!is_joined()) return;
  // a chunk that the part ends within is as long as the part, and so are its elements
  const box in_part{extents(chunk.size(), 0), p.array->shape_of(entry.index)}, in_whole{in_part.first, shape_of(chunk)};
  box converted = in_whole;  // beyond the edge of the array, elements have no meaning, and need not have one in other terms
  for (std::size_t d = 0; p.change && d < chunk.size(); ++d)
    converted.shape[d] = std::min(converted.shape[d], shape_[d] - grids_[d].start(chunk[d]));
  if (in_part != converted) out = reshaped(out, in_part, converted, p.array->fill());
  if (p.change) p.change(out);
  if (converted != in_whole) out = reshaped(out, converted, in_whole, fill());
}

element_buffer source_array::read_box(const box& region) const {
  const bool is_variable = type().variable();
  element_buffer result = filled(region.elements(), fill()), chunk_elements;
  if (region.empty()) return result;
  box chunks;
  for (std::size_t d = 0; d < region.first.size(); ++d) {
    chunks.first.push_back(grids_[d].chunk_of(region.first[d]));
    chunks.shape.push_back(grids_[d].chunk_of(region.first[d] + region.shape[d] - 1) - chunks.first[d] + 1);
  }
  array::for_each_index(chunks, [&](const extents& chunk) {
    const auto stored = find_stored(chunk);
    if (!stored) return;
    decode(chunk, zarr_array::read(*stored), chunk_elements);
    box b{{}, shape_of(chunk)};
    for (std::size_t d = 0; d < chunk.size(); ++d) b.first.push_back(grids_[d].start(chunk[d]));
    const box shared = array::intersect(b, region);
    if (is_variable) array::copy_elements(chunk_elements.strings, b, result.strings, region, shared);
    else array::copy_elements(chunk_elements.data, b, result.data, region, shared, type().size);
  });
  return result;
}

}  // namespace zarrbits::conversion
