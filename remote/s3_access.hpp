// SPDX-License-Identifier: BSL-1.0
//
// S3 before the first request. Does nothing in a build without S3.
//
#ifndef ZARRBITS_REMOTE_S3_ACCESS_HPP
#define ZARRBITS_REMOTE_S3_ACCESS_HPP

#include "io/remote_url.hpp"

#include <zarrbits/remote_access.hpp>

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::remote {

// For a program that was asked to end: from now on, the first request to a server that gets no response for a second is the last
// one, and all later ones fail.
void cancel_s3_retries() noexcept;

// `listener` is called, by any thread, with what a request waits for, if that takes more than three seconds: "503 from host,
// again in 8 s, attempt 3 of 10". Null: nobody is told.
void set_wait_listener(std::function<void(const std::string&)> listener);

// Called before sources are opened and a store is begun: finds the credentials of those in S3. Calls `warning` if requests, or
// secrets of sources at http://, go over plain http to another machine. Throws zarrbits::error if there are no credentials.
void init_s3(const std::vector<std::string>& sources, const std::string& store, const remote_access& remote,
             const std::function<void(const std::string&)>& warning);

// For a standalone program that has credentials: disables core dumps of this process, which would contain them.
void prevent_core_dumps() noexcept;

}  // namespace zarrbits::remote

#endif
