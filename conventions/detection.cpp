// SPDX-License-Identifier: BSL-1.0
#include "conventions/detection.hpp"

#include <algorithm>

namespace zarrbits::conventions {

bool is_marked(const hdf5::source_file& file, const char* attribute, bool include_children) {
  const auto marked = [&](const hdf5::source_object& o) {
    try {
      return H5Aexists(file.open(o), attribute) > 0;
    } catch (const hdf5::failure&) {
      return false;
    }
  };
  const hdf5::source_object& root = file.objects().front();
  if (marked(root)) return true;
  return include_children && std::any_of(root.children.begin(), root.children.end(),
                                         [&](std::size_t child) { return marked(file.objects()[child]); });
}

}  // namespace zarrbits::conventions
