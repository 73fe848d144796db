// SPDX-License-Identifier: BSL-1.0
#include "array/rechunk_plan.hpp"

#include "array/chunk_grid.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace zarrbits::array {

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
// As often as each chunk is decoded in one pass at most: to write all values to a file and to read them costs about as much as to
// decode them once more.
constexpr double worth_two_passes = 2.5;

std::uint64_t least_common_multiple(std::uint64_t a, std::uint64_t b) { return saturating_mul(a / std::gcd(a, b), b); }

std::uint64_t pieces(std::uint64_t extent, std::uint64_t length) { return extent / length + (extent % length != 0); }

// Chunks that regions of a length along a dimension touch, summed over the regions.
std::uint64_t overlaps_along(std::uint64_t extent, std::uint64_t region, std::uint64_t chunk) {
  const std::uint64_t regions = pieces(extent, region), chunks = pieces(extent, chunk);
  // one for each chunk, and one more for each border between regions that is not one between chunks
  const std::uint64_t borders = regions - 1, common = least_common_multiple(region, chunk);
  const std::uint64_t shared = (extent - 1) / common;
  return chunks + borders - std::min(borders, shared);
}

// What a shape costs; the plan makes it small.
using cost_of = std::function<std::uint64_t(const extents&)>;

std::uint64_t bytes_of(const extents& shape, const rechunk_request& r) {
  std::uint64_t n = r.element;
  for (std::size_t d = 0; d < shape.size(); ++d) n = saturating_mul(n, std::min(shape[d], r.array[d]));
  return n;
}

// The longer shapes to try: twice as long, as long as needed to end with a chunk of `other_length`, or all of the dimension.
extents longer_lengths(std::uint64_t length, std::uint64_t unit, std::uint64_t other_length, std::uint64_t extent) {
  const std::uint64_t full_length = saturating_mul(pieces(extent, unit), unit),
                      common = least_common_multiple(unit, other_length);
  extents lengths = {std::min(saturating_mul(length, 2), full_length), full_length};
  if (common > length && common < full_length) lengths.push_back(common);
  return lengths;
}

// Lengthens the shape while that pays: always by the step that costs least afterwards and, of several, needs the least memory.
// False if no step pays.
bool lengthen(extents& shape, const extents& unit, const extents& other_shape, const rechunk_request& r, std::uint64_t memory,
              const cost_of& cost) {
  const std::uint64_t current_cost = cost(shape);
  extents best;
  std::uint64_t best_cost = current_cost, best_bytes = unlimited;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (const std::uint64_t length : longer_lengths(shape[d], unit[d], other_shape[d], r.array[d])) {
      if (length <= shape[d]) continue;
      extents next = shape;
      next[d] = length;
      const std::uint64_t bytes = bytes_of(next, r), next_cost = cost(next);
      if (bytes > memory || next_cost > best_cost || (next_cost == best_cost && bytes >= best_bytes) || next_cost == current_cost)
        continue;
      best = std::move(next);
      best_cost = next_cost;
      best_bytes = bytes;
    }
  }
  if (best.empty()) return false;
  shape = std::move(best);
  return true;
}

}  // namespace

rechunk_plan plan_rechunk(const rechunk_request& r, std::uint64_t memory) {
  rechunk_plan plan;
  if (std::find(r.array.begin(), r.array.end(), 0U) != r.array.end()) {
    plan.region = r.target_object;
    return plan;
  }
  const auto reads = [&](const extents& region) {
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < region.size(); ++d)
      n = saturating_mul(n, overlaps_along(r.array[d], region[d], r.source_chunk[d]));
    return n;
  };
  const std::uint64_t chunks = chunk_grid{r.array, r.source_chunk}.chunks();
  plan.region = r.target_object;
  while (lengthen(plan.region, r.target_object, r.source_chunk, r, memory, reads)) continue;
  plan.reads = reads(plan.region);
  if (!r.may_use_scratch || static_cast<double>(plan.reads) <= worth_two_passes * static_cast<double>(chunks)) return plan;

  extents region = r.target_object, gathered = r.source_chunk;
  const auto tiles = [&](const extents& a, const extents& b) {
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < a.size(); ++d) n = saturating_mul(n, overlaps_along(r.array[d], a[d], b[d]));
    return n;
  };
  for (bool longer = true; longer;) {
    const bool first =
        lengthen(gathered, r.source_chunk, r.target_object, r, memory, [&](const extents& g) { return tiles(g, region); });
    const bool second =
        lengthen(region, r.target_object, r.source_chunk, r, memory, [&](const extents& g) { return tiles(gathered, g); });
    longer = first || second;
  }
  plan.region = std::move(region);
  plan.staged = std::move(gathered);
  plan.tiles = tiles(plan.staged, plan.region);
  plan.reads = chunks;
  return plan;
}

}  // namespace zarrbits::array
