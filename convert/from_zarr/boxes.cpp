// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/boxes.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t n = 0;
  return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

std::string joined_text(const extents& numbers, char separator) {
  std::string text;
  for (const std::uint64_t n : numbers) text += (text.empty() ? std::string() : std::string(1, separator)) + std::to_string(n);
  return text;
}

std::uint64_t box::elements() const {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
  }
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(n, extent, &n)) throw error(errc::unsupported, "an array of more than 2^64 elements");
  }
  return n;
}

bool box::empty() const { return std::find(shape.begin(), shape.end(), 0U) != shape.end(); }

box intersect(const box& a, const box& b) {
  box shared;
  for (std::size_t d = 0; d < a.first.size(); ++d) {
    const std::uint64_t begin = std::max(a.first[d], b.first[d]),
                        end = std::min(a.first[d] + a.shape[d], b.first[d] + b.shape[d]);
    shared.first.push_back(begin);
    shared.shape.push_back(end > begin ? end - begin : 0);
  }
  return shared;
}

box cell_box(const extents& index, const extents& shape, const extents& array) {
  box b;
  for (std::size_t d = 0; d < index.size(); ++d) {
    b.first.push_back(index[d] * shape[d]);
    b.shape.push_back(std::min(shape[d], array[d] - std::min(array[d], b.first[d])));
  }
  return b;
}

extents grid_of(const extents& array, const extents& shape) {
  extents n;
  for (std::size_t d = 0; d < array.size(); ++d) n.push_back(array[d] / shape[d] + (array[d] % shape[d] != 0));
  return n;
}

std::uint64_t number_of(const extents& index, const extents& grid) {
  std::uint64_t n = 0;
  for (std::size_t d = 0; d < index.size(); ++d) n = n * grid[d] + index[d];
  return n;
}

extents index_of(std::uint64_t number, const extents& grid) {
  extents index(grid.size());
  for (std::size_t d = grid.size(); d-- > 0;) {
    index[d] = number % grid[d];
    number /= grid[d];
  }
  return index;
}

void each_index(const extents& first, const extents& last, const std::function<void(const extents&)>& callback) {
  extents index = first;
  for (;;) {
    callback(index);
    std::size_t d = index.size();
    while (d > 0) {
      if (index[d - 1] < last[d - 1]) {
        ++index[d - 1];
        break;
      }
      index[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

index_range overlapping_cells(const box& b, const extents& shape) {
  index_range range;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    range.first.push_back(b.first[d] / shape[d]);
    range.last.push_back((b.first[d] + b.shape[d] - 1) / shape[d]);
  }
  return range;
}

std::uint64_t elements_before(const box& b, const box& enclosing) {
  // in each dimension: the boxes that come earlier in it, and are level with this one in the dimensions before
  std::uint64_t n = 0, level = 1;
  for (std::size_t d = 0; d < b.first.size(); ++d) {
    std::uint64_t earlier = level * (b.first[d] - enclosing.first[d]);
    for (std::size_t k = d + 1; k < b.first.size(); ++k) earlier *= enclosing.shape[k];
    n += earlier;
    level *= b.shape[d];
  }
  return n;
}

namespace {

// A dimension of a copy: how many elements, and how far they are apart in each box.
struct step {
  std::uint64_t count, source_stride, target_stride;
};

struct copy_plan {
  std::uint64_t source_offset = 0, target_offset = 0;  // of the first element
  std::vector<step> steps;                             // outermost first; at least one
};

// Dimensions of one element are left out, and those that are contiguous in both boxes are one.
copy_plan plan_copy(const box& of_from, const box& of_to, const box& shared) {
  copy_plan plan;
  std::uint64_t source_stride = 1, target_stride = 1;
  std::vector<step> inner_first;
  for (std::size_t d = shared.first.size(); d-- > 0;) {
    plan.source_offset += (shared.first[d] - of_from.first[d]) * source_stride;
    plan.target_offset += (shared.first[d] - of_to.first[d]) * target_stride;
    if (shared.shape[d] > 1) {
      step* const inner = inner_first.empty() ? nullptr : &inner_first.back();
      if (inner && source_stride == inner->source_stride * inner->count && target_stride == inner->target_stride * inner->count)
        inner->count *= shared.shape[d];
      else inner_first.push_back({shared.shape[d], source_stride, target_stride});
    }
    source_stride *= of_from.shape[d];
    target_stride *= of_to.shape[d];
  }
  if (inner_first.empty()) inner_first.push_back({1, 1, 1});
  plan.steps.assign(inner_first.rbegin(), inner_first.rend());
  return plan;
}

// Calls `row(source_offset, target_offset)` with the first element of each row, whose elements are those of the last step.
template <class Row>
void each_row(const copy_plan& plan, const Row& row) {
  std::vector<std::uint64_t> index(plan.steps.size() - 1, 0);
  std::uint64_t source_offset = plan.source_offset, target_offset = plan.target_offset;
  for (;;) {
    row(source_offset, target_offset);
    std::size_t d = index.size();
    while (d > 0) {
      const step& s = plan.steps[d - 1];
      source_offset += s.source_stride;
      target_offset += s.target_stride;
      if (++index[d - 1] < s.count) break;
      source_offset -= s.source_stride * s.count;
      target_offset -= s.target_stride * s.count;
      index[d - 1] = 0;
      --d;
    }
    if (d == 0) return;
  }
}

template <std::size_t Size>
void copy_apart(const std::byte* from, std::byte* to, const step& s) {
  for (std::uint64_t i = 0; i < s.count; ++i)
    std::memcpy(to + i * s.target_stride * Size, from + i * s.source_stride * Size, Size);
}

void copy_row(const std::byte* from, std::byte* to, const step& s, std::size_t size) {
  if (s.source_stride == 1 && s.target_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(s.count) * size);
    return;
  }
  switch (size) {
    case 1: return copy_apart<1>(from, to, s);
    case 2: return copy_apart<2>(from, to, s);
    case 4: return copy_apart<4>(from, to, s);
    case 8: return copy_apart<8>(from, to, s);
    default:
      for (std::uint64_t i = 0; i < s.count; ++i)
        std::memcpy(to + i * s.target_stride * size, from + i * s.source_stride * size, size);
  }
}

}  // namespace

void copy_elements(std::span<const std::byte> from, const box& of_from, std::span<std::byte> to, const box& of_to,
                   const box& shared, std::size_t size) {
  if (shared.empty() || size == 0) return;
  const copy_plan plan = plan_copy(of_from, of_to, shared);
  each_row(plan, [&](std::uint64_t f, std::uint64_t t) {
    copy_row(from.data() + f * size, to.data() + t * size, plan.steps.back(), size);
  });
}

void copy_elements(std::span<const std::string> from, const box& of_from, std::span<std::string> to, const box& of_to,
                   const box& shared) {
  if (shared.empty()) return;
  const copy_plan plan = plan_copy(of_from, of_to, shared);
  each_row(plan, [&](std::uint64_t f, std::uint64_t t) {
    const step& s = plan.steps.back();
    for (std::uint64_t i = 0; i < s.count; ++i) to[t + i * s.target_stride] = from[f + i * s.source_stride];
  });
}

void fill_elements(std::span<std::byte> values, std::span<const std::byte> one) {
  if (values.empty()) return;
  const std::size_t first = std::min(one.size(), values.size());
  std::memcpy(values.data(), one.data(), first);
  for (std::size_t filled = first; filled < values.size();) {
    const std::size_t n = std::min(filled, values.size() - filled);
    std::memcpy(values.data() + filled, values.data(), n);
    filled += n;
  }
}

}  // namespace zarrbits::conversion
