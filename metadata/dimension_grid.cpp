// SPDX-License-Identifier: BSL-1.0
#include "metadata/dimension_grid.hpp"

#include "metadata/parse_error.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string>

namespace zarrbits::metadata {

using nlohmann::json;

namespace {

std::uint64_t parse_positive(const json& n) {
  if (!n.is_number_unsigned() || n.get<std::uint64_t>() == 0)
    throw parse_error("\"chunk_shapes\" holds " + text::sorted_json_text(n).substr(0, 100) +
                      ", which is neither a length nor [length, count]");
  return n.get<std::uint64_t>();
}

const dimension_grid::run& find_run(const std::vector<dimension_grid::run>& runs, std::uint64_t dimension_grid::run::*first,
                                    std::uint64_t number) {
  const auto upper = std::upper_bound(runs.begin(), runs.end(), number,
                                      [&](std::uint64_t n, const dimension_grid::run& r) { return n < r.*first; });
  return upper == runs.begin() ? *upper : *std::prev(upper);
}

}  // namespace

dimension_grid dimension_grid::regular(std::uint64_t length, std::uint64_t extent) {
  if (length == 0) throw parse_error("\"chunk_shape\" holds 0");
  dimension_grid edges;
  edges.max_length_ = length;
  edges.chunks_ = extent == 0 ? 0 : (extent - 1) / length + 1;
  edges.runs_.push_back({length, edges.chunks_, 0, 0});
  return edges;
}

dimension_grid dimension_grid::parse(const json& lengths, std::uint64_t extent) {
  if (!lengths.is_array()) return regular(parse_positive(lengths), extent);
  dimension_grid edges;
  edges.is_regular_ = false;
  std::uint64_t end = 0;
  for (const json& entry : lengths) {
    const bool pair = entry.is_array() && entry.size() == 2;
    const std::uint64_t length = parse_positive(pair ? entry[0] : entry), count = pair ? parse_positive(entry[1]) : 1;
    if (end >= extent) continue;
    const std::uint64_t needed = (extent - end - 1) / length + 1, used = std::min(count, needed);
    if (!edges.runs_.empty() && edges.runs_.back().length == length) edges.runs_.back().count += used;
    else edges.runs_.push_back({length, used, edges.chunks_, end});
    edges.max_length_ = std::max(edges.max_length_, length);
    edges.chunks_ += used;
    end = count >= needed ? extent : end + used * length;
  }
  if (end < extent)
    throw parse_error("the lengths in \"chunk_shapes\" cover " + std::to_string(end) + " of " + std::to_string(extent) +
                      " elements");
  if (edges.runs_.empty()) edges.runs_.push_back({1, 0, 0, 0});
  return edges;
}

std::uint64_t dimension_grid::start(std::uint64_t chunk) const {
  const run& r = find_run(runs_, &run::first_chunk, chunk);
  return r.first_element + (chunk - r.first_chunk) * r.length;
}

std::uint64_t dimension_grid::length(std::uint64_t chunk) const { return find_run(runs_, &run::first_chunk, chunk).length; }

std::uint64_t dimension_grid::chunk_of(std::uint64_t element) const {
  const run& r = find_run(runs_, &run::first_element, element);
  return r.first_chunk + (element - r.first_element) / r.length;
}

}  // namespace zarrbits::metadata
