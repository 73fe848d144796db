// SPDX-License-Identifier: BSL-1.0
//
// Checks that the values of a dimension's variable are monotonic over all files.
//
#ifndef ZARRBITS_CONVERT_CONCAT_MONOTONICITY_CHECK_HPP
#define ZARRBITS_CONVERT_CONCAT_MONOTONICITY_CHECK_HPP

#include "convert/concat/cf_encoding.hpp"

#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class monotonicity_check {
 public:
  // Checks the values of the next file. `path`: of the variable. Throws unjoinable.
  void check(const std::string& path, const std::string& file, const cf_encoding& terms, const std::vector<double>& stored);

 private:
  std::optional<long double> last_;
  int sign_ = 0;
  std::string file_;  // the last file
};

}  // namespace zarrbits::conversion

#endif
