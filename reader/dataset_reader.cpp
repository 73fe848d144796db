// SPDX-License-Identifier: BSL-1.0
#include "reader/dataset_reader.hpp"

#include "hdf5/chunk_form.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/ordered_work.hpp>
#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace zarrbits::reader {

namespace {

constexpr std::uint64_t piece_bytes = 4U << 20;           // of values without chunks, for one thread at a time
constexpr std::uint64_t block_bytes = 16U << 20;          // of values that libhdf5 reads at once
constexpr std::uint64_t max_gap = 16U << 10;              // bytes between two runs that are read at once
constexpr std::uint64_t max_span = 1U << 20;              // bytes of runs that are read at once
constexpr std::uint64_t bytes_for_a_thread = 512U << 10;  // a thread takes longer to start than to decode fewer
constexpr std::uint64_t max_strings = std::uint64_t{2} << 30;
constexpr std::size_t max_places = 1U << 20;
constexpr std::uint64_t max_hull_step = 8;
constexpr std::uint64_t no_range = std::numeric_limits<std::uint64_t>::max();  // the place of a chunk that libhdf5 puts together

}  // namespace

// Values of a selection, in C order.
struct dataset_reader::output {
  const array::strided_box& selected;
  array::box box;  // from zeros
  std::span<std::byte> bytes;

  output(const array::strided_box& s, std::span<std::byte> out)
      : selected(s), box{array::extents(s.shape.size(), 0), s.shape}, bytes(out) {}
};

// Elements of the selection that lie in one chunk, along one axis.
struct dataset_reader::axis_part {
  std::uint64_t chunk, first, count;
};

dataset_reader::dataset_reader(std::shared_ptr<hdf5::source_file> file, haddr_t address, const std::string& path,
                               std::shared_ptr<chunk_cache> cache, std::shared_ptr<read_counters> counters)
    : file_(std::move(file)),
      object_([&] {
        hdf5::source_object o;
        o.kind = hdf5::source_object::kind_type::dataset;
        o.place.address = address;
        o.path = text::escape_name(path);
        return o;
      }()),
      data_(hdf5::open_dataset(*file_, object_)),
      values_(data_->stored_type),
      cache_(std::move(cache)),
      counters_(std::move(counters)) {
  if (!values_.obstacle().empty()) return;
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  if (H5Pget_fill_time(data_->dcpl, &time) < 0) H5Eclear2(H5E_DEFAULT);
  // values that nothing ever fills: zeros rather than what was in the caller's memory
  if (!values_.is_variable() && time != H5D_FILL_TIME_NEVER) fill_ = hdf5::fill_bytes(data_->dcpl, values_.memory());
  const bool is_plain = !data_->null && !values_.is_variable() && !data_->external;
  if (is_plain && data_->layout == H5D_CHUNKED && !data_->chunk_in_file.empty() && array::product(data_->chunk_in_file) > 0) {
    grid_ = {data_->dims, data_->chunk_in_file};
    by_chunks_ = grid_.chunks() < std::numeric_limits<std::uint64_t>::max() && data_->filters.can_decode(data_->type);
  }
  if (is_plain && values_.is_stored() && !data_->dims.empty()) address_ = data_->contiguous_address();
}

void dataset_reader::require_readable(const array::strided_box& selected) const {
  const auto refuse = [&](errc code, const std::string& reason) {
    throw zarrbits::error(code, "\"" + object_.path + "\" of \"" + file_->path() + "\" cannot be read: " + reason,
                          {file_->path(), object_.path});
  };
  if (!values_.obstacle().empty()) refuse(errc::unsupported, "its datatype is " + values_.obstacle() + "; use h5py");
  if (data_->null) refuse(errc::invalid_range, "its dataspace is null, and has no values");
  const std::size_t rank = data_->dims.size();
  if (selected.first.size() != rank || selected.shape.size() != rank || selected.step.size() != rank)
    refuse(errc::invalid_range, "it has " + text::pluralize(rank, "dimension") + "; pass as many numbers");
  if (std::find(selected.step.begin(), selected.step.end(), 0U) != selected.step.end())
    refuse(errc::invalid_range, "a step is 0; use 1 or more");
  if (!selected.is_within(data_->dims))
    refuse(errc::invalid_range, "the selection is not within its shape, " + array::joined_text(data_->dims) + "; reduce it");
  if (!data_->dependencies->obstacle.empty()) refuse(errc::refused, data_->dependencies->obstacle.sentence);
}

void dataset_reader::require_unchanged() const {
  const hdf5::file_bytes& bytes = *data_->bytes;
  if (!bytes.remote() && bytes.state() != bytes.chunks().opened())
    throw zarrbits::error(errc::changed, "\"" + file_->path() + "\" changed since it was opened; open it again", {file_->path()});
}

void dataset_reader::read(const array::strided_box& selected, std::span<std::byte> out, unsigned threads) const {
  require_readable(selected);
  const std::uint64_t elements = array::product(selected.shape);
  if (out.size() / std::max<std::size_t>(values_.size(), 1) != elements ||
      out.size() % std::max<std::size_t>(values_.size(), 1) != 0)
    throw zarrbits::error(errc::element_count_mismatch,
                          "\"" + object_.path + "\" cannot be read into " + text::pluralize(out.size(), "byte") + ": " +
                              text::pluralize(elements, "value") + " of " + text::pluralize(values_.size(), "byte") +
                              " were selected; pass as much memory",
                          {file_->path(), object_.path});
  if (values_.is_variable())
    throw zarrbits::error(errc::unsupported_data_type,
                          "\"" + object_.path + "\" cannot be read into memory: its values have no fixed size; read them packed",
                          {file_->path(), object_.path});
  if (elements == 0) return;
  const output to(selected, out);
  if (by_chunks_ && data_->nothing_stored()) {
    fill(selected.shape, to.box.first, to);
  } else if (by_chunks_) {
    read_chunks(to, threads);
  } else if (address_) {
    read_contiguous(*address_, to, threads);
  } else {
    read_blocks(
        selected, nullptr,
        [&](const array::strided_box& part, const array::extents& target, compressors::buffer& hull, const array::box& of_hull) {
      array::copy_elements(hull, of_hull, part, out, to.box, target, values_.size());
        });
  }
  require_unchanged();
}

// Bytes of the output that one thread fills at a time, next to each other: where two threads write to one page that the system
// has not made yet, both have it cleared.
std::uint64_t dataset_reader::bytes_at_once(const output& to, std::uint64_t threads) {
  constexpr std::uint64_t max_bytes = 64U << 20, tasks_of_thread = 4;
  return std::min<std::uint64_t>(to.bytes.size() / (tasks_of_thread * threads), max_bytes);
}

void dataset_reader::read_chunks(const output& to, unsigned threads) const {
  const array::strided_box& s = to.selected;
  const std::size_t rank = s.shape.size();
  std::vector<std::vector<axis_part>> parts(rank);
  array::extents counts(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    for (std::uint64_t i = 0; i < s.shape[d];) {
      const std::uint64_t element = s.first[d] + i * s.step[d];
      const std::uint64_t remaining = grid_.chunk[d] - element % grid_.chunk[d];
      const std::uint64_t n = std::min(s.shape[d] - i, (remaining - 1) / s.step[d] + 1);
      parts[d].push_back({element / grid_.chunk[d], i, n});
      i += n;
    }
    counts[d] = parts[d].size();
  }
  const std::uint64_t total = array::product(counts);
  const auto index_of = [&](const array::extents& which) {
    array::extents index(rank);
    for (std::size_t d = 0; d < rank; ++d) index[d] = parts[d][static_cast<std::size_t>(which[d])].chunk;
    return index;
  };
  const auto read_part = [&](std::uint64_t number) {
    const array::extents which = array::unravel(number, counts);
    const array::extents index = index_of(which);
    array::extents target(rank);
    array::strided_box part{array::extents(rank), array::extents(rank), s.step};
    for (std::size_t d = 0; d < rank; ++d) {
      const axis_part& p = parts[d][static_cast<std::size_t>(which[d])];
      target[d] = p.first;
      part.first[d] = s.first[d] + p.first * s.step[d];
      part.shape[d] = p.count;
    }
    try {
      read_chunk(index, part, target, to);
    } catch (const compressors::corrupt_chunk& e) {
      throw compressors::corrupt_chunk("chunk " + array::joined_text(index, '/') + " of \"" + object_.path + "\": " + e.what());
    }
  };
  // bytes that are decoded; of chunks without filters, those that are copied
  std::uint64_t work_bytes = to.bytes.size();
  if (!data_->filters.empty()) {
    constexpr std::uint64_t few = 64;
    std::uint64_t decoded = total;
    for (std::uint64_t i = 0; total <= few && i < total; ++i)
      if (cache_->contains(key_of(index_of(array::unravel(i, counts))))) --decoded;
    work_bytes = array::saturating_mul(decoded, array::saturating_mul(grid_.chunk_elements(), values_.size()));
  }
  const std::uint64_t useful = std::clamp<std::uint64_t>(std::min(total, work_bytes / bytes_for_a_thread), 1, threads);
  if (useful == 1) {
    for (std::uint64_t i = 0; i < total; ++i) read_part(i);
    return;
  }
  // parts that lie together in the output; on a server each is a request that waits
  const std::uint64_t at_once =
      data_->bytes->remote()
          ? 1
          : std::max<std::uint64_t>(1, total * bytes_at_once(to, useful) / std::max<std::uint64_t>(to.bytes.size(), 1));
  hdf5::detail::ordered_work work(static_cast<std::size_t>((total - 1) / at_once + 1), static_cast<std::size_t>(useful));
  work.make_then_use(
      [&](std::size_t task, std::size_t) {
    for (std::uint64_t i = task * at_once; i < std::min(total, (task + 1) * at_once); ++i) read_part(i);
      },
      [](std::size_t, std::size_t) {});
}

chunk_cache::key dataset_reader::key_of(const array::extents& index) const {
  return {object_.place.address, array::ravel(index, grid_.counts())};
}

hdf5::stored_place dataset_reader::locate(const array::extents& index) const {
  const std::uint64_t number = array::ravel(index, grid_.counts());
  {
    const std::lock_guard guard(places_mutex_);
    if (const auto known = places_.find(number); known != places_.end()) return known->second;
  }
  hdf5::stored_place place;
  {
    const hdf5::lock one_thread;
    const hdf5::silence quiet;
    const array::extents first = grid_.start(index);
    if (const auto range = data_->bytes->chunks().find(data_->dataset, first, place.mask)) {
      place.offset = range->offset;
      place.size = range->size;
    } else {
      place.size = hdf5::stored_size(data_->dataset, first);
      if (place.size > 0) place.offset = no_range;
    }
  }
  if (place.size > 0 && place.offset != no_range) data_->bytes->require_range(place.offset, place.size);
  const std::lock_guard guard(places_mutex_);
  if (places_.size() >= max_places) places_.clear();
  places_.emplace(number, place);
  return place;
}

compressors::buffer dataset_reader::converted(compressors::buffer values) const {
  if (values_.is_stored()) return values;
  const std::size_t count = values.size() / data_->element_size, size = std::max(data_->element_size, values_.size());
  values.resize(count * size);
  compressors::buffer background(values.size(), std::byte{0});
  const hdf5::lock one_thread;
  const hdf5::silence quiet;
  hdf5::check(H5Tconvert(data_->stored_type, values_.memory(), count, values.data(), background.data(), H5P_DEFAULT),
              "convert values");
  values.resize(count * values_.size());
  return values;
}

compressors::buffer dataset_reader::decode(const array::extents& index, const hdf5::stored_place& place) const {
  constexpr std::uint64_t largest_chunk = std::uint64_t{4} << 30;
  const std::uint64_t plain = array::saturating_mul(grid_.chunk_elements(), data_->element_size);
  if (plain > largest_chunk || place.size > largest_chunk)
    throw compressors::corrupt_chunk("a chunk of " + text::format_bytes(std::max(plain, place.size)));
  data_->require_plausible_size(place.size);
  compressors::buffer stored;
  if (place.offset == no_range) {
    const hdf5::lock one_thread;
    const hdf5::silence quiet;
    stored = data_->find_chunk(grid_.start(index), place.size).bytes;
    if (stored.empty()) throw compressors::corrupt_chunk("its place in the file cannot be read");
  } else {
    stored.resize(static_cast<std::size_t>(place.size));
    data_->bytes->read(place.offset, stored);
  }
  ++counters_->decoded_chunks;
  const unsigned mask = data_->filters.partial_unfiltered && grid_.is_partial(index) ? ~0U : place.mask;
  return converted(hdf5::undo(data_->filters, mask, std::move(stored), static_cast<std::size_t>(plain), data_->type));
}

void dataset_reader::read_chunk(const array::extents& index, const array::strided_box& part, const array::extents& target,
                                const output& to) const {
  const array::box of_chunk{grid_.start(index), grid_.chunk};
  const bool is_whole = part.shape == grid_.inside(index);
  const chunk_cache::key key = key_of(index);
  chunk_cache::chunk values = cache_->find(key);
  if (values) {
    ++counters_->cached_chunks;
  } else {
    const hdf5::stored_place place = locate(index);
    if (place.size == 0) {
      ++counters_->empty_chunks;
      return fill(part.shape, target, to);
    }
    const bool is_plain =
        place.offset != no_range && (data_->filters.empty() || (data_->filters.partial_unfiltered && grid_.is_partial(index)));
    if (is_plain && values_.is_stored()) {
      if (place.size != array::saturating_mul(grid_.chunk_elements(), values_.size()))
        throw compressors::corrupt_chunk("it holds " + text::pluralize(place.size, "byte") + " instead of " +
                                         std::to_string(grid_.chunk_elements() * values_.size()));
      return read_plain(place.offset, of_chunk, part, target, to);
    }
    values = std::make_shared<const compressors::buffer>(decode(index, place));
    if (!is_whole) cache_->insert(key, values);
  }
  array::copy_elements(*values, of_chunk, part, to.bytes, to.box, target, values_.size());
}

void dataset_reader::fill(const array::extents& shape, const array::extents& target, const output& to) const {
  const array::box region{target, shape};
  // runs that are contiguous in the output
  array::for_each_run(region, to.box, region, [&](std::uint64_t, std::uint64_t offset, std::uint64_t count) {
    const std::span<std::byte> run =
        to.bytes.subspan(static_cast<std::size_t>(offset * values_.size()), static_cast<std::size_t>(count * values_.size()));
    if (fill_.empty()) std::memset(run.data(), 0, run.size());
    else array::fill_elements(run, std::as_bytes(std::span(fill_)));
  });
}

void dataset_reader::read_contiguous(std::uint64_t address, const output& to, unsigned threads) const {
  const array::box stored{array::extents(data_->dims.size(), 0), data_->dims};
  const array::extents piece =
      array::chunk_shape_for(to.selected.shape, values_.size(), std::max(piece_bytes, bytes_at_once(to, threads)));
  const array::chunk_grid pieces{to.selected.shape, piece};
  const std::uint64_t total = pieces.chunks();
  const auto read_piece = [&](std::uint64_t number) {
    const array::box b = pieces.box_of(pieces.chunk_at(number));
    array::strided_box part{b.first, b.shape, to.selected.step};
    for (std::size_t d = 0; d < b.first.size(); ++d) part.first[d] = to.selected.first[d] + b.first[d] * to.selected.step[d];
    read_plain(address, stored, part, b.first, to);
  };
  if (total == 1 || threads == 1) {
    for (std::uint64_t i = 0; i < total; ++i) read_piece(i);
    return;
  }
  hdf5::detail::ordered_work work(static_cast<std::size_t>(total), threads);
  work.make_then_use([&](std::size_t i, std::size_t) { read_piece(i); }, [](std::size_t, std::size_t) {});
}

void dataset_reader::read_plain(std::uint64_t offset, const array::box& of_stored, const array::strided_box& part,
                                const array::extents& target, const output& to) const {
  const array::copy_plan plan(of_stored, part, to.box, target);
  const array::copy_step& row = plan.row();
  const std::uint64_t size = values_.size();
  const bool is_run = row.source_stride == 1 && row.target_stride == 1;
  const std::uint64_t apart = array::saturating_mul(row.source_stride, size);
  // elements of a row that are read at once
  const std::uint64_t at_once = is_run ? row.count : apart > max_gap ? 1 : std::max<std::uint64_t>(max_span / apart, 1);
  struct run {
    std::uint64_t source, target, count;  // elements
  };
  std::vector<run> group;
  compressors::buffer scratch;
  std::uint64_t begin = 0, end = 0;  // bytes of the group
  const auto read_group = [&] {
    if (group.empty()) return;
    counters_->plain_bytes += end - begin;
    if (group.size() == 1 && (is_run || group[0].count == 1)) {
      data_->bytes->read(offset + begin, to.bytes.subspan(static_cast<std::size_t>(group[0].target * size),
                                                          static_cast<std::size_t>(group[0].count * size)));
    } else {
      scratch.resize(static_cast<std::size_t>(end - begin));
      data_->bytes->read(offset + begin, scratch);
      for (const run& r : group) {
        for (std::uint64_t i = 0; i < (is_run ? 1 : r.count); ++i)
          std::memcpy(to.bytes.data() + (r.target + i * row.target_stride) * size,
                      scratch.data() + ((r.source + i * row.source_stride) * size - begin),
                      static_cast<std::size_t>((is_run ? r.count : 1) * size));
      }
    }
    group.clear();
  };
  plan.for_each_row([&](std::uint64_t source, std::uint64_t first_target) {
    for (std::uint64_t i = 0; i < row.count; i += at_once) {
      const std::uint64_t n = std::min(at_once, row.count - i);
      const run r{source + i * row.source_stride, first_target + i * row.target_stride, n};
      const std::uint64_t first = r.source * size, last = (r.source + (n - 1) * row.source_stride + 1) * size;
      if (!group.empty() && (first - end > max_gap || last - begin > max_span)) read_group();
      if (group.empty()) begin = first;
      end = last;
      group.push_back(r);
    }
  });
  read_group();
}

void dataset_reader::read_blocks(const array::strided_box& selected, hdf5::vlen_allocator* strings,
                                 const block_visitor& visit) const {
  const std::size_t rank = selected.shape.size(), size = values_.size();
  // blocks that follow each other in C order: of one element along a dimension with a step, and before the last such one
  array::extents block = array::chunk_shape_for(selected.shape, size, block_bytes);
  for (std::size_t d = rank; d-- > 0;) {
    if (selected.step[d] == 1 || selected.shape[d] == 1) continue;
    for (std::size_t outer = 0; outer < d; ++outer) block[outer] = 1;
    if (selected.step[d] > max_hull_step) block[d] = 1;
    break;
  }
  const array::chunk_grid blocks{selected.shape, block};
  for (std::uint64_t i = 0; i < blocks.chunks(); ++i) {
    const array::box b = blocks.box_of(blocks.chunk_at(i));
    array::strided_box part{b.first, b.shape, selected.step};
    for (std::size_t d = 0; d < rank; ++d) part.first[d] = selected.first[d] + b.first[d] * selected.step[d];
    const array::box hull = part.hull();
    const std::uint64_t elements = array::product(hull.shape);
    compressors::buffer values(static_cast<std::size_t>(elements * size), std::byte{0});
    counters_->libhdf5_values += elements;
    {
      const hdf5::lock one_thread;
      const hdf5::silence quiet;
      data_->read_block(values_.memory(), size, hull.first, hull.shape, hull.shape, values, strings);
    }
    visit(part, b.first, values, hull);
    if (strings) {
      data_->count_variable(strings->used());
      strings->clear();
    }
  }
}

std::string dataset_reader::read_packed(const array::strided_box& selected, object_paths& paths) const {
  require_readable(selected);
  std::string out;
  if (array::product(selected.shape) == 0) return out;
  const hdf5::lock one_thread;
  hdf5::vlen_allocator strings(max_strings);
  reference_paths references(paths, data_->dataset);
  try {
    read_blocks(selected, hdf5::holds_variable(values_.stored()) ? &strings : nullptr,
                [&](const array::strided_box& part, const array::extents&, compressors::buffer& hull, const array::box& of_hull) {
      const array::box chosen{array::extents(part.shape.size(), 0), part.shape};
      compressors::buffer values(static_cast<std::size_t>(array::product(part.shape) * values_.size()));
      array::copy_elements(hull, of_hull, part, values, chosen, chosen.first, values_.size());
      values_.pack(values.data(), array::product(part.shape), references, out);
    });
  } catch (const hdf5::failure&) {
    if (!strings.exceeded()) throw;
    throw zarrbits::error(errc::refused,
                          "\"" + object_.path + "\" cannot be read: its strings or sequences take more than " +
                              text::format_bytes(max_strings) + " at once; select fewer",
                          {file_->path(), object_.path});
  }
  require_unchanged();
  return out;
}

void dataset_reader::convert(std::span<const std::byte> values, hid_t target, std::size_t size, std::span<std::byte> out) const {
  const std::size_t from = values_.size(), largest = std::max(from, size), count = values.size() / from;
  constexpr std::size_t at_once = 1U << 16;
  compressors::buffer piece(std::min(at_once, count) * largest), background(piece.size());
  for (std::size_t i = 0; i < count; i += at_once) {
    const std::size_t n = std::min(at_once, count - i);
    std::memcpy(piece.data(), values.data() + i * from, n * from);
    const hdf5::lock one_thread;
    const hdf5::silence quiet;
    hdf5::check(H5Tconvert(values_.memory(), target, n, piece.data(), background.data(), H5P_DEFAULT), "convert values");
    std::memcpy(out.data() + i * size, piece.data(), n * size);
  }
}

}  // namespace zarrbits::reader
