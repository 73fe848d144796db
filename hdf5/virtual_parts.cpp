// SPDX-License-Identifier: BSL-1.0
#include "hdf5/virtual_parts.hpp"

#include "hdf5/chunk_form.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/type_description.hpp"
#include "io/files.hpp"

#include <algorithm>
#include <fcntl.h>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::uint64_t strided_blocks::elements() const { return array::saturating_mul(count, block); }

std::uint64_t strided_blocks::end() const {
  const std::uint64_t distance = count <= 1 ? 0 : array::saturating_mul(count - 1, stride);
  if (distance > largest - start) return largest;
  return block > largest - start - distance ? largest : start + distance + block;
}

bool strided_blocks::intersects(std::uint64_t first, std::uint64_t n) const {
  if (first + n <= start) return false;
  if (stride == 0 || count <= 1) return first < start + block;
  const std::uint64_t k = first < start ? 0 : (first - start) / stride;  // the last block that begins before, or the first of all
  return (k < count && first < start + k * stride + block) || (k + 1 < count && start + (k + 1) * stride < first + n);
}

std::optional<std::uint64_t> strided_blocks::number_of(std::uint64_t first, std::uint64_t n) const {
  if (first < start || block == 0) return {};
  const std::uint64_t block_index = stride == 0 || count <= 1 ? 0 : (first - start) / stride,
                      inside = first - start - block_index * stride;
  if (block_index >= count || inside >= block || n > block - inside) return {};
  return block_index * block + inside;
}

std::optional<std::uint64_t> strided_blocks::position_of(std::uint64_t number, std::uint64_t n) const {
  if (block == 0 || block > largest - start) return {};
  const std::uint64_t block_index = number / block, inside = number % block;
  if (block_index >= count || n > block - inside) return {};
  if (block_index > 0 && stride > (largest - start - inside) / block_index) return {};
  return start + block_index * stride + inside;
}

namespace {

struct strided_selection {
  std::vector<strided_blocks> list;
  bool regular = false;       // otherwise a box around the selection
  std::size_t unlimited = 0;  // number of dimensions without an end of their own
};

// For a selection of a dataset of this extent.
std::optional<strided_selection> strided_selection_of(hid_t selection, const array::extents& dims) {
  const std::size_t rank = dims.size();
  if (!(selection >= 0) || rank == 0) return {};
  strided_selection result;
  result.list.resize(rank);
  // a file that says "all" does not give the extent
  if (H5Sget_select_type(selection) == H5S_SEL_ALL) {
    for (std::size_t d = 0; d < rank; ++d) result.list[d] = {0, 1, 1, dims[d]};
    result.regular = true;
    return result;
  }
  if (H5Sget_simple_extent_ndims(selection) != static_cast<int>(rank)) return {};
  if (H5Sis_regular_hyperslab(selection) > 0) {
    std::vector<hsize_t> start(rank), stride(rank), count(rank), block(rank);
    if (H5Sget_regular_hyperslab(selection, start.data(), stride.data(), count.data(), block.data()) < 0) return {};
    result.regular = true;
    for (std::size_t d = 0; d < rank; ++d) {
      // without an end: up to the dataset's
      const bool endless = count[d] == H5S_UNLIMITED || block[d] == H5S_UNLIMITED;
      strided_blocks& c = result.list[d];
      c = {start[d], stride[d], count[d] == H5S_UNLIMITED ? dims[d] : count[d], block[d] == H5S_UNLIMITED ? dims[d] : block[d]};
      c.unlimited = endless;
      if (!endless && c.stride == c.block) c = {c.start, 1, 1, c.elements()};  // merge blocks that touch
    }
    return result;
  }
  std::vector<hsize_t> low(rank), high(rank);
  if (H5Sget_select_bounds(selection, low.data(), high.data()) < 0) return {};
  for (std::size_t d = 0; d < rank; ++d) result.list[d] = {low[d], 1, 1, high[d] - low[d] + 1};
  return result;
}

// Values are mapped in C order of both selections. They match dimension by dimension if the last dimensions have the same lengths
// and the others one element.
bool matches_by_dimension(const strided_selection& virtual_selection, const strided_selection& source_selection) {
  if (!virtual_selection.regular || !source_selection.regular) return false;
  const std::size_t shared = std::min(virtual_selection.list.size(), source_selection.list.size());
  const auto one = [&](const std::vector<strided_blocks>& list) {
    return std::all_of(list.begin(), list.end() - static_cast<std::ptrdiff_t>(shared),
                       [](const strided_blocks& c) { return c.elements() == 1; });
  };
  if (!one(virtual_selection.list) || !one(source_selection.list)) return false;
  for (std::size_t i = 1; i <= shared; ++i) {
    const strided_blocks &h = virtual_selection.list[virtual_selection.list.size() - i],
                         &t = source_selection.list[source_selection.list.size() - i];
    if (h.unlimited != t.unlimited || (!h.unlimited && h.elements() != t.elements())) return false;
  }
  return true;
}

// The shape of the sources' chunks in the array's dimensions; empty if it does not fit.
array::extents chunk_in(const array::extents& source, std::size_t rank) {
  array::extents chunk(rank, 1);
  for (std::size_t i = 1; i <= source.size(); ++i) {
    if (i <= rank) chunk[rank - i] = source[source.size() - i];
    else if (source[source.size() - i] != 1) return {};
  }
  return chunk;
}

// False if the sources' chunks can never be chunks of the array.
bool may_be_copied(const opened_dataset& data) {
  const auto& chunked = data.dependencies->chunked;
  if (!chunked || data.source_filters.partial_unfiltered || holds_references(data.type)) return false;
  if (data.bytes->remote() || H5Tequal(data.stored_type, chunked->type) <= 0) return false;
  const std::string fill = fill_bytes(data.dcpl, data.stored_type);
  return !fill.empty() && fill == fill_bytes(chunked->properties, data.stored_type);
}

// If sources are side by side, each row of chunks has some of all sources. No values are read through these files.
constexpr std::size_t max_open_files = 64;

// Indices of files by their names.
class file_list {
 public:
  explicit file_list(const source_file& file)
      : files_(std::make_shared<source_files>(file.options(), file.largest_expansion(), max_open_files)) {}
  // Empty if its bytes cannot be read.
  std::optional<std::size_t> number_of(const std::string& name) {
    const auto [entry, is_new] = indices_.emplace(name, std::nullopt);
    if (!is_new) return entry->second;
    const io::file_descriptor opened(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const io::file_state state = io::state_of(opened.get());
    if (!state.regular) return {};
    entry->second = files_->list().size();
    files_->add({name, state});
    return entry->second;
  }
  std::shared_ptr<const source_files> take() { return std::move(files_); }

 private:
  std::shared_ptr<source_files> files_;
  std::map<std::string, std::optional<std::size_t>> indices_;
};

}  // namespace

virtual_parts::virtual_parts(std::vector<part> list, array::extents chunk, std::shared_ptr<const source_files> files)
    : list_(std::move(list)), chunk_(std::move(chunk)), files_(std::move(files)) {
  if (list_.empty()) return;
  std::size_t max_starts = 0;
  for (std::size_t d = 0; d < list_[0].virtual_blocks.size(); ++d) {
    std::set<std::uint64_t> starts;
    for (const part& p : list_) starts.insert(p.virtual_blocks[d].start);
    if (starts.size() > max_starts) axis_ = d;
    max_starts = std::max(max_starts, starts.size());
  }
  std::stable_sort(list_.begin(), list_.end(),
                   [&](const part& a, const part& b) { return a.virtual_blocks[axis_].start < b.virtual_blocks[axis_].start; });
  std::uint64_t end = 0;
  for (const part& p : list_) {
    ends_.push_back(end = std::max(end, p.virtual_blocks[axis_].end()));
  }
}

template <class F>
void virtual_parts::for_each_over(const array::extents& first, const array::extents& count, const F& f) const {
  const auto begin = std::upper_bound(ends_.begin(), ends_.end(), first[axis_]) - ends_.begin();
  for (std::size_t i = static_cast<std::size_t>(begin); i < list_.size(); ++i) {
    const part& p = list_[i];
    if (p.virtual_blocks[axis_].start >= first[axis_] + count[axis_]) return;
    bool met = true;
    for (std::size_t d = 0; d < first.size() && met; ++d) met = p.virtual_blocks[d].intersects(first[d], count[d]);
    if (met && !f(p)) return;
  }
}

bool virtual_parts::intersects(const array::extents& first, const array::extents& count) const {
  bool has_values = false;
  if (!list_.empty()) for_each_over(first, count, [&](const part& p) { return !(has_values = p.is_available); });
  return has_values;
}

void virtual_parts::add_files(const array::extents& first, const array::extents& count, std::set<std::size_t>& numbers) const {
  if (list_.empty()) return;
  for_each_over(first, count, [&](const part& p) {
    if (!p.source_blocks.empty()) numbers.insert(p.file);
    return true;
  });
}

std::optional<chunk_in_files> virtual_parts::find(const array::extents& first, const array::extents& count) const {
  const part* only = nullptr;
  std::size_t met = 0;
  for_each_over(first, count, [&](const part& p) {
    only = &p;
    return ++met < 2;
  });
  if (met != 1 || only->source_blocks.empty()) return {};
  const std::size_t rank = first.size(), source_rank = only->source_blocks.size();
  array::extents source_start(source_rank);
  for (std::size_t i = 1; i <= std::max(rank, source_rank); ++i) {
    const std::size_t d = rank - i, s = source_rank - i;
    if (i > source_rank) {
      if (!only->virtual_blocks[d].number_of(first[d], count[d])) return {};
      continue;
    }
    const std::uint64_t n = i <= rank ? count[d] : 1;
    const std::optional<std::uint64_t> number = i <= rank ? only->virtual_blocks[d].number_of(first[d], n) : std::uint64_t{0};
    const std::optional<std::uint64_t> position = number ? only->source_blocks[s].position_of(*number, n) : std::nullopt;
    const std::uint64_t chunk = i <= rank ? chunk_[d] : 1;
    if (!position || *position % chunk != 0 || *position >= only->extent[s] || n > only->extent[s] - *position) return {};
    source_start[s] = *position;
  }
  return chunk_in_files{only->file, only->address, std::move(source_start)};
}

std::unique_ptr<const virtual_parts> parts_of_virtual(const opened_dataset& data) {
  if (data.dims.empty()) return {};
  std::vector<virtual_parts::part> list;
  array::extents chunk;
  if (may_be_copied(data)) chunk = chunk_in(data.dependencies->chunked->chunk, data.dims.size());
  file_list files(data.file);
  bool has_mapped_chunks = false;
  for (std::size_t i = 0; i < data.dependencies->sources.size(); ++i) {
    const virtual_source& source = data.dependencies->sources[i];
    const auto virtual_selection = strided_selection_of(handle(H5Pget_virtual_vspace(data.dcpl, i)), data.dims);
    H5Eclear2(H5E_DEFAULT);
    if (!virtual_selection) return {};
    virtual_parts::part p{.virtual_blocks = virtual_selection->list, .is_available = source.is_available};
    if (source.chunked && !chunk.empty()) {
      const auto source_selection = strided_selection_of(handle(H5Pget_virtual_srcspace(data.dcpl, i)), source.extent);
      H5Eclear2(H5E_DEFAULT);
      const std::optional<std::size_t> file = source_selection && matches_by_dimension(*virtual_selection, *source_selection)
                                                  ? files.number_of(source.file)
                                                  : std::nullopt;
      if (file) {
        p.source_blocks = source_selection->list;
        p.extent = source.extent;
        p.file = *file;
        p.address = source.address;
        has_mapped_chunks = true;
      }
    }
    list.push_back(std::move(p));
  }
  if (!has_mapped_chunks) chunk.clear();
  return std::make_unique<const virtual_parts>(std::move(list), std::move(chunk), files.take());
}

}  // namespace zarrbits::hdf5
