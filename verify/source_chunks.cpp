// SPDX-License-Identifier: BSL-1.0
#include "verify/source_chunks.hpp"

#include "verify/blocks.hpp"
#include "verify/decode/plain_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_chunk_bytes = 256u << 20;
constexpr H5Z_filter_t bzip2_id = 307, blosc_id = 32001, zstd_id = 32015;

// True if memory has the bytes of the file, be it in the other order.
bool has_same_bytes(const source_type& t) {
  switch (t.kind) {
    case source_kind::integer:
    case source_kind::floating: return t.exact && !t.reversed;
    case source_kind::text:
    case source_kind::opaque: return true;
    default: return false;
  }
}

}  // namespace

std::shared_ptr<const source_chunks> source_chunks::open(hid_t dataset, hid_t properties, const source_type& type,
                                                         const index& dims) {
  if (!has_same_bytes(type) || dims.empty() || H5Pget_layout(properties) != H5D_CHUNKED) return nullptr;
  const hdf5::handle file = checked(H5Iget_file_id(dataset), "cannot get the file of a dataset");
  const hdf5::chunk_locator locator(file.get());
  if (locator.descriptor() < 0 || locator.remote()) return nullptr;
  std::shared_ptr<source_chunks> c(new source_chunks(dataset, hdf5::file_bytes(locator)));
  std::vector<hsize_t> chunk(dims.size());
  if (H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) != static_cast<int>(chunk.size())) return nullptr;
  c->dims_ = dims;
  c->chunk_.assign(chunk.begin(), chunk.end());
  c->element_ = type.size;
  c->word_ = type.swapped && type.kind != source_kind::opaque ? type.size : 1;
  const std::uint64_t factors[] = {product(c->chunk_), type.size};
  c->chunk_bytes_ = product(std::begin(factors), std::end(factors));
  if (c->chunk_bytes_ == 0 || c->chunk_bytes_ > max_chunk_bytes || !c->read_filters(properties)) return nullptr;
  return c;
}

bool source_chunks::read_filters(hid_t properties) {
  unsigned options = 0;
  if (H5Pget_chunk_opts(properties, &options) < 0) return false;
  are_edges_filtered_ = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
  const int n = H5Pget_nfilters(properties);
  for (int i = 0; i < n; ++i) {
    unsigned flags = 0, values[1] = {};
    std::size_t count = 1;
    switch (H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &count, values, 0, nullptr, nullptr)) {
      case H5Z_FILTER_DEFLATE: filters_.push_back({filter::deflate}); break;
      case H5Z_FILTER_SHUFFLE:
        if (count != 1 || values[0] == 0) return false;
        filters_.push_back({filter::shuffle, values[0]});
        break;
      case H5Z_FILTER_FLETCHER32: filters_.push_back({filter::fletcher32}); break;
      case bzip2_id: filters_.push_back({filter::bzip2}); break;
      case blosc_id: filters_.push_back({filter::blosc}); break;
      case zstd_id: filters_.push_back({filter::zstd}); break;
      default: return false;
    }
  }
  return n >= 0;
}

std::optional<source_chunks::place> source_chunks::find(const index& start, const index& count) const {
  bool is_partial = false;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (start[i] % chunk_[i] != 0 || start[i] >= dims_[i] || count[i] != std::min(chunk_[i], dims_[i] - start[i])) return {};
    is_partial = is_partial || count[i] < chunk_[i];
  }
  place p;
  const auto range = bytes_.chunks().find(dataset_, start, p.mask);
  if (!range || range->size > 2 * chunk_bytes_ + (64u << 10)) return {};
  p.offset = range->offset;
  p.size = range->size;
  p.is_filtered = are_edges_filtered_ || !is_partial;
  p.count = count;
  return p;
}

bool source_chunks::read(const place& p, std::vector<std::byte>& values) const {
  try {
    bytes_.require_range(p.offset, p.size);
    values.resize(static_cast<std::size_t>(p.size));
    bytes_.read(p.offset, values);
    const std::uint64_t max_size = chunk_bytes_ + 4 * filters_.size();
    for (std::size_t i = filters_.size(); p.is_filtered && i-- > 0;) {
      if (i < 32 && (p.mask >> i & 1) != 0) continue;
      switch (filters_[i].kind) {
        case filter::deflate: values = decode_zlib(values, max_size); break;
        case filter::shuffle: values = unshuffle(values, filters_[i].element); break;
        case filter::fletcher32: drop_fletcher32(values); break;
        case filter::bzip2: values = decode_bz2(values, max_size); break;
        case filter::blosc: values = decode_blosc(values, max_size); break;
        case filter::zstd: values = decode_zstd(values, max_size); break;
      }
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return false;  // libhdf5 gives the reason
  }
  if (values.size() != chunk_bytes_) return false;
  if (word_ > 1) {
    for (std::size_t i = 0; i < values.size(); i += word_)
      std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + word_));
  }
  if (p.count != chunk_) crop(p.count, values);
  return true;
}

// Moves rows to the front: each one comes from further back.
void source_chunks::crop(const index& count, std::vector<std::byte>& values) const {
  const std::size_t rank = chunk_.size(), row = static_cast<std::size_t>(count[rank - 1]) * element_;
  std::size_t target = 0;
  for_each_block(index(rank, 0), count, count[rank - 1], [&](const index& start, const index&) {
    std::size_t source = 0;
    for (std::size_t i = 0; i < rank; ++i)
      source = source * static_cast<std::size_t>(chunk_[i]) + static_cast<std::size_t>(start[i]);
    std::memmove(values.data() + target, values.data() + source * element_, row);
    target += row;
    return true;
  });
  values.resize(target);
}

}  // namespace zarrbits::verification
