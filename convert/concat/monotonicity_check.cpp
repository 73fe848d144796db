// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/monotonicity_check.hpp"

#include "convert/concat/variable.hpp"

namespace zarrbits::conversion {

void monotonicity_check::check(const std::string& path, const std::string& file, const cf_encoding& terms,
                               const std::vector<double>& stored) {
  for (const double number : stored) {
    const std::optional<long double> value = meaning(terms, number);
    if (!value) continue;
    if (last_) {
      const int sign = *value > *last_ ? 1 : *value < *last_ ? -1 : 0;
      if (sign_ == 0) sign_ = sign;
      if (sign == 0 || sign != sign_) {
        throw unjoinable("\"" + path + "\" of \"" + file + "\" does not continue where that of \"" + file_ +
                             "\" ends: its values " + (sign == 0 ? "occur twice" : "change direction") +
                             "; put the files in another order (`order`), or set `allow_overlap` if this is intended",
                         {file, path});
      }
    }
    last_ = value;
    file_ = file;
  }
}

}  // namespace zarrbits::conversion
