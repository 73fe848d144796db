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

bool are_same(const coordinate_blocks::values& a, const coordinate_blocks::values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](long double x, long double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

[[noreturn]] void refuse(const std::string& path, const std::string& a, const std::string& b, const std::string& reason) {
  throw error(errc::not_joinable,
              "\"" + a + "\" and \"" + b + "\" cannot be combined: their values of \"" + text::escape_name(path) + "\" " + reason,
              {b, path});
}

}  // namespace

const coordinate_blocks::block* coordinate_blocks::add(values coordinates, const std::string& file) {
  if (direction_of(coordinates) == 0)
    throw error(
        errc::not_joinable,
        "\"" + file + "\" cannot be combined: the values of \"" + text::escape_name(path_) +
            "\" neither rise nor fall; join the files along one dimension with `concat`, or list where each belongs with " +
            "`places`",
        {file, path_});
  const std::uint64_t length = coordinates.size();
  return &blocks_.try_emplace(std::move(coordinates), block{file, length}).first->second;
}

const coordinate_blocks::block* coordinate_blocks::add(std::uint64_t number, std::uint64_t length, values coordinates,
                                                       const std::string& file) {
  has_numbers_ = true;
  const auto [entry, is_new] = blocks_.try_emplace(values{static_cast<long double>(number)}, block{file, length});
  block& b = entry->second;
  if (is_new) {
    b.coordinates = std::move(coordinates);
    return &b;
  }
  const std::string place = "and both have the place " + std::to_string(number) + " along it; mend the list of places";
  if (b.length != length)
    refuse(path_, b.file, file, "are " + std::to_string(b.length) + " and " + std::to_string(length) + ", " + place);
  if (!are_same(b.coordinates, coordinates)) refuse(path_, b.file, file, "differ, " + place);
  return &b;
}

void coordinate_blocks::require_numbers() const {
  std::uint64_t next = 0;
  for (const auto& [key, b] : blocks_) {
    if (key[0] != static_cast<long double>(next))
      throw error(errc::invalid_option,
                  "no file has the place " + std::to_string(next) + " along \"" + text::escape_name(path_) +
                      "\"; places are numbered from 0 on, without a gap",
                  {path_});
    ++next;
  }
}

bool coordinate_blocks::is_falling() const {
  int direction = 2;
  std::string file_with_direction;
  for (const auto& [key, b] : blocks_) {
    const int d = direction_of(key);
    if (d == 2) continue;
    if (direction != 2 && d != direction) refuse(path_, file_with_direction, b.file, "rise in one and fall in the other");
    direction = d;
    file_with_direction = b.file;
  }
  const values* last = nullptr;
  const std::string* last_file = nullptr;
  for (const auto& [key, b] : blocks_) {
    if (key.empty()) continue;
    if (last && std::max(last->front(), last->back()) >= std::min(key.front(), key.back()))
      refuse(path_, *last_file, b.file, "overlap; cut the files so that each has values of its own, or the same ones");
    last = &key;
    last_file = &b.file;
  }
  return direction == -1;
}

void coordinate_blocks::arrange() {
  if (has_numbers_) require_numbers();
  const bool falls = !has_numbers_ && is_falling();
  length_ = 0;
  const auto place_next = [&](auto& entry) {
    entry.second.first = length_;
    length_ += entry.second.length;
  };
  if (falls) std::for_each(blocks_.rbegin(), blocks_.rend(), place_next);
  else std::for_each(blocks_.begin(), blocks_.end(), place_next);
}

std::size_t coordinate_blocks::count() const {
  return static_cast<std::size_t>(
      std::count_if(blocks_.begin(), blocks_.end(), [](const auto& entry) { return entry.second.length > 0; }));
}

}  // namespace zarrbits::repacking
