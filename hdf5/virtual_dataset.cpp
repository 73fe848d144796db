// SPDX-License-Identifier: BSL-1.0
#include "hdf5/virtual_dataset.hpp"

#include "hdf5/external_files.hpp"
#include "hdf5/source_files.hpp"

#include <algorithm>
#include <set>

namespace zarrbits::hdf5 {

virtual_dataset::virtual_dataset(opened_dataset opened) : source_dataset(std::move(opened)) {
  if (!unsupported_reason(type).empty()) return;
  mapped_ = parts_of_virtual(*this);
  if (is_composite()) filters = source_filters;
}

array::extents virtual_dataset::chunk_shape() const { return mapped_ ? mapped_->chunk() : array::extents(); }

bool virtual_dataset::nothing_stored() const {
  return std::none_of(dependencies->sources.begin(), dependencies->sources.end(),
                      [](const virtual_source& s) { return s.is_available; });
}

std::optional<array::chunk_grid> virtual_dataset::grid_of_parts(const array::chunk_grid& regular) const {
  return is_composite() ? mapped_->grid_of_parts(regular) : std::nullopt;
}

reused_chunks virtual_dataset::reuse_on(const array::chunk_grid& target_grid) const {
  return is_composite() ? mapped_->reuse_on(target_grid) : reused_chunks{};
}

std::optional<chunk_in_files> virtual_dataset::chunk_of_source(const array::extents& index) const {
  return mapped_->find(grid, index);
}

array::box_test virtual_dataset::boxes_with_values() const {
  return [this](const array::extents& first, const array::extents& chunks) {
    const array::extents element = grid.start(first);
    array::extents elements(chunks.size());
    for (std::size_t d = 0; d < chunks.size(); ++d) {
      const std::uint64_t last = first[d] + chunks[d] - 1;
      elements[d] = std::min(grid.start(d, last) + grid.length(d, last), grid.shape[d]) - element[d];
    }
    return mapped_->intersects(element, elements);
  };
}

std::uint64_t virtual_dataset::visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const {
  array::for_each_matching_chunk(shards, first, count, boxes_with_values(), [&](const array::extents& index) {
    if (const auto one = chunk_of_source(index)) {
      const std::uint64_t size = mapped_->files().stored_size(*one);
      return size == 0 || visit(index, size);
    }
    return !mapped_->intersects(grid.start(index), grid.inside(index)) || visit(index, {});
  });
  return 0;
}

std::uint64_t virtual_dataset::visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  if (!mapped_) return chunk_source::visit_all(first, count, visit);
  std::uint64_t skipped = array::chunks_in(shards, first, count);
  array::for_each_matching_chunk(shards, first, count, boxes_with_values(), [&](const array::extents& index) {
    if (!visit(index)) return false;
    --skipped;
    return true;
  });
  return skipped;
}

stored_chunk virtual_dataset::find_chunk(const array::extents& first, std::uint64_t size) const {
  const auto chunk = chunk_of_source(grid.chunk_of(first));
  if (!chunk) throw failure("a chunk of several datasets is stored in none");
  return mapped_->files().find_chunk(*chunk, size);
}

std::shared_ptr<const io::byte_source> virtual_dataset::bytes_of(std::size_t number) const {
  return number == no_file ? source_dataset::bytes_of(number) : mapped_->files().bytes(number);
}

// Not of all sources: each of thousands of units has a few of thousands of files.
void virtual_dataset::require_unchanged(std::uint64_t first, std::uint64_t count) const {
  if (!is_composite()) return;
  std::set<std::size_t> numbers;
  array::for_each_matching_chunk(shards, first, count, boxes_with_values(), [&](const array::extents& index) {
    mapped_->add_files(grid.start(index), grid.inside(index), numbers);
    return true;
  });
  for (const std::size_t number : numbers) mapped_->files().require_unchanged(number);
}

std::unique_ptr<chunk_source> open_dataset(source_file& file, const source_object& object) {
  opened_dataset opened(file, object);
  if (opened.layout == H5D_VIRTUAL) return std::make_unique<virtual_dataset>(std::move(opened));
  return std::make_unique<source_dataset>(std::move(opened));
}

}  // namespace zarrbits::hdf5
