// SPDX-License-Identifier: BSL-1.0
#include "check/array_chunks.hpp"

#include "check/leftovers.hpp"
#include "codecs/codec_chain.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace zarrbits::checking {

namespace {

constexpr std::uint64_t bytes_per_listed_chunk = 128;  // of a shard, in memory

// Ranges of chunks in a shard that share some bytes, but not all. Empty if no two do.
std::optional<std::string> overlap_of(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());  // equal chunks may be stored once
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const auto& [offset, size] = ranges[i - 1];
    if (ranges[i].first - offset < size)
      return "its index says that bytes from " + std::to_string(ranges[i].first) + " on belong to two chunks";
  }
  return {};
}

}  // namespace

array_chunks::array_chunks(std::string path, const zarr::store_folder& folder) : array_(folder, codecs::make_decoder) {
  result_.path = std::move(path);
  for (std::size_t d = 0; d < array_.shape().size(); ++d) {
    const std::uint64_t per_object = array_.chunks_per_shard()[d];
    grid_.push_back(array_.chunks()[d] / per_object + (array_.chunks()[d] % per_object != 0));
  }
  result_.chunks = array::product(array_.chunks());
  if (result_.chunks == ~std::uint64_t{0}) throw zarr::not_supported(reason_code::too_large, "a grid of 2^64 chunks or more");
}

std::uint64_t array_chunks::chunks_within(const array::extents& object) const {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < object.size(); ++d) {
    const std::uint64_t per_object = array_.chunks_per_shard()[d];
    count *= std::min(per_object, array_.chunks()[d] - object[d] * per_object);
  }
  return count;
}

void array_chunks::list(finding_list& findings, std::uint64_t max_objects) {
  array_.for_each_object(
      [&](const array::extents& index, const zarr::store_entry& object) {
    if (objects_.size() >= max_objects)
      throw zarr::not_supported(reason_code::too_large,
                                "an array of more than " + text::pluralize(max_objects, "chunk") + "; increase `memory`");
    objects_.push_back({array::ravel(index, grid_), object.size});
    listed_chunks_ += chunks_within(index);
    return true;
      },
      [&](const std::string& key, const zarr::store_entry& entry, const std::optional<array::extents>& outside) {
    if (key.find('/') == std::string::npos && metadata::is_v2_metadata_key(key)) return;  // beside those of v3: store_check
    if (const std::string leftover = leftover_reason(key); !leftover.empty()) {
      findings.add({finding_severity::problem, "leftover", path(), key, leftover});
    } else if (outside) {
      findings.add({finding_severity::problem, "grid", path(), key,
                    "it is a chunk outside of the grid, whose chunks are " + array::joined_text(grid_) + "; no reader sees it"});
    } else {
      findings.add(
          {finding_severity::problem, "key", path(), key,
           entry.is_readable ? "it belongs to no array or group" : "it is neither a file nor a folder that can be read"});
    }
  });
  is_listed_ = true;
  std::sort(objects_.begin(), objects_.end(), [](const listed_chunk& a, const listed_chunk& b) { return a.number < b.number; });
}

void array_chunks::sample(double share, random_numbers& random) { take_sample(objects_, share, random); }

void array_chunks::submit(io::thread_pool& pool, std::uint64_t memory, const std::function<void(std::uint64_t)>& progress) {
  const zarr::zarr_type& type = array_.type();
  // a codec that changes decoded values needs them twice
  const std::uint64_t decoded =
      type.variable() ? memory / 8 : array::saturating_mul(2 * type.size, array::product(array_.chunk_shape()));
  const auto failure = read_failure_of([&] {
    array_.require_decodable();
    if (decoded / 2 > memory)
      throw zarr::not_supported(reason_code::too_large, "chunks of " + text::format_bytes(decoded / 2) + "; increase `memory`");
  });
  if (failure) {
    for (const listed_chunk& object : objects_)
      results_.add_failure(object.number, array_.keys().key(array::unravel(object.number, grid_)), *failure);
    return;
  }
  const std::uint64_t max_chunks = memory / 8 / bytes_per_listed_chunk;
  for_each_batch(objects_, [&](std::vector<listed_chunk> batch, std::uint64_t bytes, std::uint64_t largest) {
    pool.submit(decoded + (array_.is_sharded() ? std::min(largest, decoded) : largest),
                [this, max_chunks, objects = std::move(batch)] { check_objects(objects, max_chunks); });
    progress(bytes);
  });
}

void array_chunks::check_objects(const std::vector<listed_chunk>& batch, std::uint64_t max_chunks) {
  const zarr::zarr_array array = array_;  // it keeps the last shard open
  zarr::element_buffer values;
  for (const listed_chunk& object : batch) {
    if (array.is_sharded()) check_shard(array, object, max_chunks);
    else check_chunk(array, object, array::unravel(object.number, grid_), values);
  }
}

void array_chunks::check_shard(const zarr::zarr_array& array, const listed_chunk& object, std::uint64_t max_chunks) {
  const array::extents index = array::unravel(object.number, grid_);
  const std::uint64_t possible = chunks_within(index);
  std::optional<std::vector<array::extents>> chunks;
  auto failure = read_failure_of([&] {
    chunks = array.list_chunks_of(index, static_cast<std::size_t>(max_chunks));
    if (!chunks)
      throw zarr::not_supported(reason_code::too_large,
                                "a shard of more than " + text::pluralize(max_chunks, "chunk") + "; increase `memory`");
  });
  if (failure) return results_.add_failure(object.number, array_.keys().key(index), std::move(*failure), possible);
  results_.add_missing(possible - chunks->size());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  zarr::element_buffer values;
  for (const array::extents& chunk : *chunks) {
    read_failure_of([&] {
      if (const auto range = array.find_stored(chunk)) ranges.emplace_back(range->offset, range->size);
    });
    check_chunk(array, object, chunk, values);
  }
  if (auto overlap = overlap_of(std::move(ranges)))
    results_.add_failure(object.number, array_.keys().key(index), {finding_severity::problem, std::move(*overlap)}, 0);
}

void array_chunks::check_chunk(const zarr::zarr_array& array, const listed_chunk& object, const array::extents& chunk,
                               zarr::element_buffer& values) {
  std::uint64_t bytes = 0;
  auto failure = read_failure_of([&] {
    auto stored = array.read_stored(chunk);
    if (!stored) throw zarr::store_error("it was listed, and is gone");
    bytes = stored->size();
    array.decode(chunk, std::move(*stored), values);
  });
  if (!failure) return results_.add_checked(1, bytes);
  if (array.is_sharded()) failure->reason = "chunk " + array::joined_text(chunk, '/') + " of the array: " + failure->reason;
  results_.add_failure(object.number, array_.keys().key(array::unravel(object.number, grid_)), std::move(*failure));
}

checked_array array_chunks::report(const integrity_options& options, finding_list& findings) {
  const std::uint64_t unlisted =
      is_listed_ && reports_metadata(options) ? result_.chunks - std::min(listed_chunks_, result_.chunks) : 0;
  results_.report(result_, unlisted, options.allow_missing, findings);
  return result_;
}

}  // namespace zarrbits::checking
