// SPDX-License-Identifier: BSL-1.0
//
// How an array gets other chunks in bounded memory: in one pass over regions of the target, each of which reads what it needs of
// the source; or, where that would decode chunks of the source too often, in two passes through a scratch file, so that each is
// decoded once. After the algorithm of https://github.com/pangeo-data/rechunker.
//
//   const rechunk_plan p = plan_rechunk(
//       {.array = {1000, 1000}, .source_chunk = {1, 1000}, .target_object = {1000, 1}, .element = 8}, 16 << 20);
//   p.reads;                 // chunks of the source that are decoded, each time counted
//
#ifndef ZARRBITS_ARRAY_RECHUNK_PLAN_HPP
#define ZARRBITS_ARRAY_RECHUNK_PLAN_HPP

#include "array/box.hpp"

#include <cstddef>
#include <cstdint>

namespace zarrbits::array {

struct rechunk_request {
  extents array;
  extents source_chunk;       // the shape of the source's chunks, within that of the array
  extents target_object;      // of the target's objects, within it, too: of shards, or of chunks without shards
  std::uint64_t element = 1;  // bytes of an element
  bool may_use_scratch = true;
};

struct rechunk_plan {
  extents region;           // made at once: a shape in elements, multiples of those of the target's objects
  extents staged = {};      // two passes: what the first one reads at once, multiples of the source's chunks. Empty: one pass
  std::uint64_t reads = 0;  // chunks of the source that are decoded, each time counted, if all exist
  std::uint64_t tiles = 0;  // two passes: pieces that are written to the scratch file, and read from it

  bool two_passes() const { return !staged.empty(); }
};

// `memory`: bytes for the elements of a region. A single object of the target, or chunk of the source, may be larger.
rechunk_plan plan_rechunk(const rechunk_request& request, std::uint64_t memory);

}  // namespace zarrbits::array

#endif
