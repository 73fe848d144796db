// SPDX-License-Identifier: BSL-1.0
//
// Compares a dataset, or a member of one, with an array of the store: chunk by chunk, and large chunks in blocks.
//
#include "verify/blocks.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/decode/plain_codec_chain.hpp"
#include "verify/ordered_outcomes.hpp"
#include "verify/source_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_read_bytes = 256u << 20;    // limit for reading a chunk of the source at once
constexpr std::uint64_t block_bytes = 16u << 20;        // size of the blocks of a larger chunk
constexpr std::uint64_t max_visited_chunks = 1u << 20;  // with more chunks than this, visit only stored ones
constexpr std::size_t max_listed_chunks = 1u << 20;
constexpr std::uint64_t max_open_chunks = 64;   // limit for the files of a store that are open
constexpr std::uint64_t max_chunk_info = 4096;  // H5Dget_chunk_info takes quadratic time

source_type byte_type() {
  source_type t;
  t.kind = source_kind::integer;
  t.size = 1;
  t.name = "opaque bytes";
  return t;
}

}  // namespace

// How the array's dimensions correspond to the dataset's: first those of the dataspace, then those of array types.
struct dataset_comparison::layout {
  const zarr::zarr_array& array;
  const source_type& leaf;
  index extra;               // dimensions of array types
  std::uint64_t inside = 1;  // leaves in one element of the source
  bool same_grid = false;    // each chunk of the store covers elements of only one chunk of the source
};

// What all chunks of an array are compared with.
struct dataset_comparison::array_context {
  const view& v;
  const layout& l;
  const comparison& c;
  bool fill_known;  // both sides have the same fill value
  bool is_serial;   // values need libhdf5, or memory without a limit, and are compared in the caller's thread
  std::shared_ptr<const source_chunks> chunks;  // null: only H5Dread reads the source
  std::uint64_t decoded_bytes = 0;              // of a chunk of the store, or of the largest one
  bool is_sampled = false;                      // one chunk was read by both
};

// A chunk of the store, and the part of it that is in the source.
struct dataset_comparison::chunk_part {
  index chunk, chunk_start;                                                   // its index, and its first element
  index start, count;                                                         // of the part
  bool inside = true;                                                         // there is such a part
  bool stored = true;                                                         // the source may have written it
  std::optional<std::optional<zarr::zarr_array::object_range>> stored_range;  // of its bytes in the store, if already known
};

// A part of a chunk, in memory on both sides.
struct dataset_comparison::block {
  const view& v;
  const layout& l;
  const std::byte* source;
  const zarr::element_buffer* chunk;  // null: never written, all fill value
  index chunk_start, chunk_shape;
  index start, count;  // in the dimensions of the store's array
  bool undefined;      // the source never wrote it, and does not define its value
};

// What the comparison of one chunk says.
struct dataset_comparison::outcome {
  std::uint64_t elements = 0, unchecked = 0;
  std::vector<std::string> unreadable;                           // sentences
  std::optional<std::pair<index, difference>> first_difference;  // and the coordinates
  std::shared_ptr<const chunk_part> again;                       // set: H5Dread must read this chunk and decide
};

void dataset_comparison::array(const view& v, const zarr::store_folder& folder) {
  const zarr::zarr_array a(folder, make_plain_decoder);
  const source_type bytes = byte_type();
  const source_type* leaf = &v.type;
  index extra;
  while (leaf->kind == source_kind::array && a.shape().size() > dims_.size() + extra.size()) {
    extra.insert(extra.end(), leaf->dims.begin(), leaf->dims.end());
    leaf = &leaf->members[0].type;
  }
  if (leaf->kind == source_kind::opaque && a.type().name == "uint8" && a.shape().size() == dims_.size() + extra.size() + 1) {
    extra.push_back(leaf->size);
    leaf = &bytes;
  }
  source_type word;
  if (take_characters(v, a)) {
    word = *leaf;
    word.size = characters_;
    word.padding = H5T_STR_NULLPAD;
    leaf = &word;
  }
  index shape = dims_;
  shape.insert(shape.end(), extra.begin(), extra.end());
  for (std::size_t d = 0; d < std::min(lengths_.size(), dims_.size()); ++d) shape[d] = std::max(shape[d], lengths_[d]);
  if (place_) {
    const std::size_t axis = place_->axis;
    if (shape.size() == a.shape().size() && a.shape()[axis] >= place_->first + dims_[axis]) shape[axis] = a.shape()[axis];
    joined_length_ = shape[axis];
    find_meaning(a, folder);
  }
  if (shape != a.shape())
    return conclude(verdict::differs, "has the shape " + join(shape) + ", in the store " + join(a.shape()), v.member());

  const comparison c(*leaf, a.type(), objects_, exported_);
  if (c.types() == likeness::different && !source_meaning_)
    return conclude(verdict::differs, "has a different data type: " + c.reason(), v.member());
  if (c.types() == likeness::unknown) {
    unchecked_ += product(shape);
    return conclude(verdict::unchecked, "was not compared: " + c.reason(), v.member());
  }
  layout l{a, *leaf, extra, product(extra), false};
  l.same_grid =
      a.is_regular() && !source_chunk_.empty() && std::equal(source_chunk_.begin(), source_chunk_.end(), a.chunk_shape().begin());
  for (std::size_t i = 0; i < extra.size(); ++i) l.same_grid = l.same_grid && a.chunk_shape()[dims_.size() + i] >= extra[i];

  if (warn_) warn_(a);
  is_v2_ = folder.is_v2();
  if (is_v2_) fill_is_written_ = false;  // of another member
  source_fill_.reset();
  // an array of several files has one fill value, and they may have several, and that of int8 may be no boolean: then what was
  // never written is compared by value
  const likeness fill = source_meaning_ ? likeness::equal : fill_value(v, l, c);
  if (fill == likeness::different && !by_value()) return;

  const std::uint64_t unchecked_before = unchecked_;
  if (product(shape) != 0) {
    bool is_complete = true;
    array_context x{v, l, c, fill == likeness::equal, !can_run_in_threads(v, a.type()), nullptr};
    x.decoded_bytes = product(a.chunk_shape());
    if (__builtin_mul_overflow(x.decoded_bytes, std::max<std::uint64_t>(a.type().size, 1), &x.decoded_bytes))
      x.decoded_bytes = UINT64_MAX / 8;
    if (!x.is_serial && v.steps.empty() && characters_ == 0 && !nothing_stored_) x.chunks = source_chunks_of(v);
    const hdf5::lock one_thread;  // the tasks close identifiers
    ordered_outcomes<outcome> queue(pool_, [&](outcome& o) { return merge(x, o); });
    const auto listed = chunks_to_visit(l, is_complete);
    if (listed) {
      std::uint64_t visited = 0;
      for (const index& chunk_index : *listed) {
        if (!chunk(x, chunk_index, queue)) break;
        std::uint64_t n = 1;
        for (std::size_t i = 0; i < chunk_index.size(); ++i) {
          n *= std::min(a.grid(i).length(chunk_index[i]), shape[i] - a.grid(i).start(chunk_index[i]));
        }
        visited += n;
      }
      if (!queue.finish()) return;
      // chunks that neither side stores have the fill value on both
      (is_complete && fill == likeness::equal && !may_be_undefined_ ? elements_ : unchecked_) += product(shape) - visited;
    } else {
      index begin(shape.size(), 0), shards(shape.size());
      for (std::size_t i = 0; i < shape.size(); ++i) shards[i] = (a.chunks()[i] - 1) / a.chunks_per_shard()[i] + 1;
      if (place_) {  // those in which this file has a part
        const std::size_t axis = place_->axis;
        const std::uint64_t shard_length = a.chunks_per_shard()[axis], end = place_->first + dims_[axis];
        begin[axis] = a.grid(axis).chunk_of(place_->first) / shard_length;
        shards[axis] = dims_[axis] == 0 ? 0 : a.grid(axis).chunk_of(end - 1) / shard_length + 1 - begin[axis];
      }
      const bool is_equal = for_each_block(begin, shards, 1, [&](const index& shard, const index&) {
        index first(shape.size()), count(shape.size());
        for (std::size_t i = 0; i < shape.size(); ++i) {
          first[i] = shard[i] * a.chunks_per_shard()[i];
          count[i] = std::min(a.chunks_per_shard()[i], a.chunks()[i] - first[i]);
        }
        return for_each_block(first, count, 1,
                              [&](const index& chunk_index, const index&) { return chunk(x, chunk_index, queue); });
      });
      if (!is_equal || !queue.finish()) return;
    }
    if (!is_complete)
      conclude(verdict::unchecked, "was compared in part: it has too many chunks to look for those that are stored", v.member());
  }
  if (fill == likeness::unknown) conclude(verdict::unchecked, "has a fill value that was not compared", v.member());
  if (unchecked_ > unchecked_before) {
    conclude(verdict::unchecked,
             "was compared in part: " + std::to_string(unchecked_ - unchecked_before) +
                 " elements have no defined value, or a type that was not",
             v.member());
  }
}

// netCDF has fixed-length texts as characters.
bool dataset_comparison::take_characters(const view& v, const zarr::zarr_array& a) {
  const bool has_characters = exported_ && !place_ && v.type.kind == source_kind::text && v.type.size == 1 &&
                              a.type().kind == zarr::zarr_kind::terminated && a.type().size > 1 &&
                              dims_.size() == a.shape().size() + 1 && dims_.back() == a.type().size;
  if (!has_characters) return false;
  characters_ = a.type().size;
  dims_.pop_back();
  source_chunk_.clear();
  return true;
}

likeness dataset_comparison::fill_value(const view& v, const layout& l, const comparison& c) {
  if (characters_ > 0) return likeness::different;  // of a character
  H5D_fill_value_t state = H5D_FILL_VALUE_ERROR;
  check(H5Pfill_value_defined(properties_.get(), &state), "cannot read the fill value");
  if (state == H5D_FILL_VALUE_UNDEFINED) return likeness::equal;  // any value is right
  if (exported_ && state == H5D_FILL_VALUE_DEFAULT && v.type.kind == source_kind::variable_text) {
    fill_is_written_ = true;
    return likeness::different;
  }
  const auto fill = std::make_shared<source_values>(v.type, v.memory_type);
  fill->read_fill(properties_.get());
  const zarr_element store = element_of(l.array.type(), l.array.fill(), 0);
  likeness worst = likeness::equal;
  difference first;
  for (std::uint64_t i = 0; i < l.inside; ++i) {
    difference d;
    const likeness result = c.compare(fill->data() + i * l.leaf.size, store, d);
    if (i == 0) first = d;
    // an array type's fill value with different elements has no counterpart in Zarr
    if (i > 0 && (result == likeness::different) != (worst == likeness::different)) return likeness::unknown;
    worst = std::max(worst, result);
  }
  // Zarr v2 has one place for a fill value, and xarray takes that for the missing value: what was never written is compared
  if (worst == likeness::different && is_v2_) {
    fill_is_written_ = true;
    source_fill_ = fill;
  }
  if (worst == likeness::different && !by_value()) {
    conclude(verdict::differs,
             "has a different fill value" + (first.field.empty() ? "" : " in member " + first.field) + ": source " +
                 first.source + ", store " + first.store,
             v.member());
  }
  return worst;
}

bool dataset_comparison::stored_in_source(const layout& l, const index& chunk_index) const {
  if (nothing_stored_) return false;
  if (!l.same_grid) return true;
  std::vector<hsize_t> offset(dims_.size());
  for (std::size_t i = 0; i < offset.size(); ++i) offset[i] = chunk_index[i] * source_chunk_[i];
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(dataset_, offset.data(), &size) >= 0) return size > 0;
  // otherwise it was never written; if the index is damaged, it may have been, and H5Dread will report it
  return hdf5_reason().find("chunk storage is not allocated") == std::string::npos;
}

// The chunks that either side stores, if there are too many to ask for each; empty: visit all. `is_complete` becomes false if
// some may be missing.
std::optional<std::vector<dataset_comparison::index>> dataset_comparison::chunks_to_visit(const layout& l, bool& is_complete) {
  if (place_ || product(l.array.chunks()) <= max_visited_chunks) return {};
  const auto listed = l.array.list_chunks(max_listed_chunks);
  if (!listed) return {};  // so many are stored that a visit of all costs little more
  const auto order = [&](const index& a, const index& b) { return l.array.in_storage_order(a, b); };
  std::set<index, decltype(order)> out(listed->begin(), listed->end(), order);
  if (!nothing_stored_) {
    hsize_t stored = 0;
    const hdf5::handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
    const bool listable =
        l.same_grid && !index_unreliable_ && H5Dget_num_chunks(dataset_, space.get(), &stored) >= 0 && stored <= max_chunk_info;
    if (!listable) {
      H5Eclear2(H5E_DEFAULT);
      is_complete = false;
    }
    for (hsize_t k = 0; listable && k < stored; ++k) {
      std::vector<hsize_t> offset(dims_.size());
      unsigned mask = 0;
      haddr_t address = 0;
      hsize_t size = 0;
      check(H5Dget_chunk_info(dataset_, space.get(), k, offset.data(), &mask, &address, &size), "cannot list the chunks");
      index chunk_index(l.array.shape().size(), 0);
      bool inside = true;
      for (std::size_t i = 0; i < dims_.size(); ++i) {
        chunk_index[i] = offset[i] / source_chunk_[i];
        inside = inside && offset[i] < dims_[i];
      }
      if (inside) out.insert(chunk_index);
    }
  }
  return std::vector<index>(out.begin(), out.end());
}

// References need libhdf5; strings and sequences take memory that is not known before they are read.
bool dataset_comparison::can_run_in_threads(const view& v, const zarr::zarr_type& stored) {
  const std::function<bool(const source_type&)> has_references = [&](const source_type& t) {
    return t.kind == source_kind::reference || t.kind == source_kind::region ||
           std::any_of(t.members.begin(), t.members.end(), [&](const source_member& m) { return has_references(m.type); });
  };
  return !stored.variable() && !v.type.has_variable_parts() && !has_references(v.type);
}

std::shared_ptr<const source_chunks> dataset_comparison::source_chunks_of(const view& v) const {
  index dims = dims_;
  if (place_ && place_->added) dims.erase(dims.begin());
  return source_chunks::open(dataset_, properties_.get(), v.type, dims);
}

// Coordinates in the dimensions of the source; `last`: along the one that texts of characters have in addition.
dataset_comparison::index dataset_comparison::to_source_dims(const index& coordinates, std::size_t last) const {
  index source_coordinates(coordinates.begin() + (place_ && place_->added ? 1 : 0), coordinates.end());
  if (characters_ > 0) source_coordinates.push_back(last);
  return source_coordinates;
}

// A difference may end the array.
bool dataset_comparison::merge(const array_context& x, outcome& o) {
  if (o.again) {
    outcome again;
    compare_part(x, *o.again, reader(x), again);
    if (o.first_difference && !again.first_difference && again.unreadable.empty())
      again.unreadable.push_back(decoders_disagree(o.first_difference->first));
    o = std::move(again);
  }
  elements_ += o.elements;
  unchecked_ += o.unchecked;
  for (const std::string& reason : o.unreadable) conclude(verdict::unreadable, reason, x.v.member());
  return !o.first_difference || report_difference(x.v, o.first_difference->first, o.first_difference->second);
}

std::string dataset_comparison::decoders_disagree(const index& start) {
  return "is decoded differently by H5Dread and by verify at " + join(start) + "; one of the two has a mistake";
}

dataset_comparison::chunk_part dataset_comparison::part_of(const layout& l, const index& chunk_index) const {
  const std::size_t rank = chunk_index.size();
  chunk_part p;
  p.chunk = chunk_index;
  p.chunk_start.resize(rank);
  p.count.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    p.chunk_start[i] = l.array.grid(i).start(chunk_index[i]);
    p.count[i] = std::min(l.array.grid(i).length(chunk_index[i]), l.array.shape()[i] - p.chunk_start[i]);
  }
  p.start = p.chunk_start;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const std::uint64_t first = place_ && place_->axis == i ? place_->first : 0, end = first + dims_[i];
    const std::uint64_t chunk_end = std::min(p.chunk_start[i] + p.count[i], end);
    p.start[i] = std::max(p.chunk_start[i], first);
    p.count[i] = chunk_end - std::min(p.start[i], chunk_end);
    p.inside = p.inside && p.count[i] > 0;
  }
  return p;
}

// Compares a chunk, in another thread if that is possible. False if nothing after it counts.
bool dataset_comparison::chunk(array_context& x, const index& chunk_index, ordered_outcomes<outcome>& queue) {
  progress_(0);
  const auto shared = std::make_shared<chunk_part>(part_of(x.l, chunk_index));
  chunk_part& p = *shared;
  if (place_ && !p.inside) return true;
  p.stored = p.inside && stored_in_source(x.l, chunk_index);
  // in a shard, chunks are found by its index, which is read once
  if (!p.stored || product(x.l.array.chunks_per_shard()) != 1) {
    try {
      p.stored_range = find_stored(x.l, chunk_index);
    } catch (...) {
      return queue.submit(0, [thrown = std::current_exception()](outcome&) { std::rethrow_exception(thrown); });
    }
    if (!*p.stored_range && !p.inside) return true;
    if (!*p.stored_range && !p.stored && x.fill_known) {
      // only the same fill value on both sides; if it is undefined, there is nothing to compare
      outcome same;
      if (!may_be_undefined_) same.elements = product(p.count);
      return queue.add(std::move(same));
    }
  }
  const std::uint64_t part_bytes = p.inside ? product(p.count) * std::max<std::uint64_t>(x.v.type.size, x.l.leaf.size) : 0;
  if (x.is_serial || part_bytes > max_read_bytes) {
    if (!queue.finish()) return false;
    outcome o;
    if (p.inside) progress_(product(p.count) * x.v.type.size);
    compare_part(x, p, reader(x), o);
    return queue.add(std::move(o));
  }
  if (p.inside) progress_(product(p.count) * x.v.type.size);
  // encoded and decoded, and buffers that grow meanwhile
  std::uint64_t cost = std::max(sum(sum(part_bytes, 4 * x.decoded_bytes), 1), memory_ / max_open_chunks);
  const index start = source_index_of(p.start),
              count(p.count.begin(), p.count.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  std::optional<source_chunks::place> place;
  if (p.inside && p.stored && x.chunks) place = x.chunks->find(to_source_dims(start, 0), to_source_dims(count, 0));
  if (place) cost += x.chunks->memory(*place);
  queue.reserve(cost);
  if (place && std::exchange(x.is_sampled, true)) {
    return queue.submit(cost, [this, &x, shared, place = *place](outcome& o) {
      std::vector<std::byte> decoded;
      compare_part(
          x, *shared,
          [&](const index&, const index&) -> const std::byte* {
            return x.chunks->read(place, decoded) ? decoded.data() : throw source_error("");  // H5Dread says why
          },
          o);
      if (o.first_difference || !o.unreadable.empty()) o.again = shared;
    });
  }
  const auto source = std::make_shared<source_values>(x.v.type, x.v.memory_type);
  std::string reason;
  if (p.inside) {
    try {
      source->read(dataset_, to_source_dims(start, 0), to_source_dims(count, characters_));
    } catch (const source_error& e) {
      reason = e.what();
      if (reason.empty()) reason = "unknown error";
    }
  }
  return queue.submit(cost, [this, &x, shared, source, reason, place](outcome& o) {
    std::vector<std::byte> decoded;
    if (place && reason.empty() && x.chunks->read(*place, decoded) && !std::equal(decoded.begin(), decoded.end(), source->data()))
      o.unreadable.push_back(decoders_disagree(shared->start));
    compare_part(
        x, *shared,
        [&](const index&, const index&) {
      if (!reason.empty()) throw source_error(reason);
      return source->data();
        },
        o);
  });
}

std::optional<zarr::zarr_array::object_range> dataset_comparison::find_stored(const layout& l, const index& chunk_index) {
  try {
    return l.array.find_stored(chunk_index);
  } catch (const zarr::store_error& e) {
    throw in_chunk(chunk_index, e);
  }
}

zarr::store_error dataset_comparison::in_chunk(const index& chunk_index, const zarr::store_error& e) {
  return zarr::store_error("chunk " + join(chunk_index) + ": " + e.what());
}

// Reads with H5Dread.
dataset_comparison::block_reader dataset_comparison::reader(const array_context& x) const {
  return [this, source = std::make_shared<source_values>(x.v.type, x.v.memory_type)](const index& start, const index& count) {
    progress_(0);
    source->read(dataset_, to_source_dims(start, 0), to_source_dims(count, characters_));
    return source->data();
  };
}

void dataset_comparison::compare_part(const array_context& x, const chunk_part& p, const block_reader& read, outcome& o) const {
  zarr::element_buffer chunk_values;
  const auto range = p.stored_range ? *p.stored_range : find_stored(x.l, p.chunk);
  if (range) {
    try {
      x.l.array.decode(p.chunk, zarr::zarr_array::read(*range), chunk_values);
    } catch (const zarr::store_error& e) {
      throw in_chunk(p.chunk, e);
    }
  }
  const zarr::element_buffer* const present = range ? &chunk_values : nullptr;
  if (!beyond_is_fill(x, p.chunk, present, o)) {
    difference d;
    d.source = "the fill value, beyond what was written";
    d.store = "another value";
    o.first_difference.emplace(p.chunk_start, std::move(d));
    return;
  }
  if (!p.inside) return;
  const index source_start = source_index_of(p.start);
  const index source_count(p.count.begin(), p.count.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  // one read decompresses a chunk of the source only once
  const std::size_t element = std::max(x.v.type.size, characters_);
  const std::uint64_t max_elements = product(source_count) <= max_read_bytes / element
                                         ? product(source_count)
                                         : std::max<std::uint64_t>(1, block_bytes / element);
  for_each_block(source_start, source_count, max_elements, [&](const index& block_start, const index& size) {
    const std::byte* source_block = nullptr;
    try {
      source_block = read(block_start, size);
    } catch (const source_error& e) {
      // the other blocks can still be compared
      o.unchecked += product(size) * x.l.inside;
      o.unreadable.push_back(std::string("cannot be read from the source at ") + join(block_start) + ": " + e.what());
      return true;
    }
    block b{x.v,     x.l,           source_block,
            present, p.chunk_start, x.l.array.shape_of(p.chunk),
            p.start, p.count,       may_be_undefined_ && !p.stored};
    std::copy(block_start.begin(), block_start.end(), b.start.begin());
    if (place_) b.start[place_->axis] += place_->first;
    std::copy(size.begin(), size.end(), b.count.begin());
    return elements_of(b, x.c, o);
  });
}

// Compares the part of a chunk that is inside the array, but beyond the source.
bool dataset_comparison::beyond_is_fill(const array_context& x, const index& chunk_index, const zarr::element_buffer* chunk,
                                        outcome& o) const {
  const layout& l = x.l;
  const index& shape = l.array.shape();
  bool same_shape = true;
  const auto is_joined = [&](std::size_t i) { return place_ && place_->axis == i; };
  for (std::size_t i = 0; i < dims_.size(); ++i) same_shape = same_shape && (is_joined(i) || dims_[i] == shape[i]);
  if (same_shape || (!chunk && !source_fill_)) return true;
  const index extent = l.array.shape_of(chunk_index);
  const zarr::element_buffer& fill = l.array.fill();
  const std::size_t size = l.array.type().size;
  const std::uint64_t chunk_size = product(extent);
  for (std::uint64_t k = 0; k < chunk_size; ++k) {
    std::uint64_t remainder = k;
    bool in_array = true, beyond_source = false;
    for (std::size_t i = extent.size(); i-- > 0;) {
      const std::uint64_t place = l.array.grid(i).start(chunk_index[i]) + remainder % extent[i];
      remainder /= extent[i];
      in_array = in_array && place < shape[i];
      beyond_source = beyond_source || (i < dims_.size() && !is_joined(i) && place >= dims_[i]);
    }
    if (!in_array || !beyond_source) continue;
    if (source_fill_) {
      difference d;
      const std::byte* const expected = source_fill_->data() + k % l.inside * l.leaf.size;
      if (!chunk || x.c.compare(expected, element_of(l.array.type(), *chunk, k), d) == likeness::different) return false;
    } else if (chunk->strings.empty() ? std::memcmp(chunk->data.data() + k * size, fill.data.data(), size) != 0
                                      : chunk->strings[k] != fill.strings[0]) {
      return false;
    }
    ++o.elements;
  }
  return true;
}

bool dataset_comparison::elements_of(const block& b, const comparison& c, outcome& o) const {
  const std::size_t rank = b.start.size();
  const zarr::zarr_type& type = b.l.array.type();
  const zarr::element_buffer& store = b.chunk ? *b.chunk : b.l.array.fill();

  // strides in leaves, in H5Dread's buffer and in the chunk
  index source_stride(rank), store_stride(rank);
  std::uint64_t source_step = 1, store_step = 1;
  std::uint64_t source_at = 0, store_at = 0;
  for (std::size_t i = rank; i-- > 0;) {
    source_stride[i] = source_step;
    store_stride[i] = b.chunk ? store_step : 0;
    const bool from_type = i >= dims_.size();
    source_step *= from_type ? b.l.extra[i - dims_.size()] : b.count[i];
    store_step *= b.chunk_shape[i];
    if (from_type) source_at += b.start[i] * source_stride[i];
    store_at += (b.start[i] - b.chunk_start[i]) * store_stride[i];
  }
  // merge rows that are contiguous on both sides
  index n = b.count, s = source_stride, z = store_stride;
  while (n.size() > 1) {
    const std::size_t i = n.size() - 2;
    if (s[i] != s[i + 1] * n[i + 1] || z[i] != z[i + 1] * n[i + 1]) break;
    n[i] *= n[i + 1];
    s[i] = s[i + 1];
    z[i] = z[i + 1];
    n.pop_back();
    s.pop_back();
    z.pop_back();
  }
  const std::uint64_t row = n.empty() ? 1 : n.back();
  const std::uint64_t source_inner = n.empty() ? 1 : s.back();
  const std::uint64_t store_inner = n.empty() ? 1 : z.back();
  const std::size_t size = b.l.leaf.size;

  index position(n.size(), 0);
  std::uint64_t element_offset = 0;  // elements of the block, in C order
  while (true) {
    const std::byte* p = b.source + source_at * size;
    bool is_equal = false;
    if (!source_meaning_ && c.bytewise() && source_inner == 1) {
      const std::byte* q = store.data.data() + store_at * size;
      if (store_inner == 1) {
        is_equal = std::memcmp(p, q, row * size) == 0;
      } else if (store_inner == 0) {  // all fill value: compare the first one with it, and each other with the one before
        is_equal = std::memcmp(p, q, size) == 0 && std::memcmp(p, p + size, (row - 1) * size) == 0;
      }
    }
    if (is_equal) {
      o.elements += row;
    } else {
      for (std::uint64_t k = 0; k < row; ++k) {
        difference d;
        const std::byte* const element = p + k * source_inner * size;
        const zarr_element stored = element_of(type, store, static_cast<std::size_t>(store_at + k * store_inner));
        const likeness result =
            source_meaning_ ? compare_meaning(b.v.type, element, type, stored, d) : c.compare(element, stored, d);
        if (result == likeness::equal) {
          ++o.elements;
        } else if (result == likeness::unknown || b.undefined) {
          ++o.unchecked;
        } else {
          index coordinates(rank);
          std::uint64_t remainder = element_offset + k;
          for (std::size_t i = rank; i-- > 0;) {
            coordinates[i] = b.start[i] + remainder % b.count[i];
            remainder /= b.count[i];
          }
          o.first_difference.emplace(std::move(coordinates), std::move(d));
          return false;
        }
      }
    }
    element_offset += row;
    if (n.size() < 2) return true;
    std::size_t i = n.size() - 1;
    while (i > 0) {
      source_at += s[i - 1];
      store_at += z[i - 1];
      if (++position[i - 1] < n[i - 1]) break;
      source_at -= s[i - 1] * n[i - 1];
      store_at -= z[i - 1] * n[i - 1];
      position[--i] = 0;
    }
    if (i == 0) return true;
  }
}

}  // namespace zarrbits::verification
