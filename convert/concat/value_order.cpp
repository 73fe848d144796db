// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/value_order.hpp"

#include "convert/concat/variable.hpp"

#include <cstring>

namespace zarrbits::conversion {

void value_order::go_on(const std::string& path, const std::string& file, const cf_terms& terms, const source_dataset& data) {
  if (terms.kind.size == 0 || data.dims[0] == 0) return;
  buffer bytes(static_cast<std::size_t>(data.dims[0]) * sizeof(double));
  data.read_block(H5T_NATIVE_DOUBLE, sizeof(double), {0}, data.dims, data.dims, bytes);
  std::vector<double> stored(static_cast<std::size_t>(data.dims[0]));
  std::memcpy(stored.data(), bytes.data(), bytes.size());
  go_on(path, file, terms, stored);
}

void value_order::go_on(const std::string& path, const std::string& file, const cf_terms& terms,
                        const std::vector<double>& stored) {
  for (const double number : stored) {
    const long double value = meaning(terms, number);
    if (last_) {
      const int sign = value > *last_ ? 1 : value < *last_ ? -1 : 0;
      if (sign_ == 0) sign_ = sign;
      if (sign == 0 || sign != sign_) {
        throw unjoinable("\"" + path + "\" of \"" + file + "\" does not continue where that of \"" + file_ +
                         "\" ends: its values " + (sign == 0 ? "occur twice" : "change direction") +
                         "; give the files in another order (`order`), or `allow_overlap` where it is meant");
      }
    }
    last_ = value;
    file_ = file;
  }
}

}  // namespace zarrbits::conversion
