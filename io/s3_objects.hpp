// SPDX-License-Identifier: BSL-1.0
//
// Single objects of any buckets of a server: what they are now, and ranges of them. In a build without S3 there are none.
//
//   s3_objects in_s3(endpoint);
//   if (in_s3.state_of("s3://bucket/in.h5") != as_it_was) ...
//
#ifndef ZARRBITS_IO_S3_OBJECTS_HPP
#define ZARRBITS_IO_S3_OBJECTS_HPP

#include "io/files.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace zarrbits::conversion {

class s3_client;

// For one thread; the clients are thread-safe.
class s3_objects {
 public:
  explicit s3_objects(std::string endpoint) : endpoint_(std::move(endpoint)) {}
  // The client of the bucket of "s3://bucket/key", one for each bucket, and the key in it. Throws zarrbits::error.
  std::pair<s3_client*, std::string> find(const std::string& name);
  // Not regular if there is no such object. Throws zarrbits::error.
  file_state state_of(const std::string& name);
  // Bytes of an object; false if it does not have all of them. Throws zarrbits::error.
  bool read(const std::string& name, std::uint64_t offset, std::span<std::byte> to);

 private:
  std::string endpoint_;
  std::map<std::string, std::shared_ptr<s3_client>> clients_;  // by bucket
};

// The same with the client of a bucket, and a key.
file_state state_in_s3(s3_client& client, const std::string& key);
bool read_from_s3(s3_client& client, const std::string& key, std::uint64_t offset, std::span<std::byte> to);

}  // namespace zarrbits::conversion

#endif
