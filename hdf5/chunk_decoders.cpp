// SPDX-License-Identifier: BSL-1.0
#include "hdf5/filter_table.hpp"

#include <zarrbits/hdf5_decoders.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace zarrbits::hdf5 {

namespace {

pipeline pipeline_of(std::span<const chunk_filter> filters) {
  pipeline p;
  for (const chunk_filter& f : filters) p.filters.push_back({f.id, f.values, {}});
  return p;
}

}  // namespace

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
  try {
    const compressors::buffer decoded = undo(pipeline_of(filters), mask, {stored.begin(), stored.end()}, values.size(), {});
    std::memcpy(values.data(), decoded.data(), values.size());
  } catch (const compressors::corrupt_chunk& e) {
    throw error(errc::damaged_source, e.what());
  }
}

bool has_encoders(std::span<const chunk_filter> filters) noexcept {
  return has_decoders(filters) && std::all_of(filters.begin(), filters.end(), [](const chunk_filter& f) {
           return find_filter(f.id)->apply && (f.id != H5Z_FILTER_DEFLATE || (f.values.size() == 1 && f.values[0] <= 9));
         });
}

std::vector<std::byte> encode_chunk(std::span<const chunk_filter> filters, std::span<const std::byte> values) {
  if (!has_encoders(filters))
    throw error(errc::unsupported,
                "a chunk cannot be encoded: nothing here encodes one of its filters; write it with H5Dwrite()");
  try {
    const compressors::buffer encoded = apply(pipeline_of(filters), {values.begin(), values.end()});
    return {encoded.begin(), encoded.end()};
  } catch (const std::runtime_error& e) {
    throw error(errc::io_failed, std::string("a chunk cannot be encoded: ") + e.what() + "; write it with H5Dwrite()");
  }
}

}  // namespace zarrbits::hdf5
