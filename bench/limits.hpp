// SPDX-License-Identifier: BSL-1.0
//
// What this machine's memory allows: loops that only read, only write, or only copy, as vectors. A kernel reads and writes with
// such instructions too, so that it cannot be faster than its share of reading and its share of writing; glibc's memcpy can,
// where the CPU has a string instruction that writes whole lines without reading them.
//
#ifndef ZARRBITS_BENCH_LIMITS_HPP
#define ZARRBITS_BENCH_LIMITS_HPP

namespace zarrbits::bench {

// Registers limit/read, limit/write and limit/copy.
void register_limits();

}  // namespace zarrbits::bench

#endif
