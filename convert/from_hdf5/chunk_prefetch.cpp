// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/chunk_prefetch.hpp"

#include "convert/from_hdf5/chunk_batch.hpp"
#include "convert/from_hdf5/chunk_transcoder.hpp"

#include <utility>
#include <vector>

namespace zarrbits::conversion {

chunk_prefetch::chunk_prefetch(const chunk_batch& batch, bool refers) {
  using form = chunk_input::form_type;
  const chunk_transcoder maker(*batch.plan);
  std::map<std::size_t, std::pair<std::shared_ptr<const io::byte_source>, std::vector<io::byte_range>>> requests;
  for (const chunk_input& chunk : batch.chunks) {
    if (chunk.form != form::in_file && chunk.form != form::range) continue;
    auto& [file, ranges] = requests[chunk.file];
    if (!file) file = batch.plan->data.bytes_of(chunk.file);
    if (!file->remote() || (refers && maker.is_copied(chunk.index, chunk.size, chunk.form == form::range ? 0 : chunk.mask)))
      continue;
    // a range beyond the end is not downloaded, and is an error of its own chunk
    const std::uint64_t size = file->state().size;
    if (chunk.offset <= size && chunk.size <= size - chunk.offset) ranges.push_back({chunk.offset, chunk.size});
  }
  for (auto& [number, one] : requests) {
    if (one.first->remote()) files_.emplace(number, one.first->remote()->fetch(std::move(one.second)));
  }
}

std::optional<std::span<const std::byte>> chunk_prefetch::bytes(const stored_range& range) const {
  const auto entry = files_.find(range.file);
  if (entry == files_.end()) return {};
  return entry->second->bytes({range.offset, range.size});
}

}  // namespace zarrbits::conversion
