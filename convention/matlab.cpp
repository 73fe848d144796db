// SPDX-License-Identifier: BSL-1.0
#include "convention/matlab.hpp"

namespace zarrbits::conversion {

void arrange_matlab(source_file& file) {
  for (source_object& o : file.objects()) {
    if (o.kind == source_object::kind_type::dataset) o.arranged.complex_parts = {"real", "imag"};
  }
}

}  // namespace zarrbits::conversion
