// SPDX-License-Identifier: BSL-1.0
//
// libhdf5 in a child process: another thread may be in it, and hold its lock, when a process forks.
//
#ifndef ZARRBITS_HDF5_FORK_GUARD_HPP
#define ZARRBITS_HDF5_FORK_GUARD_HPP

namespace zarrbits::hdf5 {

// From now on, fork() waits until no thread holds `lock`, and the child may take it.
void guard_forks();

}  // namespace zarrbits::hdf5

#endif
