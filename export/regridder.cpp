// SPDX-License-Identifier: BSL-1.0
#include "export/regridder.hpp"

#include <algorithm>
#include <functional>

namespace zarrbits::exporting {

using conversion::source_array;

namespace {

// The elements of a chunk in the array; the last one may reach over the edge, as far as it likes.
array::box box_of(const source_array& array, const regridder::chunk_index& chunk) {
  array::box b;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    b.first.push_back(array.grid(d).start(chunk[d]));
    b.shape.push_back(std::min(array.grid(d).length(chunk[d]), array.shape()[d] - b.first[d]));
  }
  return b;
}

}  // namespace

regridder::regridder(const source_array& array, const dataset_spec& form, std::vector<chunk_index> stored, std::uint64_t memory)
    : grid_{array.shape(), array.shape()}, stored_(std::move(stored)) {
  std::copy_n(form.chunk.begin(), std::min(form.chunk.size(), grid_.rank()), grid_.chunk.begin());
  const std::size_t part_bytes = sizeof parts_[0] + 16 + 8 * grid_.rank(),
                    max_parts = static_cast<std::size_t>(memory / part_bytes);
  for (std::size_t i = 0; i < stored_.size(); ++i) add_parts(array, i, max_parts);
  std::sort(parts_.begin(), parts_.end());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == 0 || parts_[i].first != parts_[i - 1].first) first_.push_back(i);
  }
  first_.push_back(parts_.size());
}

void regridder::add_parts(const source_array& array, std::size_t stored, std::size_t max_parts) {
  const array::box chunks = grid_.chunks_over(box_of(array, stored_[stored]));
  if (array::product(chunks.shape) > max_parts - parts_.size())
    throw zarr::not_supported(reason_code::too_large, "an array whose chunks cannot be listed in `memory`; increase it");
  array::for_each_index(chunks, [&](const array::extents& index) { parts_.emplace_back(index, stored); });
}

std::vector<regridder::chunk_index> regridder::chunks() const {
  std::vector<chunk_index> result;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) result.push_back(parts_[first_[i]].first);
  return result;
}

std::optional<std::vector<std::byte>> regridder::elements(const source_array& array, std::size_t number,
                                                          std::uint64_t& stored) const {
  const std::size_t size = array.type().size;
  const array::box target{grid_.start(parts_[first_[number]].first), grid_.chunk};
  std::vector<std::byte> out(static_cast<std::size_t>(array::product(grid_.chunk)) * size);
  array::fill_elements(out, array.fill().data);
  bool has_data = false;
  zarr::element_buffer values;
  for (std::size_t p = first_[number]; p < first_[number + 1]; ++p) {
    const chunk_index& chunk = stored_[parts_[p].second];
    auto bytes = array.read_stored(chunk);
    if (!bytes) continue;
    has_data = true;
    const array::box inside = box_of(array, chunk);
    // in each dimension
    if (std::equal(target.first.begin(), target.first.end(), inside.first.begin(), std::less_equal<>())) stored += bytes->size();
    array.decode(chunk, std::move(*bytes), values);
    array::copy_elements(values.data, {inside.first, array.shape_of(chunk)}, out, target, array::intersect(inside, target), size);
  }
  if (!has_data) return {};
  return out;
}

}  // namespace zarrbits::exporting
