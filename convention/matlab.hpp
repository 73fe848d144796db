// SPDX-License-Identifier: BSL-1.0
//
// MATLAB 7.3 files: complex numbers are compounds of "real" and "imag".
//
#ifndef ZARRBITS_CONVERT_CONVENTION_MATLAB_HPP
#define ZARRBITS_CONVERT_CONVENTION_MATLAB_HPP

#include "convention/convention_rules.hpp"
#include "convention/marks.hpp"

namespace zarrbits::conventions {

inline bool is_matlab(const hdf5::source_file& file) { return is_marked(file, "MATLAB_class", true); }
void arrange_matlab(hdf5::source_file& file);

inline constexpr convention_rules matlab_rules = {
    .which = zarrbits::convention::matlab, .recognise = is_matlab, .arrange = arrange_matlab};

}  // namespace zarrbits::conventions

#endif
