// SPDX-License-Identifier: BSL-1.0
#include "conventions/pytables.hpp"

namespace zarrbits::conventions {

void override_pytables_schema(hdf5::source_file& file) {
  for (hdf5::source_object& o : file.objects()) {
    if (o.kind == hdf5::source_object::kind_type::dataset) o.overrides.bits_are_booleans = true;
  }
}

}  // namespace zarrbits::conventions
