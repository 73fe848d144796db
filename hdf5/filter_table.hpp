// SPDX-License-Identifier: BSL-1.0
//
// The filters that our code decodes, without libhdf5: a row for each. A new one is a file in compressors/ and a row.
//
#ifndef ZARRBITS_HDF5_FILTER_TABLE_HPP
#define ZARRBITS_HDF5_FILTER_TABLE_HPP

#include "hdf5/filters.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::hdf5 {

// The size of a filter's output: exact, or an upper limit.
struct size_before {
  std::size_t bytes = 0;
  bool exact = true;
};

struct values_size {
  std::size_t values = 0, trailing = 0;
};

struct known_filter {
  H5Z_filter_t id = 0;
  const char* name = nullptr;  // nullptr: use the id, and the name in the file
  enum kind { compresses, checks, rearranges } role = compresses;
  // Returns the chunk as it was before the filter. Throws corrupt_chunk. nullptr: only libhdf5 knows how (plugin_filters.hpp).
  compressors::buffer (*undo)(const filter& f, compressors::buffer in, size_before size) = nullptr;
  // Replaces undo() if the type of the values is needed; `size`: of the chunk's values, in bytes, and of what follows them: the
  // checksum of a fletcher32 that comes before.
  compressors::buffer (*undo_typed)(const filter& f, compressors::buffer in, values_size size,
                                    const type_description& type) = nullptr;
  // False if the filter's parameters, or the type, are unknown. nullptr: all are known.
  bool (*supports)(const filter& f, const type_description& type) = nullptr;
  // The output size that the stream, or the parameters, announce. nullptr: none is announced.
  std::size_t (*declared_size)(const filter& f, std::span<const std::byte> in) = nullptr;
  // Returns the chunk as the filter leaves it. nullptr: only a plugin can encode.
  compressors::buffer (*apply)(const filter& f, compressors::buffer in) = nullptr;
  // The name under which undo() is registered in libhdf5 (registered_decoders.hpp). nullptr: it is not registered.
  const char* registered_name = nullptr;
};

constexpr std::size_t max_known_filters = 32;
std::span<const known_filter> known_filters();
// nullptr if the table has no such filter.
const known_filter* find_filter(H5Z_filter_t id);

bool is_compression(const filter& f);
std::string filter_name(const filter& f);

}  // namespace zarrbits::hdf5

#endif
