// SPDX-License-Identifier: BSL-1.0
//
// Chunks and shards for an access, from the metadata of a file or a store.
//
#include "array/chunk_grid.hpp"
#include "text/cf_calendar.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/selection.hpp"

#include <zarrbits/inspect.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::inspection {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, target_bytes = 4 * mib, min_bytes = mib, max_bytes = 16 * mib,
                        shard_bytes = 64 * mib, max_unsharded_chunks = 1000;

// Bytes of an element of a numeric type; 0: its size is not known before it is converted.
std::uint64_t element_bytes(std::string_view type) {
  type = type.substr(0, type.find(" big-endian"));
  if (type.starts_with("enum ")) type.remove_prefix(5);
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 14> sizes{{{"bool", 1},
                                                                              {"int8", 1},
                                                                              {"uint8", 1},
                                                                              {"int16", 2},
                                                                              {"uint16", 2},
                                                                              {"float16", 2},
                                                                              {"int32", 4},
                                                                              {"uint32", 4},
                                                                              {"float32", 4},
                                                                              {"int64", 8},
                                                                              {"uint64", 8},
                                                                              {"float64", 8},
                                                                              {"complex64", 8},
                                                                              {"complex128", 16}}};
  const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == type; });
  return size == sizes.end() ? 0 : size->second;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// The coordinate variables that are axes of time, by CF's attributes.
std::set<std::string> time_coordinates(const std::vector<inspected_node>& nodes) {
  std::set<std::string> paths;
  for (const inspected_node& n : nodes) {
    if (n.kind != "array" || n.attribute_values.empty()) continue;
    const text::json attributes = text::parse_untrusted_json(n.attribute_values);
    if (text::text_member(attributes, "axis") == "T" || text::is_time_units(text::text_member(attributes, "units")))
      paths.insert(n.path);
  }
  return paths;
}

// The first dimension that is one of time: by its coordinate variable in the group of the array or above, or by its name; else
// the only one that is unlimited, along which writers append steps.
std::optional<std::size_t> time_axis(const inspected_node& n, const std::set<std::string>& coordinates) {
  for (std::size_t d = 0; d < n.dimension_names.size(); ++d) {
    const std::string& name = n.dimension_names[d];
    if (name.empty()) continue;
    if (name == "time" || name == "t") return d;
    for (std::string group = parent_of(n.path); !group.empty(); group = parent_of(group.substr(0, group.size() - 1))) {
      if (coordinates.contains(group + name)) return d;
    }
  }
  return n.unlimited.size() == 1 ? std::optional(n.unlimited[0]) : std::nullopt;
}

// What an access reads of a grid: chunks for the values of one point at all times, and for all points of one time.
struct reads {
  std::uint64_t series = 1, map = 1;

  reads(const array::extents& shape, const array::extents& chunk, std::optional<std::size_t> axis) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::uint64_t& count = d == axis ? series : map;
      count = array::saturating_mul(count, array::chunk_grid{shape, chunk}.chunks_along(d));
    }
  }
  std::uint64_t worst(chunk_access access) const {
    return access == chunk_access::time_series ? series : access == chunk_access::maps ? map : std::max(series, map);
  }
};

// The next longer chunk, which divides the source's or is a multiple of it where this takes no large step.
std::uint64_t next_length(std::uint64_t length, std::uint64_t source, std::uint64_t extent) {
  source = std::min(source, extent);
  for (std::uint64_t divisor = length + 1; length < source && divisor <= std::min(4 * length, source); ++divisor) {
    if (source % divisor == 0) return divisor;
  }
  return std::min(2 * length, length < source ? source : extent);
}

// Grows a chunk from one element, along the dimension whose chunks the access reads most of, up to the target.
array::extents chunk_for(const array::extents& shape, const array::extents& source, std::uint64_t element,
                         std::optional<std::size_t> axis, chunk_access access) {
  array::extents chunk(shape.size(), 1);
  for (;;) {
    const reads current(shape, chunk, axis);
    const bool axis_first =
        access == chunk_access::time_series || (access == chunk_access::both && current.series >= current.map);
    std::optional<std::size_t> best;
    std::uint64_t best_length = 0, best_count = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (chunk[d] >= shape[d]) continue;
      array::extents grown = chunk;
      grown[d] = next_length(chunk[d], source[d], shape[d]);
      if (array::saturating_mul(array::product(grown), element) > target_bytes) continue;
      const std::uint64_t count = array::chunk_grid{shape, chunk}.chunks_along(d);
      const bool preferred = (d == axis) == axis_first, best_preferred = best && (best == axis) == axis_first;
      if (!best || (preferred && !best_preferred) || (preferred == best_preferred && count >= best_count)) {
        best = d;
        best_length = grown[d];
        best_count = count;
      }
    }
    if (!best) return chunk;
    chunk[*best] = best_length;
  }
}

// Whether `--chunk` can name each dimension of the array, and no other with it.
bool has_usable_names(const inspected_node& n) {
  std::set<std::string> names;
  for (const std::string& name : n.dimension_names) {
    if (name.empty() || name.find_first_of(",=") != std::string::npos || !names.insert(name).second) return false;
  }
  return n.dimension_names.size() == n.shape->size();
}

std::string chunk_option(const inspected_node& n, const array::extents& chunk) {
  std::string option = text::pattern_of_path(n.path) + "=";
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    option += (d == 0 ? "" : ",") + n.dimension_names[d] + ":";
    option += chunk[d] >= (*n.shape)[d] ? "-1" : std::to_string(chunk[d]);
  }
  return option;
}

std::string reads_text(const reads& r) {
  return "a time series reads " + text::pluralize(r.series, "chunk") + ", a map " + std::to_string(r.map);
}

suggested_chunks::dataset suggest(const inspected_node& n, std::uint64_t element, std::optional<std::size_t> axis,
                                  chunk_access access) {
  const array::extents& shape = *n.shape;
  suggested_chunks::dataset d;
  d.path = n.path;
  d.type = n.type;
  d.shape = shape;
  d.dimension_names = n.dimension_names;
  d.current_chunk = n.chunk;
  if (axis) d.time_axis = *axis;
  // convert has such chunks without an option
  const array::extents source = n.chunk.empty() ? array::chunk_shape_for(shape, element) : n.chunk;
  const std::uint64_t total = array::saturating_mul(array::product(shape), element),
                      source_bytes = array::saturating_mul(array::product(source), element);
  const bool is_small = total <= target_bytes;
  const array::extents chunk = is_small ? shape : chunk_for(shape, source, element, axis, access);
  const reads now(shape, source, axis), then(shape, chunk, axis);
  const bool fits = source_bytes >= min_bytes && source_bytes <= max_bytes;
  d.chunk = source;
  if (is_small && now.series == 1 && now.map == 1) {
    d.reason = "already one chunk";
  } else if (!is_small && fits && (!axis || now.worst(access) <= array::saturating_mul(2, then.worst(access)))) {
    d.reason = axis ? "its chunks fit: " + reads_text(now) : "its chunks fit: 1 to 16 MiB each, and no dimension is time";
  } else if (!has_usable_names(n)) {
    d.reason = "keeps its chunks, as not all of its dimensions have names of their own; alone: `include` " +
               text::pattern_of_path(n.path) + " `chunk` " + array::joined_text(chunk);
  } else {
    d.chunk = chunk;
    d.option = chunk_option(n, chunk);
    d.reason = is_small ? "small: one chunk"
               : axis   ? reads_text(then) + "; now " + std::to_string(now.series) + " and " + std::to_string(now.map)
                        : "chunks of about 4 MiB, as no dimension is time";
  }
  d.chunk_bytes = array::saturating_mul(array::product(d.chunk), element);
  const reads chosen(shape, d.chunk, axis);
  d.objects = d.chunks = array::saturating_mul(chosen.series, chosen.map);
  return d;
}

void add_shards(suggested_chunks::dataset& d, std::uint64_t element) {
  if (d.chunks <= 1) return;
  const array::chunk_grid grid{d.shape, d.chunk};
  const std::uint64_t per_shard_limit = shard_bytes / std::max<std::uint64_t>(1, array::product(d.chunk) * element);
  array::extents counts;
  for (std::size_t i = 0; i < d.shape.size(); ++i) counts.push_back(grid.chunks_along(i));
  const array::extents per_shard = array::chunk_shape_for(counts, 1, std::min(per_shard_limit, std::uint64_t{1} << 22));
  if (array::product(per_shard) <= 1) return;
  d.objects = 1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    d.shard.push_back(per_shard[i] * d.chunk[i]);
    d.objects = array::saturating_mul(d.objects, counts[i] / per_shard[i] + (counts[i] % per_shard[i] != 0));
  }
}

}  // namespace

}  // namespace zarrbits::inspection

namespace zarrbits {

suggested_chunks suggest_chunks(const inspect_options& options, chunk_access access) {
  inspect_options with_attributes = options;
  with_attributes.attributes = true;
  const inspected_tree tree = inspect(with_attributes);
  const std::set<std::string> coordinates = inspection::time_coordinates(tree.nodes);
  suggested_chunks result;
  result.incomplete = tree.incomplete;
  std::vector<std::uint64_t> elements;
  bool use_shards = false;
  for (const inspected_node& n : tree.nodes) {
    if (n.kind == "unreadable") result.left_out.push_back({n.path, n.note});
    if (n.kind != "array") continue;
    const std::uint64_t element = inspection::element_bytes(n.type);
    const auto leave_out = [&](const char* reason) { result.left_out.push_back({n.path, reason}); };
    if (!n.shape) leave_out("it has no values");
    else if (n.shape->empty()) leave_out("a scalar is one chunk");
    else if (array::product(*n.shape) == 0) leave_out("it has no elements");
    else if (n.rectilinear) leave_out("its chunks differ in their lengths");
    else if (element == 0) leave_out("the sizes of its values are not known before they are converted");
    else if (!n.chunk.empty() && array::product(n.chunk) == 0) leave_out("a chunk length is 0");
    else if (n.layout == "virtual") leave_out("a virtual dataset has the chunks of its sources");
    else {
      result.datasets.push_back(inspection::suggest(n, element, inspection::time_axis(n, coordinates), access));
      elements.push_back(element);
      use_shards = use_shards || !n.shard.empty() || result.datasets.back().chunks > inspection::max_unsharded_chunks;
    }
  }
  for (std::size_t i = 0; i < result.datasets.size(); ++i) {
    suggested_chunks::dataset& d = result.datasets[i];
    if (!d.option.empty()) result.options.emplace_back("chunk", d.option);
    if (use_shards) inspection::add_shards(d, elements[i]);
  }
  if (use_shards) result.options.emplace_back("shard", "64M");
  return result;
}

}  // namespace zarrbits
