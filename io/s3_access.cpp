// SPDX-License-Identifier: BSL-1.0
#include "io/s3_access.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <algorithm>

namespace zarrbits::conversion {

bool is_s3(const std::string& name) { return name.starts_with("s3://"); }

bool any_in_s3(const std::vector<std::string>& names) { return std::any_of(names.begin(), names.end(), is_s3); }

#ifndef ZARRBITS_WITH_S3
void prepare_s3(const std::vector<std::string>&, const std::string&, const std::string&,
                const std::function<void(const std::string&)>&) {}
void take_s3_keys() {}
void hurry_s3() noexcept {}
#endif

}  // namespace zarrbits::conversion

#ifndef ZARRBITS_WITH_S3
std::vector<std::string> zarrbits::find_s3_sources(const std::string& pattern, const std::string&) {
  throw zarrbits::error(
      errc::unsupported,
      "this zarrbits was built without libcurl and cannot look for \"" + pattern + "\"; build it with -DZARRBITS_S3=ON",
      {pattern});
}
#endif
