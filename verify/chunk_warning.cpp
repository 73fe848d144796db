// SPDX-License-Identifier: BSL-1.0
#include "verify/chunk_warning.hpp"

#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/warning.hpp"

#include <algorithm>

namespace zarrbits::verification {

void warn_about_chunks(const verify_options& options, const std::string& path, const zarr::zarr_array& array) {
  constexpr std::uint64_t copies = 4;                        // of both sides: stored, and decoded
  constexpr std::uint64_t largest = std::uint64_t{1} << 30;  // a larger one is not compared
  std::uint64_t bytes = array.type().variable() ? 0 : array.type().size;
  for (const std::uint64_t extent : array.chunk_shape()) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return;
  }
  if (bytes > largest || !options.warning) return;
  const std::string sentence = text::chunk_memory_warning(
      {"array \"" + text::escape_name(path) + "\" of \"" + options.store + "\"", bytes, copies * bytes}, options.memory,
      "increase `memory`");
  text::report_sentence(options.warning, sentence);
}

}  // namespace zarrbits::verification
