// SPDX-License-Identifier: BSL-1.0
//
// Protects a process's S3 keys before it reads an untrusted file. Does nothing in a build without S3.
//
#ifndef ZARRBITS_IO_S3_ACCESS_HPP
#define ZARRBITS_IO_S3_ACCESS_HPP

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// True if a store or a source is "s3://...".
bool is_s3(const std::string& name);

// The first step of a program that reads untrusted files and writes to S3. Moves AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN out of the environment into memory outside the heap; child processes do not inherit them either.
void take_s3_keys();

// For a program that was asked to end: from now on, the first request to an S3 server that gets no response for a second is the
// last one, and all later ones fail.
void hurry_s3() noexcept;

// Called in the process that decodes, before it opens the source. Of the keys from take_s3_keys(), it keeps only what signs
// requests to this store; it drops the secret key, unless libhdf5 needs it to read one of the sources from S3. Calls `warning` if
// requests go over plain http to another machine. Throws zarrbits::error.
void prepare_s3(const std::vector<std::string>& sources, const std::string& store, const std::string& endpoint,
                const std::function<void(const std::string&)>& warning);

bool any_in_s3(const std::vector<std::string>& names);

}  // namespace zarrbits::conversion

#endif
