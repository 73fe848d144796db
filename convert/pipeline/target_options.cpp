// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/target_options.hpp"

#include <zarrbits/detail/convert_front_end.hpp>

namespace zarrbits::conversion {

zarr::store_writer_options target_options(const convert_options& options) {
  return {.run = front_end_of(options).run,
          .source = split_source(options.source).file,
          .is_source_temporary = front_end_of(options).is_source_temporary,
          .sync = options.sync,
          .warning = options.warning,
          .references = options.references,
          .base = options.base,
          .formats = {.v2 = options.format != zarr_format::v3, .v3 = options.format != zarr_format::v2},
          .memory = options.memory,
          .remote = options.remote};
}

}  // namespace zarrbits::conversion
