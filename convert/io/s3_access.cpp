// SPDX-License-Identifier: BSL-1.0
#include "convert/io/s3_access.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

bool is_s3(const std::string& name) { return name.starts_with("s3://"); }

#ifndef ZARRBITS_WITH_S3
void prepare_s3(const std::string&, const std::string&, const std::string&, const std::function<void(const std::string&)>&) {}
#endif

}  // namespace zarrbits::conversion

#ifndef ZARRBITS_WITH_S3
void zarrbits::take_s3_keys() {}
#endif
