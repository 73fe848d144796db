// SPDX-License-Identifier: BSL-1.0
//
// How the C library's heap keeps what several threads free.
//
//   tune_heap(options.execution.memory);   // before the threads begin
//
#ifndef ZARRBITS_COMMAND_HEAP_HPP
#define ZARRBITS_COMMAND_HEAP_HPP

#include <cstdint>

namespace zarrbits::command {

// One heap for all threads: a heap of each thread would keep what was freed, with many threads more than the bound `memory`. The
// heap keeps a part of the bound. By default, glibc gives the buffers of each chunk back to the system and takes them again, page
// by page: 1.4 times the CPU time with two threads.
void tune_heap(std::uint64_t memory);

}  // namespace zarrbits::command

#endif
