// SPDX-License-Identifier: BSL-1.0
//
// The version of zarrbits that a program was compiled against, and of the library that it runs with.
//
//   static_assert(ZARRBITS_VERSION_MAJOR == 0);
//   std::puts(zarrbits::version());   // "0.2.0"
//
#ifndef ZARRBITS_VERSION_HPP
#define ZARRBITS_VERSION_HPP

// The first number of the headers' version.
#define ZARRBITS_VERSION_MAJOR 0
// The second.
#define ZARRBITS_VERSION_MINOR 2
// The third.
#define ZARRBITS_VERSION_PATCH 0
// All three, as text.
#define ZARRBITS_VERSION_STRING "0.2.0"

#include <zarrbits/detail/api.hpp>

namespace zarrbits {

// The version of the compiled library, "major.minor.patch".
ZARRBITS_API const char* version() noexcept;

}  // namespace zarrbits

#endif
