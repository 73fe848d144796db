// SPDX-License-Identifier: BSL-1.0
//
// The owner of a target in S3 while it is written: the object `begun` in the folder of the unfinished.
//
#ifndef ZARRBITS_ZARR_WRITE_S3_LOCK_HPP
#define ZARRBITS_ZARR_WRITE_S3_LOCK_HPP

#include "io/s3_client.hpp"

#include <zarrbits/error.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace zarrbits::conversion {

constexpr const char* s3_begun = "begun";   // next to the plan and the journal: says that a store was begun, and by which run
constexpr const char* s3_alive = "alive-";  // and a sign of life, for a run that has nothing else to show

// A change within this many seconds means that a conversion still runs.
double s3_lock_seconds();

// The content of `begun`, for one sink of one run.
std::string s3_mark(std::string_view run, std::string_view sink);
bool s3_is_mark(std::string_view text);
bool s3_is_mark_of(std::string_view text, std::string_view run);

// Seconds since 1970 of "2026-01-31T12:34:56.000Z", or of "Sat, 31 Jan 2026 12:34:56 GMT".
std::optional<double> seconds_of(const std::string& time);

// The key of one of our own objects.
std::string in_unfinished(std::string_view name);

// Shows other processes that this run is alive: while it makes one large chunk, nothing else changes in the store. Stops after an
// hour without any `progress`, so that a run that hangs does not look alive.
class s3_heartbeat {
 public:
  s3_heartbeat(s3_client& client, std::string whole_key, std::function<std::uint64_t()> progress);

 private:
  std::mutex mutex_;
  std::condition_variable_any ends_;
  std::jthread thread_;
};

zarrbits::error s3_taken(const std::string& target);

}  // namespace zarrbits::conversion

#endif
