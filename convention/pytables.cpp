// SPDX-License-Identifier: BSL-1.0
#include "convention/pytables.hpp"

namespace zarrbits::conversion {

void arrange_pytables(source_file& file) {
  for (source_object& o : file.objects()) {
    if (o.kind == source_object::kind_type::dataset) o.arranged.bits_are_booleans = true;
  }
}

}  // namespace zarrbits::conversion
