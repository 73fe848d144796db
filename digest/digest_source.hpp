// SPDX-License-Identifier: BSL-1.0
//
// What a digest reads, in the words of the conversion whose reading it shares.
//
#ifndef ZARRBITS_DIGEST_DIGEST_SOURCE_HPP
#define ZARRBITS_DIGEST_DIGEST_SOURCE_HPP

#include <zarrbits/convert.hpp>
#include <zarrbits/digest.hpp>

namespace zarrbits::digesting {

inline convert_options conversion_source(const digest_options& options) {
  convert_options c;
  c.source.name = options.source;
  c.remote = options.remote;
  c.selection.include = options.include;
  c.selection.exclude = options.exclude;
  c.source.external = options.external;
  c.execution.memory = options.memory;
  return c;
}

}  // namespace zarrbits::digesting

#endif
