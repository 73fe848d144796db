// SPDX-License-Identifier: BSL-1.0
#include "convention/pytables.hpp"

namespace zarrbits::conventions {

void arrange_pytables(hdf5::source_file& file) {
  for (hdf5::source_object& o : file.objects()) {
    if (o.kind == hdf5::source_object::kind_type::dataset) o.arranged.bits_are_booleans = true;
  }
}

}  // namespace zarrbits::conventions
