// SPDX-License-Identifier: BSL-1.0
//
// What headers need that throw, or pass containers to the compiled library.
//
#ifndef ZARRBITS_DETAIL_LINKAGE_HPP
#define ZARRBITS_DETAIL_LINKAGE_HPP

#include <zarrbits/detail/api.hpp>
#include <zarrbits/detail/requirements.hpp>

#if !defined(__cpp_exceptions)
#error "zarrbits reports errors by exceptions: compile without -fno-exceptions what includes its headers"
#include <zarrbits/the_error_above>  // ends the compilation here
#endif

#include <cstddef>  // which defines what is asked below

namespace zarrbits::detail {

// Under _GLIBCXX_DEBUG, a std::vector has another layout. A program that is compiled with it, and a library that is not, would
// read garbage, so they do not link: the library has one of these names.
#ifdef _GLIBCXX_DEBUG
extern ZARRBITS_API const char library_was_built_with_GLIBCXX_DEBUG;
[[gnu::used]] inline const char* const same_containers = &library_was_built_with_GLIBCXX_DEBUG;
#else
extern ZARRBITS_API const char library_was_built_without_GLIBCXX_DEBUG;
[[gnu::used]] inline const char* const same_containers = &library_was_built_without_GLIBCXX_DEBUG;
#endif

}  // namespace zarrbits::detail

#endif
