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
      : policy_(file.external_files()),
        files_(std::make_shared<source_files>(file.options(), file.largest_expansion(), max_open_files)) {}
  // Empty if its bytes cannot be read.
  std::optional<std::size_t> number_of(const std::string& name) {
    const auto [entry, is_new] = indices_.emplace(name, std::nullopt);
    if (!is_new) return entry->second;
    const io::file_state state = state_of(name);
    if (!state.regular) return {};
    entry->second = files_->list().size();
    files_->add({name, state});
    return entry->second;
  }
  std::shared_ptr<const source_files> take() { return std::move(files_); }

 private:
  io::file_state state_of(const std::string& name) const {
    if (const auto on_server = policy_.remote_state(name)) return *on_server;
    const io::file_descriptor opened(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return io::state_of(opened.get());
  }

  const external_file_policy& policy_;
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

std::optional<chunk_in_files> virtual_parts::find(const array::chunk_grid& grid, const array::extents& index) const {
  const array::extents first = grid.start(index), count = grid.inside(index);
  const part* only = nullptr;
  std::size_t met = 0;
  for_each_over(first, count, [&](const part& p) {
    only = &p;
    return ++met < 2;
  });
  if (met != 1 || only->source_blocks.empty() || only->chunk != grid.extent(index)) return {};
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
    const std::uint64_t chunk = i <= rank ? only->chunk[d] : 1;
    if (!position || *position % chunk != 0 || *position >= only->extent[s] || n > only->extent[s] - *position) return {};
    source_start[s] = *position;
  }
  return chunk_in_files{only->file, only->address, std::move(source_start)};
}

namespace {

// What a part has of one dimension of the array, whose chunks are stored chunks of its source.
struct span_of_part {
  std::uint64_t first, end, chunk, source_start;
};

// Nothing if its blocks repeat along the dimension.
std::optional<span_of_part> span_along(const virtual_parts::part& p, std::size_t d, std::uint64_t extent) {
  const strided_blocks& b = p.virtual_blocks[d];
  const std::size_t from_end = p.virtual_blocks.size() - d;
  const bool has_source = from_end <= p.source_blocks.size();
  if (b.count != 1 || (has_source && p.source_blocks[p.source_blocks.size() - from_end].count != 1)) return {};
  return span_of_part{b.start, std::min(b.end(), extent), p.chunk[d],
                      has_source ? p.source_blocks[p.source_blocks.size() - from_end].start : 0};
}

}  // namespace

std::optional<array::chunk_grid> virtual_parts::grid_of_parts(const array::chunk_grid& regular) const {
  struct interval {
    std::uint64_t end = 0;
    std::map<std::uint64_t, std::size_t> parts = {};  // by the length of their chunks
  };
  array::chunk_grid result = regular;
  for (std::size_t d = 0; d < regular.rank(); ++d) {
    std::map<std::uint64_t, interval> intervals;  // by their first element
    for (const part& p : list_) {
      if (p.source_blocks.empty()) continue;
      const auto span = span_along(p, d, regular.shape[d]);
      if (!span) return {};
      if (span->first >= span->end || span->source_start % span->chunk != 0) continue;
      interval& i = intervals[span->first];
      i.end = std::max(i.end, span->end);
      ++i.parts[span->chunk];
    }
    std::uint64_t end = 0, last_length = 0;
    const auto fill = [&](std::uint64_t limit, std::uint64_t length) {
      const std::uint64_t n = limit - std::min(limit, end);
      if (n > 0) last_length = length;
      result.add_chunks(d, length, n / length);
      result.add_chunks(d, n % length, n % length > 0);
      end += n;
    };
    for (const auto& [first, i] : intervals) {
      const auto usual =
          std::max_element(i.parts.begin(), i.parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      fill(first, regular.chunk[d]);
      fill(i.end, usual->first);
    }
    fill(regular.shape[d], regular.chunk[d]);
    if (d >= result.runs.size()) continue;
    // chunks of one length, the last of which the source stores as a whole, too
    std::vector<array::chunk_run>& runs = result.runs[d];
    if (runs.size() == 1 || (runs.size() == 2 && runs[1].count == 1 && last_length == runs[0].length)) runs.clear();
  }
  const bool differs = std::any_of(result.runs.begin(), result.runs.end(), [](const auto& along) { return !along.empty(); });
  return differs ? std::optional(std::move(result)) : std::nullopt;
}

namespace {

// Counts the chunks of a grid along a dimension that are stored chunks of a part, and their elements.
std::pair<std::uint64_t, std::uint64_t> reused_along(const array::chunk_grid& grid, std::size_t d, const span_of_part& span) {
  const bool is_rectilinear = grid.is_rectilinear(d);
  const std::vector<array::chunk_run> one{{grid.chunk[d], grid.chunks_along(d)}};
  const std::vector<array::chunk_run>& runs = is_rectilinear ? grid.runs[d] : one;
  std::uint64_t chunks = 0, elements = 0;
  auto run = std::partition_point(runs.begin(), runs.end(), [&](const array::chunk_run& r) {
    return r.first_element + array::saturating_mul(r.length, r.count) <= span.first;
  });
  for (; run != runs.end() && run->first_element < span.end; ++run) {
    if (run->length != span.chunk) continue;
    const std::uint64_t before = span.first - std::min(span.first, run->first_element),
                        first = run->first_element + (before / run->length + (before % run->length != 0)) * run->length,
                        end = std::min(span.end, run->first_element + array::saturating_mul(run->length, run->count));
    if (first >= end || (first - span.first + span.source_start) % span.chunk != 0) continue;
    const bool with_tail = !is_rectilinear && end == grid.shape[d];  // stored as a whole, beyond the edge
    const std::uint64_t n = (end - first) / run->length, rest = (end - first) % run->length;
    chunks += n + (with_tail && rest > 0);
    elements += n * run->length + (with_tail ? rest : 0);
  }
  return {chunks, elements};
}

}  // namespace

reused_chunks virtual_parts::reuse_on(const array::chunk_grid& grid) const {
  reused_chunks result{.chunks = grid.chunks(), .elements = array::product(grid.shape)};
  for (const part& p : list_) {
    if (p.source_blocks.empty()) continue;
    std::uint64_t chunks = 1, elements = 1;
    for (std::size_t d = 0; d < grid.rank(); ++d) {
      const auto span = span_along(p, d, grid.shape[d]);
      if (!span) return {};
      const auto [n, of_them] = reused_along(grid, d, *span);
      chunks = array::saturating_mul(chunks, n);
      elements = array::saturating_mul(elements, of_them);
    }
    result.reused += std::min(chunks, result.chunks - result.reused);  // parts may overlap
    result.reused_elements += std::min(elements, result.elements - result.reused_elements);
  }
  return result;
}

std::unique_ptr<const virtual_parts> parts_of_virtual(const opened_dataset& data) {
  if (data.dims.empty()) return {};
  std::vector<virtual_parts::part> list;
  array::extents chunk;
  const bool is_copied = may_be_copied(data);
  file_list files(data.file);
  std::map<array::extents, std::size_t> counts;  // of parts, by the shape of their chunks
  for (std::size_t i = 0; i < data.dependencies->sources.size(); ++i) {
    const virtual_source& source = data.dependencies->sources[i];
    const auto virtual_selection = strided_selection_of(handle(H5Pget_virtual_vspace(data.dcpl, i)), data.dims);
    H5Eclear2(H5E_DEFAULT);
    if (!virtual_selection) return {};
    virtual_parts::part p{.virtual_blocks = virtual_selection->list, .is_available = source.is_available};
    if (source.chunked && is_copied) {
      const auto source_selection = strided_selection_of(handle(H5Pget_virtual_srcspace(data.dcpl, i)), source.extent);
      H5Eclear2(H5E_DEFAULT);
      array::extents own_chunk = chunk_in(source.chunk, data.dims.size());
      const std::optional<std::size_t> file =
          source_selection && !own_chunk.empty() && matches_by_dimension(*virtual_selection, *source_selection)
              ? files.number_of(source.file)
              : std::nullopt;
      if (file) {
        p.source_blocks = source_selection->list;
        p.extent = source.extent;
        p.chunk = std::move(own_chunk);
        if (const std::size_t n = ++counts[p.chunk]; chunk.empty() || n > counts[chunk]) chunk = p.chunk;
        p.file = *file;
        p.address = source.address;
      }
    }
    list.push_back(std::move(p));
  }
  return std::make_unique<const virtual_parts>(std::move(list), std::move(chunk), files.take());
}

}  // namespace zarrbits::hdf5
