// SPDX-License-Identifier: BSL-1.0
#include "convention/matlab.hpp"

namespace zarrbits::conventions {

void arrange_matlab(hdf5::source_file& file) {
  for (hdf5::source_object& o : file.objects()) {
    if (o.kind == hdf5::source_object::kind_type::dataset) o.arranged.complex_parts = {"real", "imag"};
  }
}

}  // namespace zarrbits::conventions
