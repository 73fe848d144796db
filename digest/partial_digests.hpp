// SPDX-License-Identifier: BSL-1.0
//
// Reports on shares of a source: their sums, added up.
//
#ifndef ZARRBITS_DIGEST_PARTIAL_DIGESTS_HPP
#define ZARRBITS_DIGEST_PARTIAL_DIGESTS_HPP

#include "digest/array_sum.hpp"

#include <zarrbits/digest.hpp>

#include <string>
#include <vector>

namespace zarrbits::digesting {

// What a run knows about an array of which it has read all values or, with `is_share`, some.
array_digest summed_array(const std::string& path, const array_sum& sum, bool is_share);

// An array that cannot be read as a whole.
array_digest skipped_array(const std::string& path, const text::coded_reason& reason);

// Source and arrays of all shares, from the reports in these files, in the order of their paths. Throws zarrbits::error.
digest_report add_reports(const std::vector<std::string>& files);

}  // namespace zarrbits::digesting

#endif
