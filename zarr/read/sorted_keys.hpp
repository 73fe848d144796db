// SPDX-License-Identifier: BSL-1.0
//
// Lists folders of a store whose keys are in one sorted map: a .zip file's members, references.
//
#ifndef ZARRBITS_ZARR_READ_SORTED_KEYS_HPP
#define ZARRBITS_ZARR_READ_SORTED_KEYS_HPP

#include "zarr/read/store_reader.hpp"

#include <functional>
#include <iterator>
#include <string>

namespace zarrbits::zarr {

// Like store_reader::list(); the map's values have a `size`. `state_of`: store_entry::state of a value.
template <class Map, class State>
void list_sorted(const Map& keys, const std::string& folder, const State& state_of,
                 const std::function<bool(const store_entry&)>& visit) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  for (auto i = keys.lower_bound(prefix); i != keys.end() && i->first.starts_with(prefix);) {
    const std::size_t slash = i->first.find('/', prefix.size());
    store_entry e;
    e.name = i->first.substr(prefix.size(), slash - prefix.size());
    e.is_folder = slash != std::string::npos;
    if (!e.is_folder) {
      e.size = i->second.size;
      e.state = state_of(i->second);
    }
    if (!visit(e)) return;
    // skip the folder and its content: '0' follows '/'
    i = e.is_folder ? keys.lower_bound(prefix + e.name + '0') : std::next(i);
  }
}

}  // namespace zarrbits::zarr

#endif
