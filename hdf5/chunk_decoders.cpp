// SPDX-License-Identifier: BSL-1.0
#include "hdf5/filter_table.hpp"

#include <zarrbits/hdf5_decoders.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::hdf5 {

bool has_decoders(std::span<const chunk_filter> filters) noexcept {
  try {
    return std::all_of(filters.begin(), filters.end(), [](const chunk_filter& f) {
      const known_filter* const entry = find_filter(f.id);
      return entry && entry->undo && (!entry->supports || entry->supports({f.id, f.values, {}}, {}));
    });
  } catch (...) {  // no memory for a copy of the parameters
    return false;
  }
}

void decode_chunk(std::span<const chunk_filter> filters, unsigned mask, std::span<const std::byte> stored,
                  std::span<std::byte> values) {
  if (!has_decoders(filters))
    throw error(errc::unsupported, "a chunk cannot be decoded: nothing here decodes one of its filters; read it with H5Dread()");
  pipeline p;
  for (const chunk_filter& f : filters) p.filters.push_back({f.id, f.values, {}});
  try {
    const compressors::buffer decoded = undo(p, mask, {stored.begin(), stored.end()}, values.size(), {});
    std::memcpy(values.data(), decoded.data(), values.size());
  } catch (const compressors::corrupt_chunk& e) {
    throw error(errc::damaged_source, e.what());
  }
}

}  // namespace zarrbits::hdf5
