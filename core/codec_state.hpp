// SPDX-License-Identifier: BSL-1.0
//
// What a codec holds, and what a file that makes one has to fill in: name, JSON, runs. Everything else follows from these.
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
  std::string json_older;  // older spelling of the same
  std::vector<run> runs;
  detail::layout layout;  // layout.runs points into `runs`
};

// Completes a codec: computes sizes (overflow-checked), picks the kernels.
codec make_codec(std::string name, const data_type& type, std::string json, std::string json_older, std::vector<run> runs,
                 padding count_byte = padding::none, bool strict_padding = false);

// The same codec on another table of kernels (tests; `zarrbits verify` decodes with the portable ones).
codec with_kernels(const codec& c, const kernel_table& k);

}  // namespace zarrbits::detail

#endif
