// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_VERIFY_COMPARE_HDF5_ATTRIBUTES_HPP
#define ZARRBITS_VERIFY_COMPARE_HDF5_ATTRIBUTES_HPP

#include "verify/hdf5_side.hpp"

#include <hdf5.h>
#include <set>
#include <string>

namespace zarrbits::verification {

// Compares the attributes of two objects but those in `ignored`, one finding for each. Their order goes to `object`, the finding
// on the objects.
void compare_hdf5_attributes(hid_t first, hid_t second, const hdf5_context& context, finding& object, verify_result& result,
                             const std::set<std::string>& ignored = {});

// A sentence on what differs between two dataspaces, such as "has the shape [3], in the second file [4]"; "" if nothing does.
// `compares_maximum`: the shapes that they may grow to are compared, too. Throws source_error.
std::string dataspace_difference(hid_t first, hid_t second, bool compares_maximum = true);

}  // namespace zarrbits::verification

#endif
