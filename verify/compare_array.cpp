// SPDX-License-Identifier: BSL-1.0
//
// Compares a dataset, or a member of one, with an array of the store: chunk by chunk, and large chunks in blocks.
//
#include "verify/blocks.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/decode/plain_codec_chain.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_read_bytes = 256u << 20;    // limit for reading a chunk of the source at once
constexpr std::uint64_t block_bytes = 16u << 20;        // size of the blocks of a larger chunk
constexpr std::uint64_t max_visited_chunks = 1u << 20;  // with more chunks than this, visit only stored ones
constexpr std::size_t max_listed_chunks = 1u << 20;
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
  // an array of several files has one fill value, and they may have several, and that of int8 may be no boolean: then what was
  // never written is compared by value
  const likeness fill = source_meaning_ ? likeness::equal : fill_value(v, l, c);
  if (fill == likeness::different && !by_value()) return;

  const std::uint64_t unchecked_before = unchecked_;
  if (product(shape) != 0) {
    bool is_complete = true;
    const auto listed = chunks_to_visit(l, is_complete);
    if (listed) {
      std::uint64_t visited = 0;
      for (const index& chunk_index : *listed) {
        if (!chunk(v, l, c, chunk_index, fill == likeness::equal)) return;
        std::uint64_t n = 1;
        for (std::size_t i = 0; i < chunk_index.size(); ++i) {
          n *= std::min(a.grid(i).length(chunk_index[i]), shape[i] - a.grid(i).start(chunk_index[i]));
        }
        visited += n;
      }
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
        return for_each_block(first, count, 1, [&](const index& chunk_index, const index&) {
          return chunk(v, l, c, chunk_index, fill == likeness::equal);
        });
      });
      if (!is_equal) return;
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
  source_values fill(v.type, v.memory_type);
  fill.read_fill(properties_.get());
  const zarr_element store = element_of(l.array.type(), l.array.fill(), 0);
  likeness worst = likeness::equal;
  difference first;
  for (std::uint64_t i = 0; i < l.inside; ++i) {
    difference d;
    const likeness result = c.compare(fill.data() + i * l.leaf.size, store, d);
    if (i == 0) first = d;
    // an array type's fill value with different elements has no counterpart in Zarr
    if (i > 0 && (result == likeness::different) != (worst == likeness::different)) return likeness::unknown;
    worst = std::max(worst, result);
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
    const handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
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

bool dataset_comparison::chunk(const view& v, const layout& l, const comparison& c, const index& chunk_index, bool fill_known) {
  progress_(0);
  const std::size_t rank = chunk_index.size();
  index start(rank), count(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    start[i] = l.array.grid(i).start(chunk_index[i]);
    count[i] = std::min(l.array.grid(i).length(chunk_index[i]), l.array.shape()[i] - start[i]);
  }
  bool inside = true;  // a part of it is in the source
  index part = start;  // start of that part
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const std::uint64_t first = place_ && place_->axis == i ? place_->first : 0, end = first + dims_[i];
    part[i] = std::max(start[i], first);
    count[i] = std::min(start[i] + count[i], end) - std::min(part[i], std::min(start[i] + count[i], end));
    inside = inside && count[i] > 0;
  }
  if (place_ && !inside) return true;
  zarr::element_buffer chunk_values;
  bool present = false;
  try {
    present = l.array.read_chunk(chunk_index, chunk_values);
  } catch (const zarr::store_error& e) {
    throw zarr::store_error("chunk " + join(chunk_index) + ": " + e.what());
  }
  if (!beyond_is_fill(l, chunk_index, present ? &chunk_values : nullptr)) {
    difference d;
    d.source = "the fill value, beyond what was written";
    d.store = "another value";
    return report_difference(v, start, d);
  }
  if (!inside) return true;
  progress_(product(count) * v.type.size);
  const bool stored = present && !may_be_undefined_ ? true : stored_in_source(l, chunk_index);
  if (!present && !stored && fill_known) {
    // only the same fill value on both sides; if it is undefined, there is nothing to compare
    if (!may_be_undefined_) elements_ += product(count);
    return true;
  }
  const index source_start = source_index_of(part);
  const index source_count(count.begin(), count.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  source_values source(v.type, v.memory_type);
  // one read decompresses a chunk of the source only once
  const std::size_t element = std::max(v.type.size, characters_);
  const std::uint64_t max_elements = product(source_count) <= max_read_bytes / element
                                         ? product(source_count)
                                         : std::max<std::uint64_t>(1, block_bytes / element);
  return for_each_block(source_start, source_count, max_elements, [&](const index& block_start, const index& size) {
    progress_(0);
    try {
      const auto to_source_dims = [&](const index& coordinates, std::size_t last) {
        index source_coordinates(coordinates.begin() + (place_ && place_->added ? 1 : 0), coordinates.end());
        if (characters_ > 0) source_coordinates.push_back(last);
        return source_coordinates;
      };
      source.read(dataset_, to_source_dims(block_start, 0), to_source_dims(size, characters_));
    } catch (const source_error& e) {
      // the other blocks can still be compared
      unchecked_ += product(size) * l.inside;
      conclude(verdict::unreadable, std::string("cannot be read from the source at ") + join(block_start) + ": " + e.what(),
               v.member());
      return true;
    }
    block b{v,
            l,
            source.data(),
            present ? &chunk_values : nullptr,
            start,
            l.array.shape_of(chunk_index),
            part,
            count,
            may_be_undefined_ && !stored};
    std::copy(block_start.begin(), block_start.end(), b.start.begin());
    if (place_) b.start[place_->axis] += place_->first;
    std::copy(size.begin(), size.end(), b.count.begin());
    return elements_of(b, c);
  });
}

// Compares the part of a chunk that is inside the array, but beyond the source.
bool dataset_comparison::beyond_is_fill(const layout& l, const index& chunk_index, const zarr::element_buffer* chunk) {
  const index& shape = l.array.shape();
  bool same_shape = true;
  const auto is_joined = [&](std::size_t i) { return place_ && place_->axis == i; };
  for (std::size_t i = 0; i < dims_.size(); ++i) same_shape = same_shape && (is_joined(i) || dims_[i] == shape[i]);
  if (!chunk || same_shape) return true;
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
    if (chunk->strings.empty() ? std::memcmp(chunk->data.data() + k * size, fill.data.data(), size) != 0
                               : chunk->strings[k] != fill.strings[0])
      return false;
    ++elements_;
  }
  return true;
}

bool dataset_comparison::elements_of(const block& b, const comparison& c) {
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
      elements_ += row;
    } else {
      for (std::uint64_t k = 0; k < row; ++k) {
        difference d;
        const std::byte* const element = p + k * source_inner * size;
        const zarr_element stored = element_of(type, store, static_cast<std::size_t>(store_at + k * store_inner));
        const likeness result =
            source_meaning_ ? compare_meaning(b.v.type, element, type, stored, d) : c.compare(element, stored, d);
        if (result == likeness::equal) {
          ++elements_;
        } else if (result == likeness::unknown || b.undefined) {
          ++unchecked_;
        } else {
          index coordinates(rank);
          std::uint64_t remainder = element_offset + k;
          for (std::size_t i = rank; i-- > 0;) {
            coordinates[i] = b.start[i] + remainder % b.count[i];
            remainder /= b.count[i];
          }
          return report_difference(b.v, coordinates, d);
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
