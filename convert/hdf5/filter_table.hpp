// SPDX-License-Identifier: BSL-1.0
//
// The filters that are undone here, without libhdf5: a row for each. A new one is a file in convert/codecs/ and a row.
//
#ifndef ZARRBITS_CONVERT_HDF5_FILTER_TABLE_HPP
#define ZARRBITS_CONVERT_HDF5_FILTER_TABLE_HPP

#include "convert/hdf5/filters.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::conversion {

// What a filter's output becomes: exactly so many bytes, or no more than that.
struct size_before {
  std::size_t bytes = 0;
  bool exact = true;
};

struct known_filter {
  H5Z_filter_t id = 0;
  const char* name = nullptr;  // nullptr: the id, and the name that the file gives
  enum kind { compresses, checks, rearranges } what = compresses;
  // The chunk as it was before the filter. Throws damaged_chunk. nullptr: libhdf5 alone knows how (foreign_filters.hpp).
  buffer (*undo)(const filter& f, buffer in, size_before size) = nullptr;
  // In place of undo(), where it takes the type of the values; `size`: of the chunk's values, in bytes.
  buffer (*undo_typed)(const filter& f, buffer in, std::size_t size, const type_tree& type) = nullptr;
  // False where the filter's parameters, or the type, are none that are known. nullptr: all are.
  bool (*knows)(const filter& f, const type_tree& type) = nullptr;
  // How many bytes the stream says that it becomes. nullptr: it does not say.
  std::size_t (*announced)(const filter& f, std::span<const std::byte> in) = nullptr;
  // The name by which undo() is lent to libhdf5 (lent_decoders.hpp). nullptr: it is not.
  const char* lent_as = nullptr;
};

constexpr std::size_t most_known_filters = 32;
std::span<const known_filter> known_filters();
// nullptr where the filter is in no row.
const known_filter* find_filter(H5Z_filter_t id);

bool is_compression(const filter& f);
std::string filter_name(const filter& f);

}  // namespace zarrbits::conversion

#endif
