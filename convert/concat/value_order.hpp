// SPDX-License-Identifier: BSL-1.0
//
// Checks that the values of a dimension's variable are monotonic over all files.
//
#ifndef ZARRBITS_CONVERT_CONCAT_VALUE_ORDER_HPP
#define ZARRBITS_CONVERT_CONCAT_VALUE_ORDER_HPP

#include "convert/concat/cf_terms.hpp"

#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class value_order {
 public:
  // Checks the values of the next file. `path`: of the variable. Throws unjoinable.
  void go_on(const std::string& path, const std::string& file, const cf_terms& terms, const std::vector<double>& stored);

 private:
  std::optional<long double> last_;
  int sign_ = 0;
  std::string file_;  // the last file
};

}  // namespace zarrbits::conversion

#endif
