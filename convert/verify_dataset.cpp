// SPDX-License-Identifier: BSL-1.0
#include "convert/verify_dataset.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace zarrbits::verify {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t largest_at_once = 256u << 20;  // a larger chunk is read from the source
constexpr std::uint64_t block_bytes = 16u << 20;       // in such pieces
constexpr std::uint64_t largest_grid = 1u << 20;       // more chunks than this are visited only where one is stored
constexpr std::size_t most_listed = 1u << 20;
constexpr std::uint64_t most_chunk_info = 4096;        // H5Dget_chunk_info takes time in the square of it
constexpr std::uint64_t largest_element = 1u << 30;

// The product, or the largest number where it does not fit.
std::uint64_t product(const std::uint64_t* first, const std::uint64_t* last) {
  std::uint64_t p = 1;
  for (; first != last; ++first) {
    if (*first == 0) return 0;
    if (__builtin_mul_overflow(p, *first, &p)) p = UINT64_MAX;
  }
  return p;
}
std::uint64_t product(const std::vector<std::uint64_t>& v) { return product(v.data(), v.data() + v.size()); }

std::string join(const std::vector<std::uint64_t>& v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  return s + "]";
}

// Calls f(start, count) for blocks of at most `most` elements that follow each other in C order. f returns false to stop.
template <class F>
bool for_blocks(const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count, std::uint64_t most, F&& f) {
  const std::size_t rank = start.size();
  if (product(count) == 0) return true;
  // dimensions from `split` + 1 on are taken whole, `split` in steps, those before one by one
  std::size_t split = rank;
  std::uint64_t inner = 1;
  while (split > 0 && inner <= most / count[split - 1]) inner *= count[--split];
  if (split == 0) return f(start, count);
  --split;
  const std::uint64_t step = std::max<std::uint64_t>(1, most / inner);
  std::vector<std::uint64_t> at(rank, 0);
  while (true) {
    std::vector<std::uint64_t> from(rank), size(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      from[i] = start[i] + at[i];
      size[i] = i < split ? 1 : i == split ? std::min(step, count[i] - at[i]) : count[i];
    }
    if (!f(from, size)) return false;
    at[split] += step;
    std::size_t i = split;
    while (at[i] >= count[i]) {
      at[i] = 0;
      if (i == 0) return true;
      ++at[--i];
    }
  }
}

source_type byte_type() {
  source_type t;
  t.kind = source_kind::integer;
  t.size = 1;
  t.name = "opaque bytes";
  return t;
}

// A one-dimensional array of the store, read from front to back.
class sequence_reader {
 public:
  explicit sequence_reader(const fs::path& directory) : array_(directory) {
    if (array_.shape().size() != 1) throw store_error("an array of sequences has " + std::to_string(array_.shape().size()) + " dimensions");
  }
  const zarr_array& array() const noexcept { return array_; }
  std::uint64_t size() const noexcept { return array_.shape()[0]; }
  zarr_element at(std::uint64_t i) {
    const std::uint64_t n = array_.chunk_shape()[0];
    if (!loaded_ || i / n != chunk_) {
      chunk_ = i / n;
      present_ = array_.read_chunk({chunk_}, values_);
      loaded_ = true;
    }
    return present_ ? element_of(array_.type(), values_, static_cast<std::size_t>(i % n)) : element_of(array_.type(), array_.fill(), 0);
  }

 private:
  zarr_array array_;
  zarr_values values_;
  std::uint64_t chunk_ = 0;
  bool loaded_ = false;
  bool present_ = false;
};

}  // namespace

// How the dimensions of the store's array belong to those of the dataset: first the dataspace's, then those of array types.
struct dataset_comparison::layout {
  const zarr_array& array;
  const source_type& leaf;
  index extra;                // dimensions of array types
  std::uint64_t inside = 1;   // leaves in an element of the source
  bool same_grid = false;     // a chunk of the store covers the elements of just one chunk of the source
};

// A part of a chunk that is in memory on both sides.
struct dataset_comparison::block {
  const view& v;
  const layout& l;
  const std::byte* source;
  const zarr_values* chunk;   // null: never written, all fill value
  index chunk_start;
  index start, count;         // in the dimensions of the store's array
  bool undefined;             // the source never wrote it, and does not say what it is then
};

std::string dataset_comparison::view::member() const {
  std::string s;
  for (const std::string& m : members) s += (s.empty() ? "" : ".") + m;
  return s;
}

void dataset_comparison::conclude(verdict v, const std::string& reason, const std::string& member) {
  if (v <= finding_.outcome) return;
  finding_.outcome = v;
  finding_.reason = member.empty() ? reason : "member " + member + ": " + reason;
}

bool dataset_comparison::different(const view& v, const index& at, const difference& d) {
  std::string field = v.member();
  if (!d.field.empty()) field += (field.empty() ? "" : ".") + d.field;
  if (finding_.outcome != verdict::differs) {
    finding_.has_index = true;
    finding_.index = at;
    finding_.field = field;
    finding_.source_value = d.source;
    finding_.store_value = d.store;
  }
  conclude(verdict::differs,
           "differs at " + join(at) + (field.empty() ? "" : " in member " + field) + ": source " + d.source + ", store " + d.store, "");
  return false;
}

void dataset_comparison::read_properties() {
  properties_ = checked(H5Dget_create_plist(dataset_), "cannot read the creation properties");
  const H5D_layout_t kind = H5Pget_layout(properties_.get());
  if (kind == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(dims_.size());
    if (H5Pget_chunk(properties_.get(), static_cast<int>(chunk.size()), chunk.data()) == static_cast<int>(dims_.size())) {
      source_chunk_.assign(chunk.begin(), chunk.end());
    }
    const handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
    std::vector<hsize_t> limit(dims_.size());
    if (!limit.empty()) check(H5Sget_simple_extent_dims(space.get(), nullptr, limit.data()) < 0 ? -1 : 0, "cannot read the dataspace");
    // extensible arrays, which have one unlimited dimension, are listed as if it were the first
    index_unreliable_ = std::count(limit.begin(), limit.end(), H5S_UNLIMITED) == 1 && limit[0] != H5S_UNLIMITED;
  }
  const bool plain = kind == H5D_CHUNKED || (kind == H5D_CONTIGUOUS && H5Pget_external_count(properties_.get()) == 0);
  nothing_stored_ = plain && H5Dget_storage_size(dataset_) == 0;
  H5D_fill_value_t state = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  check(H5Pfill_value_defined(properties_.get(), &state), "cannot read the fill value");
  check(H5Pget_fill_time(properties_.get(), &time), "cannot read the fill time");
  may_be_undefined_ = state == H5D_FILL_VALUE_UNDEFINED || time == H5D_FILL_TIME_NEVER;
}

// What goes wrong on either side is this dataset's verdict, and not the end of the comparison.
template <class F>
void dataset_comparison::guarded(const std::string& member, F&& f) {
  try {
    f();
  } catch (const not_supported& e) {
    unchecked_ += product(dims_);
    conclude(verdict::unchecked, std::string("was not compared: this reader does not know ") + e.what(), member);
  } catch (const store_error& e) {
    conclude(verdict::differs, std::string("cannot be read from the store: ") + e.what(), member);
  } catch (const zarrbits::error& e) {
    conclude(verdict::differs, std::string("cannot be read from the store: ") + e.what(), member);
  } catch (const fs::filesystem_error& e) {
    conclude(verdict::differs, std::string("cannot be read from the store: ") + e.what(), member);
  } catch (const source_error& e) {
    conclude(verdict::unreadable, std::string("cannot be read from the source: ") + e.what(), member);
  }
}

void dataset_comparison::run(const fs::path& directory) {
  guarded("", [&] { whole(directory); });
}

void dataset_comparison::whole(const fs::path& directory) {
  const handle type = checked(H5Dget_type(dataset_), "cannot read the datatype");
  const handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
  const node_kind kind = kind_of(directory);
  if (kind == node_kind::none) return conclude(verdict::missing, "is not in the store", "");

  const H5S_class_t shape = H5Sget_simple_extent_type(space.get());
  if (shape == H5S_NULL) {
    // no elements: a group will do, or an array that has none either
    if (kind == node_kind::array && product(zarr_array(directory).shape()) != 0) {
      conclude(verdict::differs, "has no dataspace, but the store's array has elements", "");
    }
    return;
  }
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) throw source_error("cannot read the dataspace: " + hdf5_reason());
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (rank > 0 && H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) < 0) throw source_error("cannot read the dataspace: " + hdf5_reason());
  dims_.assign(dims.begin(), dims.end());
  read_properties();

  const source_type t = describe(type.get());
  if (t.kind == source_kind::unsupported || t.size == 0) {
    unchecked_ += product(dims_);
    return conclude(verdict::unchecked, "was not compared: " + t.name, "");
  }
  if (t.size > largest_element) return conclude(verdict::unchecked, "was not compared: its elements are larger than 1 GiB", "");
  const handle memory = memory_type(t, type.get());
  node({t, type.get(), memory.get(), {}}, directory);
}

void dataset_comparison::node(const view& v, const fs::path& directory) {
  guarded(v.member(), [&] {
    switch (kind_of(directory)) {
      case node_kind::none: return conclude(verdict::missing, "is not in the store", v.member());
      case node_kind::array: return array(v, directory);
      case node_kind::group: break;
    }
    if (v.type.kind == source_kind::compound) return members(v, directory);
    if (v.type.kind == source_kind::sequence) return sequences(v, directory);
    conclude(verdict::differs, "is a group in the store", v.member());
  });
}

// A compound that Zarr's struct cannot hold is a group with one array for each member.
void dataset_comparison::members(const view& v, const fs::path& directory) {
  for (unsigned i = 0; i < v.type.members.size(); ++i) {
    const source_member& m = v.type.members[i];
    std::vector<std::string> path = v.members;
    path.push_back(m.name);
    const std::string name = v.members.empty() ? m.name : v.member() + "." + m.name;
    if (m.type.kind == source_kind::unsupported || m.type.size == 0) {
      unchecked_ += product(dims_);
      conclude(verdict::unchecked, "was not compared: " + m.type.name, name);
      continue;
    }
    fs::path child;
    for (const fs::directory_entry& e : fs::directory_iterator(directory)) {
      if (unescape(e.path().filename().string()) == m.name) child = e.path();
    }
    if (child.empty()) {
      conclude(verdict::missing, "is not in the store", name);
      continue;
    }
    const handle file_type = checked(H5Tget_member_type(v.file_type, i), "cannot read a compound's member");
    // H5Dread takes a compound of the wanted members: this one alone, in the place of the whole
    handle memory = memory_type(m.type, file_type.get());
    for (std::size_t k = path.size(); k-- > 0;) {
      handle outer = checked(H5Tcreate(H5T_COMPOUND, m.type.size), "cannot make a memory type");
      check(H5Tinsert(outer.get(), path[k].c_str(), 0, memory.get()), "cannot make a memory type");
      memory = std::move(outer);
    }
    node({m.type, file_type.get(), memory.get(), path}, child);
  }
}

// Sequences are a group: `values` has their elements one after the other, `offsets` where each begins, and the end of the last.
void dataset_comparison::sequences(const view& v, const fs::path& directory) {
  sequence_reader offsets(directory / "offsets");
  sequence_reader values(directory / "values");
  const source_type& base = v.type.members[0].type;
  const comparison c(base, values.array().type(), address_of_);
  if (c.types() == likeness::different) return conclude(verdict::differs, "has another data type: " + c.why(), v.member());
  const zarr_type& offset_type = offsets.array().type();
  if ((offset_type.kind != zarr_kind::signed_integer && offset_type.kind != zarr_kind::unsigned_integer) || offset_type.size != 8) {
    throw not_supported("offsets of the type " + offset_type.name);
  }
  const std::uint64_t n = product(dims_);
  if (offsets.size() != n + 1) {
    return conclude(verdict::differs, "has " + std::to_string(n) + " sequences, but the store " + std::to_string(offsets.size()) + " offsets", v.member());
  }
  const auto offset = [&](std::uint64_t i) {
    std::uint64_t o = 0;
    std::memcpy(&o, offsets.at(i).bytes, 8);
    return o;
  };
  std::uint64_t begin = offset(0);
  if (begin != 0) return conclude(verdict::differs, "has offsets in the store that do not begin with 0", v.member());
  std::uint64_t i = 0;
  source_values source(v.type, v.memory_type);
  const bool whole = for_blocks(index(dims_.size(), 0), dims_, std::max<std::uint64_t>(1, (1u << 20) / v.type.size), [&](const index& start, const index& count) {
    source.read(dataset_, start, count);
    for (std::uint64_t k = 0; k < product(count); ++k, ++i) {
      hvl_t sequence;
      std::memcpy(&sequence, source.data() + k * sizeof sequence, sizeof sequence);
      const std::uint64_t end = offset(i + 1);
      if (end < begin || end - begin != sequence.len || end > values.size()) {
        conclude(verdict::differs, "differs in sequence " + std::to_string(i) + ": " + std::to_string(sequence.len) +
                                       " elements in the source, offsets " + std::to_string(begin) + " and " + std::to_string(end) + " in the store", v.member());
        return false;
      }
      for (std::uint64_t j = 0; j < sequence.len; ++j) {
        difference d;
        const likeness l = c.compare(static_cast<const std::byte*>(sequence.p) + j * base.size, values.at(begin + j), d);
        if (l == likeness::different) return different(v, {i, j}, d);
        ++(l == likeness::equal ? elements_ : unchecked_);
      }
      begin = end;
    }
    return true;
  });
  if (!whole) return;
  if (begin != values.size()) return conclude(verdict::differs, "has " + std::to_string(begin) + " values, but the store more", v.member());
  if (unchecked_ > 0) conclude(verdict::unchecked, "was compared in part: " + std::to_string(unchecked_) + " elements are of types that were not", v.member());
}

void dataset_comparison::array(const view& v, const fs::path& directory) {
  const zarr_array a(directory);
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
  index shape = dims_;
  shape.insert(shape.end(), extra.begin(), extra.end());
  if (shape != a.shape()) return conclude(verdict::differs, "has the shape " + join(shape) + ", in the store " + join(a.shape()), v.member());

  const comparison c(*leaf, a.type(), address_of_);
  if (c.types() == likeness::different) return conclude(verdict::differs, "has another data type: " + c.why(), v.member());
  if (c.types() == likeness::unknown) {
    unchecked_ += product(shape);
    return conclude(verdict::unchecked, "was not compared: " + c.why(), v.member());
  }
  layout l{a, *leaf, extra, product(extra), false};
  l.same_grid = !source_chunk_.empty() && std::equal(source_chunk_.begin(), source_chunk_.end(), a.chunk_shape().begin());
  for (std::size_t i = 0; i < extra.size(); ++i) l.same_grid = l.same_grid && a.chunk_shape()[dims_.size() + i] >= extra[i];

  const likeness fill = fill_value(v, l, c);
  if (fill == likeness::different) return;

  const std::uint64_t unchecked_before = unchecked_;
  if (product(shape) != 0) {
    bool all = true;
    const auto listed = chunks_to_visit(l, all);
    if (listed) {
      std::uint64_t visited = 0;
      for (const index& at : *listed) {
        if (!chunk(v, l, c, at, fill == likeness::equal)) return;
        std::uint64_t n = 1;
        for (std::size_t i = 0; i < at.size(); ++i) {
          n *= std::min(a.chunk_shape()[i], shape[i] - at[i] * a.chunk_shape()[i]);
        }
        visited += n;
      }
      // what is stored on neither side is the fill value on both
      (all && fill == likeness::equal && !may_be_undefined_ ? elements_ : unchecked_) += product(shape) - visited;
    } else {
      index at(shape.size(), 0);
      while (true) {
        if (!chunk(v, l, c, at, fill == likeness::equal)) return;
        std::size_t i = shape.size();
        while (i > 0 && ++at[i - 1] > (shape[i - 1] - 1) / a.chunk_shape()[i - 1]) at[--i] = 0;
        if (i == 0) break;
      }
    }
    if (!all) conclude(verdict::unchecked, "was compared in part: it has too many chunks to look for those that are stored", v.member());
  }
  if (fill == likeness::unknown) conclude(verdict::unchecked, "has a fill value that was not compared", v.member());
  if (unchecked_ > unchecked_before) {
    conclude(verdict::unchecked, "was compared in part: " + std::to_string(unchecked_ - unchecked_before) + " elements have no defined value, or a type that was not",
             v.member());
  }
}

likeness dataset_comparison::fill_value(const view& v, const layout& l, const comparison& c) {
  H5D_fill_value_t state = H5D_FILL_VALUE_ERROR;
  check(H5Pfill_value_defined(properties_.get(), &state), "cannot read the fill value");
  if (state == H5D_FILL_VALUE_UNDEFINED) return likeness::equal;  // any will do
  source_values fill(v.type, v.memory_type);
  fill.read_fill(properties_.get());
  const zarr_element store = element_of(l.array.type(), l.array.fill(), 0);
  likeness worst = likeness::equal;
  difference first;
  for (std::uint64_t i = 0; i < l.inside; ++i) {
    difference d;
    const likeness like = c.compare(fill.data() + i * l.leaf.size, store, d);
    if (i == 0) first = d;
    // an array type's fill value that is not the same throughout has no counterpart in Zarr
    if (i > 0 && (like == likeness::different) != (worst == likeness::different)) return likeness::unknown;
    worst = std::max(worst, like);
  }
  if (worst == likeness::different) {
    conclude(verdict::differs, "has another fill value" + (first.field.empty() ? "" : " in member " + first.field) + ": source " + first.source +
                                   ", store " + first.store, v.member());
  }
  return worst;
}

bool dataset_comparison::stored_in_source(const layout& l, const index& at) const {
  if (nothing_stored_) return false;
  if (!l.same_grid) return true;
  std::vector<hsize_t> offset(dims_.size());
  for (std::size_t i = 0; i < offset.size(); ++i) offset[i] = at[i] * source_chunk_[i];
  hsize_t size = 0;
  const bool stored = H5Dget_chunk_storage_size(dataset_, offset.data(), &size) >= 0 && size > 0;
  if (!stored) H5Eclear2(H5E_DEFAULT);
  return stored;
}

// The chunks that are stored on either side, where there are too many to ask for each; empty: visit all. `all` becomes false where
// some may have been left out.
std::optional<std::vector<dataset_comparison::index>> dataset_comparison::chunks_to_visit(const layout& l, bool& all) {
  std::uint64_t grid = 1;
  for (std::size_t i = 0; i < l.array.shape().size(); ++i) {
    if (__builtin_mul_overflow(grid, (l.array.shape()[i] - 1) / l.array.chunk_shape()[i] + 1, &grid)) grid = UINT64_MAX;
  }
  if (grid <= largest_grid) return {};
  const auto listed = l.array.list_chunks(most_listed);
  if (!listed) return {};  // so many are stored that visiting all is no waste
  std::set<index> out;
  for (const index& at : *listed) {
    bool inside = true;
    for (std::size_t i = 0; i < at.size(); ++i) inside = inside && at[i] <= (l.array.shape()[i] - 1) / l.array.chunk_shape()[i];
    if (inside) out.insert(at);
  }
  if (!nothing_stored_) {
    hsize_t stored = 0;
    const handle space = checked(H5Dget_space(dataset_), "cannot read the dataspace");
    const bool listable = l.same_grid && !index_unreliable_ && H5Dget_num_chunks(dataset_, space.get(), &stored) >= 0 && stored <= most_chunk_info;
    if (!listable) {
      H5Eclear2(H5E_DEFAULT);
      all = false;
    }
    for (hsize_t k = 0; listable && k < stored; ++k) {
      std::vector<hsize_t> offset(dims_.size());
      unsigned mask = 0;
      haddr_t address = 0;
      hsize_t size = 0;
      check(H5Dget_chunk_info(dataset_, space.get(), k, offset.data(), &mask, &address, &size), "cannot list the chunks");
      index at(l.array.shape().size(), 0);
      bool inside = true;
      for (std::size_t i = 0; i < dims_.size(); ++i) {
        at[i] = offset[i] / source_chunk_[i];
        inside = inside && offset[i] < dims_[i];
      }
      if (inside) out.insert(at);
    }
  }
  return std::vector<index>(out.begin(), out.end());
}

bool dataset_comparison::chunk(const view& v, const layout& l, const comparison& c, const index& at, bool fill_known) {
  const std::size_t rank = at.size();
  index start(rank), count(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    start[i] = at[i] * l.array.chunk_shape()[i];
    count[i] = std::min(l.array.chunk_shape()[i], l.array.shape()[i] - start[i]);
  }
  zarr_values values;
  bool present = false;
  try {
    present = l.array.read_chunk(at, values);
  } catch (const store_error& e) {
    throw store_error("chunk " + join(at) + ": " + e.what());
  }
  const bool stored = present && !may_be_undefined_ ? true : stored_in_source(l, at);
  if (!present && !stored && fill_known) {
    // the same fill value on both sides, and nothing else; where it is undefined there is nothing to compare
    if (!may_be_undefined_) elements_ += product(count);
    return true;
  }
  const index source_start(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  const index source_count(count.begin(), count.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  source_values source(v.type, v.memory_type);
  // a chunk of the source is decompressed once if it is read at once
  const std::uint64_t most = product(source_count) <= largest_at_once / v.type.size ? product(source_count) : std::max<std::uint64_t>(1, block_bytes / v.type.size);
  return for_blocks(source_start, source_count, most,
                    [&](const index& from, const index& size) {
                      try {
                        source.read(dataset_, from, size);
                      } catch (const source_error& e) {
                        // the other blocks can still be compared
                        unchecked_ += product(size) * l.inside;
                        conclude(verdict::unreadable, std::string("cannot be read from the source at ") + join(from) + ": " + e.what(), v.member());
                        return true;
                      }
                      block b{v, l, source.data(), present ? &values : nullptr, start, start, count, may_be_undefined_ && !stored};
                      std::copy(from.begin(), from.end(), b.start.begin());
                      std::copy(size.begin(), size.end(), b.count.begin());
                      return elements_of(b, c);
                    });
}

bool dataset_comparison::elements_of(const block& b, const comparison& c) {
  const std::size_t rank = b.start.size();
  const zarr_type& type = b.l.array.type();
  const zarr_values& store = b.chunk ? *b.chunk : b.l.array.fill();

  // strides in leaves, within what H5Dread delivered and within the chunk
  index source_stride(rank), store_stride(rank);
  std::uint64_t source_step = 1, store_step = 1;
  std::uint64_t source_at = 0, store_at = 0;
  for (std::size_t i = rank; i-- > 0;) {
    source_stride[i] = source_step;
    store_stride[i] = b.chunk ? store_step : 0;
    const bool from_type = i >= dims_.size();
    source_step *= from_type ? b.l.extra[i - dims_.size()] : b.count[i];
    store_step *= b.l.array.chunk_shape()[i];
    if (from_type) source_at += b.start[i] * source_stride[i];
    store_at += (b.start[i] - b.chunk_start[i]) * store_stride[i];
  }
  // rows that follow each other on both sides are one longer row
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

  index at(n.size(), 0);
  std::uint64_t done = 0;  // elements of the block, in C order
  while (true) {
    const std::byte* p = b.source + source_at * size;
    bool same = false;
    if (c.bytewise() && source_inner == 1) {
      const std::byte* q = store.data.data() + store_at * size;
      if (store_inner == 1) {
        same = std::memcmp(p, q, row * size) == 0;
      } else if (store_inner == 0) {  // all fill value: the first equals it, and each the one before
        same = std::memcmp(p, q, size) == 0 && std::memcmp(p, p + size, (row - 1) * size) == 0;
      }
    }
    if (same) {
      elements_ += row;
    } else {
      for (std::uint64_t k = 0; k < row; ++k) {
        difference d;
        const likeness like = c.compare(p + k * source_inner * size, element_of(type, store, static_cast<std::size_t>(store_at + k * store_inner)), d);
        if (like == likeness::equal) {
          ++elements_;
        } else if (like == likeness::unknown || b.undefined) {
          ++unchecked_;
        } else {
          index where(rank);
          std::uint64_t left = done + k;
          for (std::size_t i = rank; i-- > 0;) {
            where[i] = b.start[i] + left % b.count[i];
            left /= b.count[i];
          }
          return different(b.v, where, d);
        }
      }
    }
    done += row;
    if (n.size() < 2) return true;
    std::size_t i = n.size() - 1;
    while (i > 0) {
      source_at += s[i - 1];
      store_at += z[i - 1];
      if (++at[i - 1] < n[i - 1]) break;
      source_at -= s[i - 1] * n[i - 1];
      store_at -= z[i - 1] * n[i - 1];
      at[--i] = 0;
    }
    if (i == 0) return true;
  }
}

}  // namespace zarrbits::verify
