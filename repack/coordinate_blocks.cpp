// SPDX-License-Identifier: BSL-1.0
#include "repack/coordinate_blocks.hpp"

#include "text/name_escaping.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cmath>

namespace zarrbits::repacking {

namespace {

// 1: rising, -1: falling, 0: neither; 2: both, with fewer than two values.
int direction_of(const coordinate_blocks::values& v) {
  if (std::any_of(v.begin(), v.end(), [](long double x) { return std::isnan(x); })) return 0;
  if (v.size() < 2) return 2;
  if (std::adjacent_find(v.begin(), v.end(), [](long double a, long double b) { return a >= b; }) == v.end()) return 1;
  return std::adjacent_find(v.begin(), v.end(), [](long double a, long double b) { return a <= b; }) == v.end() ? -1 : 0;
}

}  // namespace

const coordinate_blocks::values* coordinate_blocks::add(values block, const std::string& file) {
  if (direction_of(block) == 0)
    throw error(errc::not_joinable,
                "\"" + file + "\" cannot be combined: the values of \"" + text::escape_name(path_) +
                    "\" neither rise nor fall; join the files along one dimension with `concat`",
                {file, path_});
  return &blocks_.try_emplace(std::move(block), block_place{file, 0}).first->first;
}

void coordinate_blocks::arrange() {
  const auto refuse = [&](const std::string& a, const std::string& b, const std::string& reason) {
    throw error(
        errc::not_joinable,
        "\"" + a + "\" and \"" + b + "\" cannot be combined: their values of \"" + text::escape_name(path_) + "\" " + reason,
        {b, path_});
  };
  int direction = 2;
  std::string file_with_direction;
  for (const auto& [block, place] : blocks_) {
    const int d = direction_of(block);
    if (d == 2) continue;
    if (direction != 2 && d != direction) refuse(file_with_direction, place.file, "rise in one and fall in the other");
    direction = d;
    file_with_direction = place.file;
  }
  const values* last = nullptr;
  const std::string* last_file = nullptr;
  for (const auto& [block, place] : blocks_) {
    if (block.empty()) continue;
    if (last && std::max(last->front(), last->back()) >= std::min(block.front(), block.back()))
      refuse(*last_file, place.file, "overlap; cut the files so that each has values of its own, or the same ones");
    last = &block;
    last_file = &place.file;
  }
  length_ = 0;
  const auto place_next = [&](auto& entry) {
    entry.second.first = length_;
    length_ += entry.first.size();
  };
  if (direction == -1) std::for_each(blocks_.rbegin(), blocks_.rend(), place_next);
  else std::for_each(blocks_.begin(), blocks_.end(), place_next);
}

}  // namespace zarrbits::repacking
