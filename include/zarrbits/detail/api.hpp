// SPDX-License-Identifier: BSL-1.0
//
// ZARRBITS_API marks what the shared core exports (CMake's ZARRBITS_SHARED, which defines the macro of that name for its users,
// too). With the static core it is empty, so that a shared library which contains zarrbits exports nothing of it.
//
#ifndef ZARRBITS_DETAIL_API_HPP
#define ZARRBITS_DETAIL_API_HPP

#if defined(ZARRBITS_SHARED)
#define ZARRBITS_API __attribute__((visibility("default")))
#else
#define ZARRBITS_API
#endif

#endif
