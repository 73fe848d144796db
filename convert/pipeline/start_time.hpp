// SPDX-License-Identifier: BSL-1.0
//
// When a conversion began, on both clocks.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_START_TIME_HPP
#define ZARRBITS_CONVERT_PIPELINE_START_TIME_HPP

#include <chrono>
#include <ctime>
#include <string>

namespace zarrbits::conversion {

struct start_time {
  std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
  std::time_t utc = std::time(nullptr);

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - steady).count(); }
  std::string text() const {
    std::tm parts{};
    ::gmtime_r(&utc, &parts);
    char out[32];
    return {out, std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &parts)};
  }
};

}  // namespace zarrbits::conversion

#endif
