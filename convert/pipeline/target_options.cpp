// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/target_options.hpp"

namespace zarrbits::conversion {

std::optional<std::uint64_t> inline_limit(const convert_target& target) {
  return target.references ? std::optional(target.inline_bytes) : std::nullopt;
}

zarr::store_writer_options target_options(const convert_options& options) {
  return {.run = options.execution.run,
          .source = split_source(options.source.name).file,
          .is_source_temporary = options.source.is_temporary,
          .sync = options.execution.fsync,
          .warning = options.execution.warning,
          .references = inline_limit(options.target),
          .base = options.target.base,
          .formats = {.v2 = options.target.zarr_format != zarr_format::v3, .v3 = options.target.zarr_format != zarr_format::v2},
          .memory = options.execution.memory,
          .remote = options.remote};
}

}  // namespace zarrbits::conversion
