// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/boxes.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t n = 0;
  return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

std::string joined_text(const extents& numbers, char between) {
  std::string text;
  for (const std::uint64_t n : numbers) text += (text.empty() ? std::string() : std::string(1, between)) + std::to_string(n);
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

box both(const box& a, const box& b) {
  box shared;
  for (std::size_t d = 0; d < a.first.size(); ++d) {
    const std::uint64_t begin = std::max(a.first[d], b.first[d]),
                        end = std::min(a.first[d] + a.shape[d], b.first[d] + b.shape[d]);
    shared.first.push_back(begin);
    shared.shape.push_back(end > begin ? end - begin : 0);
  }
  return shared;
}

box in_grid(const extents& index, const extents& shape, const extents& array) {
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

void each_index(const extents& first, const extents& last, const std::function<void(const extents&)>& each) {
  extents at = first;
  for (;;) {
    each(at);
    std::size_t d = at.size();
    while (d > 0) {
      if (at[d - 1] < last[d - 1]) {
        ++at[d - 1];
        break;
      }
      at[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

index_range touched(const box& b, const extents& shape) {
  index_range range;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    range.first.push_back(b.first[d] / shape[d]);
    range.last.push_back((b.first[d] + b.shape[d] - 1) / shape[d]);
  }
  return range;
}

std::uint64_t elements_before(const box& b, const box& whole) {
  // in each dimension: the boxes that come earlier in it, and are level with this one in the dimensions before
  std::uint64_t n = 0, level = 1;
  for (std::size_t d = 0; d < b.first.size(); ++d) {
    std::uint64_t earlier = level * (b.first[d] - whole.first[d]);
    for (std::size_t k = d + 1; k < b.first.size(); ++k) earlier *= whole.shape[k];
    n += earlier;
    level *= b.shape[d];
  }
  return n;
}

namespace {

// A dimension of a copy: how many elements, and how far they are apart in each box.
struct step {
  std::uint64_t count, from, to;
};

struct copy_plan {
  std::uint64_t from = 0, to = 0;  // of the first element
  std::vector<step> steps;         // outermost first; at least one
};

// Dimensions of one element are left out, and those that are contiguous in both boxes are one.
copy_plan plan_copy(const box& of_from, const box& of_to, const box& shared) {
  copy_plan plan;
  std::uint64_t from = 1, to = 1;
  std::vector<step> inner_first;
  for (std::size_t d = shared.first.size(); d-- > 0;) {
    plan.from += (shared.first[d] - of_from.first[d]) * from;
    plan.to += (shared.first[d] - of_to.first[d]) * to;
    if (shared.shape[d] > 1) {
      step* const inner = inner_first.empty() ? nullptr : &inner_first.back();
      if (inner && from == inner->from * inner->count && to == inner->to * inner->count) inner->count *= shared.shape[d];
      else inner_first.push_back({shared.shape[d], from, to});
    }
    from *= of_from.shape[d];
    to *= of_to.shape[d];
  }
  if (inner_first.empty()) inner_first.push_back({1, 1, 1});
  plan.steps.assign(inner_first.rbegin(), inner_first.rend());
  return plan;
}

// Calls `row(from, to)` with the first element of each row, whose elements are those of the last step.
template <class Row>
void each_row(const copy_plan& plan, const Row& row) {
  std::vector<std::uint64_t> at(plan.steps.size() - 1, 0);
  std::uint64_t from = plan.from, to = plan.to;
  for (;;) {
    row(from, to);
    std::size_t d = at.size();
    while (d > 0) {
      const step& s = plan.steps[d - 1];
      from += s.from;
      to += s.to;
      if (++at[d - 1] < s.count) break;
      from -= s.from * s.count;
      to -= s.to * s.count;
      at[d - 1] = 0;
      --d;
    }
    if (d == 0) return;
  }
}

template <std::size_t Size>
void copy_apart(const std::byte* from, std::byte* to, const step& s) {
  for (std::uint64_t i = 0; i < s.count; ++i) std::memcpy(to + i * s.to * Size, from + i * s.from * Size, Size);
}

void copy_row(const std::byte* from, std::byte* to, const step& s, std::size_t size) {
  if (s.from == 1 && s.to == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(s.count) * size);
    return;
  }
  switch (size) {
    case 1: return copy_apart<1>(from, to, s);
    case 2: return copy_apart<2>(from, to, s);
    case 4: return copy_apart<4>(from, to, s);
    case 8: return copy_apart<8>(from, to, s);
    default:
      for (std::uint64_t i = 0; i < s.count; ++i) std::memcpy(to + i * s.to * size, from + i * s.from * size, size);
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
    for (std::uint64_t i = 0; i < s.count; ++i) to[t + i * s.to] = from[f + i * s.from];
  });
}

void fill_elements(std::span<std::byte> values, std::span<const std::byte> one) {
  if (values.empty()) return;
  const std::size_t first = std::min(one.size(), values.size());
  std::memcpy(values.data(), one.data(), first);
  for (std::size_t done = first; done < values.size();) {
    const std::size_t n = std::min(done, values.size() - done);
    std::memcpy(values.data() + done, values.data(), n);
    done += n;
  }
}

}  // namespace zarrbits::conversion
