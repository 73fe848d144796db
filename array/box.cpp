// SPDX-License-Identifier: BSL-1.0
#include "array/box.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::array {

std::uint64_t box::elements() const {
  const std::uint64_t n = product(shape);
  if (n == UINT64_MAX) throw error(errc::unsupported, "an array of more than 2^64 elements");
  return n;
}

bool box::empty() const { return std::find(shape.begin(), shape.end(), 0U) != shape.end(); }

bool strided_box::is_within(std::span<const std::uint64_t> extent) const noexcept {
  for (std::size_t d = 0; d < extent.size(); ++d) {
    if (shape[d] == 0) continue;
    if (first[d] >= extent[d] || (shape[d] > 1 && (extent[d] - 1 - first[d]) / step[d] < shape[d] - 1)) return false;
  }
  return true;
}

box strided_box::hull() const {
  box b{first, shape};
  for (std::size_t d = 0; d < shape.size(); ++d) b.shape[d] = shape[d] > 1 ? (shape[d] - 1) * step[d] + 1 : shape[d];
  return b;
}

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

copy_plan::copy_plan(const box& of_from, const strided_box& selected, const box& of_to, const extents& target) {
  std::uint64_t source_stride = 1, target_stride = 1;
  for (std::size_t d = selected.first.size(); d-- > 0;) {
    source_offset_ += (selected.first[d] - of_from.first[d]) * source_stride;
    target_offset_ += (target[d] - of_to.first[d]) * target_stride;
    if (selected.shape[d] > 1) {
      const std::uint64_t apart = source_stride * selected.step[d];
      copy_step* const inner = steps_.empty() ? nullptr : &steps_.back();
      if (inner && apart == inner->source_stride * inner->count && target_stride == inner->target_stride * inner->count)
        inner->count *= selected.shape[d];
      else steps_.push_back({selected.shape[d], apart, target_stride});
    }
    source_stride *= of_from.shape[d];
    target_stride *= of_to.shape[d];
  }
  if (steps_.empty()) steps_.push_back({1, 1, 1});
  std::reverse(steps_.begin(), steps_.end());
}

namespace {

template <std::size_t Size>
void copy_apart(const std::byte* from, std::byte* to, const copy_step& s) {
  for (std::uint64_t i = 0; i < s.count; ++i)
    std::memcpy(to + i * s.target_stride * Size, from + i * s.source_stride * Size, Size);
}

void copy_row(const std::byte* from, std::byte* to, const copy_step& s, std::size_t size) {
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
  copy_elements(from, of_from, {shared.first, shared.shape, extents(shared.first.size(), 1)}, to, of_to, shared.first, size);
}

void copy_elements(std::span<const std::byte> from, const box& of_from, const strided_box& selected, std::span<std::byte> to,
                   const box& of_to, const extents& target, std::size_t size) {
  if (size == 0 || std::find(selected.shape.begin(), selected.shape.end(), 0U) != selected.shape.end()) return;
  const copy_plan plan(of_from, selected, of_to, target);
  plan.for_each_row([&](std::uint64_t source, std::uint64_t offset) {
    copy_row(from.data() + source * size, to.data() + offset * size, plan.row(), size);
  });
}

void copy_elements(std::span<const std::string> from, const box& of_from, std::span<std::string> to, const box& of_to,
                   const box& shared) {
  for_each_run(of_from, of_to, shared, [&](std::uint64_t source, std::uint64_t target, std::uint64_t count) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), count, to.begin() + static_cast<std::ptrdiff_t>(target));
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

}  // namespace zarrbits::array
