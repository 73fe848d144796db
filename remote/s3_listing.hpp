// SPDX-License-Identifier: BSL-1.0
//
// Lists the objects of an S3 bucket.
//
#ifndef ZARRBITS_REMOTE_S3_LISTING_HPP
#define ZARRBITS_REMOTE_S3_LISTING_HPP

#include "remote/s3_client.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::remote {

struct s3_entry {
  std::string key;  // whole key, with the prefix
  std::uint64_t size = 0;
  std::string modified;  // "2026-01-31T12:34:56.000Z", by the server's clock
  std::string etag;      // without quotes; "" if the server does not list it
};

constexpr std::size_t no_limit = ~std::size_t{0};

// Calls `callback` with the objects whose keys begin with `start` and continue as keys of stores do: no empty part, no "." and
// "..". The object `start` itself is one of them. Other objects are not ours. With `folders`, all objects of a deeper folder are
// one entry that ends in "/". Stops if `callback` returns false. Throws zarrbits::error if a list never ends.
void for_each_object(s3_client& client, const std::string& start, bool folders, std::size_t limit,
                     const std::function<bool(s3_entry&&)>& callback);

// Aborts the multipart uploads to keys that begin with `start`, as runs that were killed leave them; the server keeps, and
// charges for, their parts. Only those that `is_ours` accepts. What the server refuses stays: its rules for unfinished uploads
// may remove it.
void abort_uploads(s3_client& client, const std::string& start,
                   const std::function<bool(const std::string& key, const std::string& initiated)>& is_ours);

// Like for_each_object(), but returns the entries: at least `limit`, if there are that many.
std::vector<s3_entry> list_objects(s3_client& client, const std::string& start, bool folders, std::size_t limit);

}  // namespace zarrbits::remote

#endif
