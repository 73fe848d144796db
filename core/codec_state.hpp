// SPDX-License-Identifier: BSL-1.0
//
// The state of a codec. A file that makes a codec fills in name, JSON and runs; everything else follows from these.
//
#ifndef ZARRBITS_CORE_CODEC_STATE_HPP
#define ZARRBITS_CORE_CODEC_STATE_HPP

#include "core/access.hpp"
#include "core/packing.hpp"

#include <zarrbits/codec.hpp>

#include <string>
#include <vector>

namespace zarrbits::detail {

struct codec_state {
  std::string name;
  data_type type;
  std::string json;        // published spelling
  std::string json_older;  // the same in the older spelling
  std::vector<run> runs;
  detail::layout layout;  // layout.runs points into `runs`
};

// Completes a codec: computes sizes (overflow-checked), picks the kernels.
codec make_codec(std::string name, const data_type& type, std::string json, std::string json_older, std::vector<run> runs,
                 padding count_byte = padding::none, bool strict_padding = false);

// `c` with another table of kernels (for tests; `zarrbits verify` decodes with the portable ones).
ZARRBITS_API codec with_kernels(const codec& c, const kernel_table& k);

}  // namespace zarrbits::detail

#endif
