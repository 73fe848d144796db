// SPDX-License-Identifier: BSL-1.0
//
// HDF5 files in S3. libhdf5 reads them itself, range by range, if it was built with its read-only S3 driver.
//
#ifndef ZARRBITS_CONVERT_HDF5_S3_SOURCE_HPP
#define ZARRBITS_CONVERT_HDF5_S3_SOURCE_HPP

#include "convert/hdf5/chunk_locator.hpp"
#include "convert/hdf5/h5.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace zarrbits::conversion {

class s3_client;

struct s3_source {
  std::string url;   // name for H5Fopen
  file_state state;  // now
};

// Finds "s3://bucket/key", and sets libhdf5's driver for it. Throws convert_error.
s3_source find_in_s3(const std::string& name, const std::string& endpoint, hid_t access);

// Objects as they are now, those of a bucket over one connection.
class s3_objects {
 public:
  explicit s3_objects(std::string endpoint) : endpoint_(std::move(endpoint)) {}
  // Of "s3://bucket/key"; not regular where there is no such object. Throws convert_error.
  file_state state_of(const std::string& name);
  // Bytes of an object; false where it has not all of them. Throws convert_error.
  bool read(const std::string& name, std::uint64_t offset, std::span<std::byte> to);

 private:
  // The client, and the key in its bucket.
  std::pair<s3_client*, std::string> find(const std::string& name);

  std::string endpoint_;
  std::map<std::string, std::shared_ptr<s3_client>> clients_;  // by bucket
};

}  // namespace zarrbits::conversion

#endif
