// SPDX-License-Identifier: BSL-1.0
//
// What every header of zarrbits needs of the compiler: said once, before hundreds of lines of errors say it.
//
#ifndef ZARRBITS_DETAIL_REQUIREMENTS_HPP
#define ZARRBITS_DETAIL_REQUIREMENTS_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG <= 201703L : __cplusplus <= 201703L
#error "zarrbits needs C++20: compile with -std=c++20 or newer (CMake: target_compile_features(... cxx_std_20))"
#include <zarrbits/the_error_above>  // ends the compilation here
#endif

#endif
