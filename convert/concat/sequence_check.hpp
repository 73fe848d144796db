// SPDX-License-Identifier: BSL-1.0
//
// Checks that the values of a dimension's variable are monotonic over all files, and whether some seem to be missing.
//
#ifndef ZARRBITS_CONVERT_CONCAT_SEQUENCE_CHECK_HPP
#define ZARRBITS_CONVERT_CONCAT_SEQUENCE_CHECK_HPP

#include "convert/concat/cf_encoding.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class sequence_check {
 public:
  // Checks the values of the next file. `path`: of the variable. Throws unjoinable.
  void check(const std::string& path, const std::string& file, const cf_encoding& terms, const std::vector<double>& stored);
  // A sentence that names the gaps in values of otherwise regular steps: a file may be missing. Empty without gaps.
  std::string gap_note() const;

 private:
  struct step {
    long double length = 0;
    std::uint64_t count = 0;
    std::string from, to;  // files of the first one
  };
  void add_step(long double length, const std::string& file);

  std::optional<long double> last_;
  int sign_ = 0;
  std::string file_;  // the last file
  std::string path_;
  bool is_time_ = false;
  bool is_irregular_ = false;  // there are too many different steps
  std::vector<step> steps_;    // each length once
};

}  // namespace zarrbits::conversion

#endif
