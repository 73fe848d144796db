// SPDX-License-Identifier: BSL-1.0
#include "repack/recoder.hpp"

#include "hdf5/chunk_form.hpp"
#include "io/scratch_file.hpp"
#include "text/format.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace zarrbits::repacking {

namespace {

constexpr std::size_t min_chunks_for_trial = 16;  // fewer are encoded in the time of a trial
constexpr std::size_t max_open_parts = 32;        // of several files
constexpr std::size_t max_samples = 8;            // chunks of a dataset, for an estimate
constexpr std::uint64_t max_sample_bytes = 256U << 20;
constexpr std::uint64_t min_decoded_at_once = 1U << 20;  // by a thread, of chunks that are smaller

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

hdf5::filter* find_deflate(hdf5::pipeline& p) {
  const auto f =
      std::find_if(p.filters.begin(), p.filters.end(), [](const hdf5::filter& g) { return g.id == H5Z_FILTER_DEFLATE; });
  return f == p.filters.end() ? nullptr : &*f;
}

}  // namespace

std::size_t threads_for(const repack_options& options, std::uint64_t bytes) {
  const std::size_t threads = hdf5::detail::threads_or_all(options.threads);
  // ordered_work has two things for each thread
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(options.memory / 2 / std::max<std::uint64_t>(bytes, 1), 1, threads));
}

copy_estimate estimate_copied(const dataset_pair& d) {
  copy_estimate e{d.has_chunks ? d.layout.chunks : 0, d.layout.stored_bytes};
  if (d.largest_source_chunk_bytes == 0 || d.layout.linked_values || d.layout.chunks == 0) return e;
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t bytes = 0, count = 0;
  const std::uint64_t step = d.layout.chunks / max_samples + 1;
  const auto part = d.parts.open(0);
  part->chunks->for_each([&](const array::extents& index, std::uint64_t) {
    if (count++ % step == 0) bytes += part->chunks->read(part->chunks->locate(index)).size();
  });
  if (bytes > 0) e.seconds = seconds_since(begun) * static_cast<double>(e.bytes) / static_cast<double>(bytes);
  return e;
}

recoder::recoder(const dataset_pair& d, const repack_options& options, std::vector<std::uint64_t> needed)
    : dataset_(d),
      options_(options),
      reader_(d),
      element_(d.layout.element_bytes),
      array_box_{array::extents(d.layout.dims.size(), 0), d.layout.dims},
      needed_(std::move(needed)) {}

// The level of deflate is libdeflate's first, which takes half the time of its fourth, where that makes chunks no larger than the
// source's are: two of them are tried. An option's level is kept, and that of values that deflate is new to.
hdf5::pipeline recoder::fastest_encoding() const {
  const dataset_pair& d = dataset_;
  hdf5::pipeline fast = d.filters;
  hdf5::filter* const deflate = find_deflate(fast);
  hdf5::pipeline of_source = d.layout.filters;
  if (!deflate || deflate->values.empty() || deflate->values[0] < 2 || d.largest_source_chunk_bytes == 0 || d.has_several_files ||
      (d.change && d.change->has_chosen_filters) || !find_deflate(of_source) || needed_.size() < min_chunks_for_trial)
    return fast;
  deflate->values[0] = 1;
  const std::size_t tried[2] = {needed_.size() / 3, 2 * needed_.size() / 3};
  double before[2] = {}, after[2] = {};
  in_all_threads(2, [&](std::size_t i) {
    const array::box b = d.grid.box_of(d.grid.chunk_at(needed_[tried[i]]));
    before[i] = reader_.stored_bytes(b);
    after[i] = static_cast<double>(hdf5::apply(fast, reader_.read(b)).size());
  });
  return after[0] + after[1] <= before[0] + before[1] ? fast : d.filters;
}

// Chunks of the copy, put together from all of the source's that they share values with, unless these are too many to read: then
// the ratio is that of the source.
copy_estimate recoder::estimate() const {
  const dataset_pair& d = dataset_;
  copy_estimate e{needed_.size(), 0};
  if (needed_.empty()) return e;
  const hdf5::pipeline filters = fastest_encoding();
  const double all_elements = static_cast<double>(array::product(d.layout.dims)) * static_cast<double>(needed_.size()) /
                              static_cast<double>(d.grid.chunks());  // chunks at the edge have fewer
  double decoding = 0, encoding = 0;                                 // seconds for an element
  if (d.largest_source_chunk_bytes > 0) {
    const auto part = d.parts.open(0);
    const array::extents place = part->chunks->grid().chunk_of(d.grid.start(d.grid.chunk_at(needed_[needed_.size() / 2])));
    const auto begun = std::chrono::steady_clock::now();
    const array::box one = part->inside(place);
    (void)reader_.read(one);
    decoding = seconds_since(begun) / static_cast<double>(one.elements());
  }
  double sampled_bytes = 0, sampled_elements = 0;
  const std::size_t count = std::min<std::size_t>(max_samples, needed_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const array::box b = d.grid.box_of(d.grid.chunk_at(needed_[needed_.size() / count * i + needed_.size() / count / 2]));
    if (d.largest_source_chunk_bytes > 0 &&
        array::saturating_mul(d.parts.open(0)->chunks_over(b).elements(), d.largest_source_chunk_bytes) > max_sample_bytes)
      break;
    compressors::buffer values = reader_.read(b);
    const auto begun = std::chrono::steady_clock::now();
    sampled_elements += static_cast<double>(b.elements());
    sampled_bytes += static_cast<double>(hdf5::apply(filters, std::move(values)).size());
    encoding += seconds_since(begun);
  }
  if (sampled_elements > 0) {
    e.bytes = static_cast<std::uint64_t>(sampled_bytes / sampled_elements * all_elements);
    encoding /= sampled_elements;
  } else {
    e.bytes = d.layout.stored_bytes;
  }
  e.seconds = (decoding + encoding) * all_elements;
  return e;
}

std::uint64_t recoder::largest_chunk() const { return std::max(dataset_.chunk_bytes(), dataset_.largest_source_chunk_bytes); }

array::rechunk_plan recoder::plan() const {
  const array::extents& source_chunk = dataset_.layout.chunk.empty() ? dataset_.grid.chunk : dataset_.layout.chunk;
  const auto within = [&](array::extents shape) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      shape[i] = std::min(shape[i], std::max<std::uint64_t>(dataset_.layout.dims[i], 1));
    return shape;
  };
  return array::plan_rechunk({.array = dataset_.layout.dims,
                              .source_chunk = within(source_chunk),
                              .target_object = within(dataset_.grid.chunk),
                              .element = element_,
                              .may_use_scratch = dataset_.largest_source_chunk_bytes > 0 && !dataset_.has_several_files},
                             options_.memory / 4);
}

template <class Make>
void recoder::in_all_threads(std::size_t count, const Make& make) const {
  // each thread has a chunk and what it becomes, and two of its results may wait
  hdf5::detail::ordered_work(count, threads_for(options_, 4 * largest_chunk()))
      .make_then_use([&](std::size_t i, std::size_t) { make(i); }, [](std::size_t, std::size_t) {});
}

// Calls `use` with some of the boxes, as many as a quarter of the memory holds, until it has had all; their values are empty.
template <class Use>
void recoder::for_each_group(const array::chunk_grid& grid, const numbers& boxes, const Use& use) const {
  const std::uint64_t bytes = std::max<std::uint64_t>(array::saturating_mul(grid.chunk_elements(), element_), 1);
  const auto at_once = static_cast<std::size_t>(std::clamp<std::uint64_t>(options_.memory / 4 / bytes, 1, boxes.size()));
  std::vector<loaded_box> group;
  for (std::size_t i = 0; i < boxes.size(); i += group.size()) {
    group.resize(std::min(at_once, boxes.size() - i));
    for (std::size_t k = 0; k < group.size(); ++k) group[k].box = grid.box_of(grid.chunk_at(boxes[i + k]));
    use(std::span(group));
  }
}

// All threads decode the source's chunks into the boxes.
void recoder::decode(std::span<loaded_box> boxes) const {
  in_all_threads(boxes.size(), [&](std::size_t i) { reader_.fill(boxes[i].values, boxes[i].box.elements()); });
  const part_list& parts = dataset_.parts;
  std::vector<std::shared_ptr<const dataset_part>> opened;
  for (std::size_t i = 0; i < parts.places.size(); ++i) {
    const bool is_shared = std::any_of(boxes.begin(), boxes.end(),
                                       [&](const loaded_box& b) { return !array::intersect(parts.places[i], b.box).empty(); });
    if (!is_shared) continue;
    opened.push_back(parts.open(i));
    if (opened.size() < max_open_parts) continue;
    decode(opened, boxes);
    opened.clear();
  }
  decode(opened, boxes);
}

// False for a box whose chunks were copied.
bool recoder::is_needed(const array::box& b) const {
  numbers chunks;
  dataset_.add_chunks_over(b, chunks);
  return std::any_of(chunks.begin(), chunks.end(),
                     [&](std::uint64_t number) { return std::binary_search(needed_.begin(), needed_.end(), number); });
}

void recoder::decode(std::span<const std::shared_ptr<const dataset_part>> parts, std::span<loaded_box> boxes) const {
  struct chunk_of_box {
    loaded_box* box;
    const dataset_part* part;
    array::extents index;  // without chunks empty
  };
  std::vector<chunk_of_box> chunks, unchunked;
  for (loaded_box& b : boxes) {
    for (const auto& part : parts) {
      const array::box shared = array::intersect(part->place, b.box);
      if (shared.empty()) continue;
      if (!part->chunks) {
        if (part->has_values) unchunked.push_back({&b, part.get(), {}});
        continue;
      }
      array::for_each_index(part->chunks_over(shared), [&](const array::extents& index) {
        if (!dataset_.has_several_files || is_needed(part->inside(index))) chunks.push_back({&b, part.get(), index});
      });
    }
  }
  in_all_threads(unchunked.size(), [&](std::size_t i) {
    reader_.read_unchunked(*unchunked[i].part, unchunked[i].box->values, unchunked[i].box->box);
  });
  if (chunks.empty()) return;
  // small chunks that lie beside each other in a box share lines of the cache, which threads would take from each other
  const std::size_t at_once = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      min_decoded_at_once / std::max<std::uint64_t>(dataset_.largest_source_chunk_bytes, 1), 1, chunks.size() / 64 + 1));
  in_all_threads((chunks.size() + at_once - 1) / at_once, [&](std::size_t run) {
    for (std::size_t i = run * at_once; i < std::min((run + 1) * at_once, chunks.size()); ++i) {
      const chunk_of_box& c = chunks[i];
      reader_.decode(*c.part, c.index, c.box->values, c.box->box);
    }
  });
}

// The tiles of a region are stored one after the other, and the regions, too.
std::uint64_t recoder::offset_of(const array::box& tile, const array::box& region) const {
  return (array::elements_before(region, array_box_) + array::elements_before(tile, region)) * element_;
}

// The first of two passes: values of the source, in pieces that each are of one region.
void recoder::stage(const array::rechunk_plan& plan, const std::function<void(double share)>& progress) {
  scratch_ = std::make_shared<io::scratch_file>(
      options_.scratch.empty() ? io::scratch_folder_for(options_.target.empty() ? options_.source : options_.target)
                               : options_.scratch);
  staged_boxes_ = {dataset_.layout.dims, plan.staged};
  const array::chunk_grid regions{dataset_.layout.dims, plan.region};
  const array::extents counts = staged_boxes_.counts();
  const auto part = dataset_.parts.open(0);
  part->chunks->for_each([&](const array::extents& index, std::uint64_t) {
    const std::uint64_t number = array::ravel(staged_boxes_.chunk_of(part->chunks->grid().start(index)), counts);
    if (staged_.empty() || staged_.back() != number) staged_.push_back(number);
  });
  make_unique(staged_);
  struct tile {
    std::size_t box;
    array::box region;
  };
  for_each_group(staged_boxes_, staged_, [&](std::span<loaded_box> boxes) {
    decode(boxes);
    std::vector<tile> tiles;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      array::for_each_index(regions.chunks_over(boxes[i].box), [&](const array::extents& region) {
        tiles.push_back({i, regions.box_of(region)});
      });
    }
    in_all_threads(tiles.size(), [&](std::size_t i) {
      const loaded_box& b = boxes[tiles[i].box];
      const array::box shared = array::intersect(tiles[i].region, b.box);
      compressors::buffer bytes(static_cast<std::size_t>(shared.elements() * element_));
      array::copy_elements(b.values, b.box, bytes, shared, shared, static_cast<std::size_t>(element_));
      scratch_->write(offset_of(shared, tiles[i].region), bytes);
    });
    progress(static_cast<double>(boxes.size()) / static_cast<double>(staged_.size()) / 2);
  });
}

void recoder::read_staged(std::span<loaded_box> regions) const {
  struct tile {
    std::size_t region;
    array::box box;
  };
  std::vector<tile> tiles;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    array::for_each_index(staged_boxes_.chunks_over(regions[i].box), [&](const array::extents& index) {
      if (std::binary_search(staged_.begin(), staged_.end(), array::ravel(index, staged_boxes_.counts())))
        tiles.push_back({i, array::intersect(staged_boxes_.box_of(index), regions[i].box)});
    });
  }
  in_all_threads(regions.size(), [&](std::size_t i) { reader_.fill(regions[i].values, regions[i].box.elements()); });
  in_all_threads(tiles.size(), [&](std::size_t i) {
    loaded_box& r = regions[tiles[i].region];
    compressors::buffer bytes(static_cast<std::size_t>(tiles[i].box.elements() * element_));
    scratch_->read(offset_of(tiles[i].box, r.box), bytes);
    array::copy_elements(bytes, tiles[i].box, r.values, r.box, tiles[i].box, static_cast<std::size_t>(element_));
  });
}

// All threads encode the copy's chunks in these regions; this one writes them, in order.
void recoder::write(std::span<const loaded_box> regions, const hdf5::pipeline& filters,
                    const std::function<void(double share)>& progress) const {
  struct chunk_of_region {
    std::size_t region;
    array::extents index;
  };
  const array::chunk_grid& chunks = dataset_.grid;
  std::vector<chunk_of_region> targets;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    array::for_each_index(chunks.chunks_over(regions[i].box), [&](const array::extents& index) {
      if (std::binary_search(needed_.begin(), needed_.end(), array::ravel(index, chunks.counts()))) targets.push_back({i, index});
    });
  }
  hdf5::detail::ordered_work work(targets.size(), threads_for(options_, 4 * largest_chunk()));
  std::vector<compressors::buffer> encoded(work.places());
  work.make_then_use(
      [&](std::size_t i, std::size_t place) {
    const loaded_box& r = regions[targets[i].region];
    const array::box of_chunk{chunks.start(targets[i].index), chunks.chunk};
    compressors::buffer chunk;
    reader_.fill(chunk, chunks.chunk_elements());
    array::copy_elements(r.values, r.box, chunk, of_chunk, array::intersect(of_chunk, r.box), static_cast<std::size_t>(element_));
    encoded[place] = hdf5::apply(filters, std::move(chunk));
      },
      [&](std::size_t i, std::size_t place) {
    {
      const hdf5::lock one_thread;
      hdf5::check(H5Dwrite_chunk(dataset_.copy, H5P_DEFAULT, 0, hdf5::to_hsize(chunks.start(targets[i].index)).data(),
                                 encoded[place].size(), encoded[place].data()),
                  "write a chunk");
    }
    encoded[place] = {};
    progress(1 / static_cast<double>(needed_.size()));
  });
}

void recoder::run(const std::function<void(double share)>& progress) {
  const std::uint64_t largest = largest_chunk();
  if (largest > options_.memory / 6)
    throw hdf5::failure("chunks of " + text::format_bytes(largest) + " need more than " + text::format_bytes(options_.memory) +
                        " to be decoded and encoded; increase `memory`");
  if (needed_.empty()) return;
  const array::rechunk_plan plan = this->plan();
  const hdf5::pipeline filters = fastest_encoding();
  if (plan.two_passes()) stage(plan, progress);
  // each of the copy's chunks is complete in a region
  const array::chunk_grid regions{dataset_.layout.dims, plan.region};
  numbers needed_regions;
  for (const std::uint64_t number : needed_) {
    const array::extents region = regions.chunk_of(dataset_.grid.start(dataset_.grid.chunk_at(number)));
    needed_regions.push_back(array::ravel(region, regions.counts()));
  }
  make_unique(needed_regions);
  for_each_group(regions, needed_regions, [&](std::span<loaded_box> boxes) {
    if (scratch_) read_staged(boxes);
    else decode(boxes);
    write(boxes, filters, [&](double share) { progress(scratch_ ? share / 2 : share); });
  });
}

}  // namespace zarrbits::repacking
