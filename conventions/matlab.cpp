// SPDX-License-Identifier: BSL-1.0
#include "conventions/matlab.hpp"

namespace zarrbits::conventions {

void override_matlab_schema(hdf5::source_file& file) {
  for (hdf5::source_object& o : file.objects()) {
    if (o.kind == hdf5::source_object::kind_type::dataset) o.overrides.complex_parts = {"real", "imag"};
  }
}

}  // namespace zarrbits::conventions
