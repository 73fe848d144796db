// SPDX-License-Identifier: BSL-1.0
//
// MATLAB 7.3 files: complex numbers are compounds of "real" and "imag".
//
#ifndef ZARRBITS_CONVENTIONS_MATLAB_HPP
#define ZARRBITS_CONVENTIONS_MATLAB_HPP

#include "conventions/convention_rules.hpp"
#include "conventions/detection.hpp"

namespace zarrbits::conventions {

inline bool is_matlab(const hdf5::source_file& file) { return is_marked(file, "MATLAB_class", true); }
void override_matlab_schema(hdf5::source_file& file);

inline constexpr convention_rules matlab_rules = {
    .kind = zarrbits::convention::matlab, .recognise = is_matlab, .override_schema = override_matlab_schema};

}  // namespace zarrbits::conventions

#endif
