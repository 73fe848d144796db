// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/chunk_edges.hpp"

#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string>

namespace zarrbits::zarr {

using nlohmann::json;

namespace {

std::uint64_t positive(const json& n) {
  if (!n.is_number_unsigned() || n.get<std::uint64_t>() == 0)
    throw store_error("\"chunk_shapes\" holds " + json_text(n).substr(0, 100) +
                      ", which is neither a length nor [length, count]");
  return n.get<std::uint64_t>();
}

const chunk_edges::run& run_of(const std::vector<chunk_edges::run>& runs, std::uint64_t chunk_edges::run::*first,
                               std::uint64_t number) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), number,
                                      [&](std::uint64_t n, const chunk_edges::run& r) { return n < r.*first; });
  return after == runs.begin() ? *after : *std::prev(after);
}

}  // namespace

chunk_edges chunk_edges::regular(std::uint64_t length, std::uint64_t extent) {
  if (length == 0) throw store_error("\"chunk_shape\" holds 0");
  chunk_edges edges;
  edges.longest_ = length;
  edges.chunks_ = extent == 0 ? 0 : (extent - 1) / length + 1;
  edges.runs_.push_back({length, edges.chunks_, 0, 0});
  return edges;
}

chunk_edges chunk_edges::from(const json& lengths, std::uint64_t extent) {
  if (!lengths.is_array()) return regular(positive(lengths), extent);
  chunk_edges edges;
  edges.is_regular_ = false;
  std::uint64_t end = 0;
  for (const json& each : lengths) {
    const bool pair = each.is_array() && each.size() == 2;
    const std::uint64_t length = positive(pair ? each[0] : each), count = pair ? positive(each[1]) : 1;
    if (end >= extent) continue;
    const std::uint64_t needed = (extent - end - 1) / length + 1, taken = std::min(count, needed);
    if (!edges.runs_.empty() && edges.runs_.back().length == length) edges.runs_.back().count += taken;
    else edges.runs_.push_back({length, taken, edges.chunks_, end});
    edges.longest_ = std::max(edges.longest_, length);
    edges.chunks_ += taken;
    end = count >= needed ? extent : end + taken * length;
  }
  if (end < extent)
    throw store_error("the lengths in \"chunk_shapes\" cover " + std::to_string(end) + " of " + std::to_string(extent) +
                      " elements");
  if (edges.runs_.empty()) edges.runs_.push_back({1, 0, 0, 0});
  return edges;
}

std::uint64_t chunk_edges::start(std::uint64_t chunk) const {
  const run& r = run_of(runs_, &run::first_chunk, chunk);
  return r.first_element + (chunk - r.first_chunk) * r.length;
}

std::uint64_t chunk_edges::length(std::uint64_t chunk) const { return run_of(runs_, &run::first_chunk, chunk).length; }

std::uint64_t chunk_edges::chunk_of(std::uint64_t element) const {
  const run& r = run_of(runs_, &run::first_element, element);
  return r.first_chunk + (element - r.first_element) / r.length;
}

}  // namespace zarrbits::zarr
