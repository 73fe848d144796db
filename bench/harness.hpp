// SPDX-License-Identifier: BSL-1.0
//
// How everything in this folder is measured:
//
//   zarrbits::bench::add({.name = "encode/bool", .kernels = "avx2", .bytes = 65536}, [] {
//     ...                                                     // buffers, data: not timed
//     return subject{.run = [=] { ... return true; }, .verify = [=] { ... return true; }};
//   });
//   ...
//   int main(int argc, char** argv) { return zarrbits::bench::main(argc, argv); }
//
// A sample is three timings in a row - the base, the subject, the base again - each of as many calls as take some 100 us, so that
// a sample is rarely interrupted - in the CPU time of this thread. The base is glibc's memcpy of as many bytes as the subject has
// when decoded, between 64-byte aligned buffers that are reused. A sample counts if the two bases agree, and are not far from the
// best one of that size in this run, and if a loop in registers, before and after, is near its own best: it is what slows down
// while somebody else uses the other thread of the core. Otherwise something else was using the machine. The figures are medians
// of the samples that count.
//
// Google-benchmark lists, selects, repeats and shuffles the cases, with manual time. It cannot interleave two things within one
// case, which is why sampling is done here; its own times are not reported.
//
#ifndef ZARRBITS_BENCH_HARNESS_HPP
#define ZARRBITS_BENCH_HARNESS_HPP

#include <cstddef>
#include <functional>
#include <span>
#include <string>

// What the compiler could learn of the other side of a call to such a function, it must not use. (gcc drops results of a function
// that is merely not inlined; clang has no more than this, and does not.)
#ifdef __clang__
#define ZARRBITS_BENCH_OPAQUE __attribute__((noinline))
#else
#define ZARRBITS_BENCH_OPAQUE __attribute__((noipa))
#endif

namespace zarrbits::bench {

// One row of the JSON. Of `kernels` (a table of ours) and `peer` (another program's work) one is set.
struct row {
  std::string name;
  std::string kernels = {};
  std::string peer = {};
  std::string base = {};  // what the ratio is to, where that is not memcpy
  std::size_t bytes = 0;  // decoded
  double stored = 0;      // encoded size / decoded size, where that is worth telling
};

struct subject {
  // Once; false means that it failed. What it returns must depend on its work, so that none of it is optimised away.
  std::function<bool()> run;
  // Did the last run do what it should have done? Called once, after the samples.
  std::function<bool()> verify = {};
  // Instead of memcpy; row::base names it.
  std::function<bool()> base = {};
};

// Registers a case. `prepare` is called before its samples are taken, with all three buffers free to use; it may set row::stored.
void add(row what, std::function<subject(row&)> prepare);

// Shared by all cases, so that they lie on the same pages: largest_size bytes and more, at a 2 MiB border, touched. memcpy goes
// from `decoded` to `other`.
inline constexpr std::size_t largest_size = std::size_t{64} << 20;
std::byte* decoded_buffer();
std::byte* encoded_buffer();
std::byte* other_buffer();

// The sizes to measure at, as --sizes has them (default: 64 KiB, 1 MiB, 64 MiB).
std::span<const std::size_t> sizes();
bool is_quick();

// Options: --json FILE, --quick, --sizes=N,N; others are google-benchmark's. `registration` calls add(). Nonzero on a failed or
// wrong case.
//
// One process is one set of addresses, and caches care: scripts/bench takes the median of several.
int main(int argc, char** argv, void (*registration)());

}  // namespace zarrbits::bench

#endif
