// SPDX-License-Identifier: BSL-1.0
//
// Marks the entry points: everything else of a plugin is hidden.
//
#ifndef ZARRBITS_FILTER_EXPORT_HPP
#define ZARRBITS_FILTER_EXPORT_HPP

#ifdef _WIN32
#define ZARRBITS_FILTER_EXPORT __declspec(dllexport)
#else
#define ZARRBITS_FILTER_EXPORT __attribute__((visibility("default")))
#endif

#endif
