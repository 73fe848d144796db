// SPDX-License-Identifier: BSL-1.0
//
// One object of an S3 bucket, written piece by piece: a multipart upload if there is more than one part.
//
#ifndef ZARRBITS_ZARR_WRITE_S3_UPLOAD_HPP
#define ZARRBITS_ZARR_WRITE_S3_UPLOAD_HPP

#include "io/s3_client.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

constexpr std::size_t first_part = 16 << 20;  // S3 requires at least 5 MiB, and allows 10,000 parts: later parts are larger

class s3_upload {
 public:
  s3_upload(s3_client& client, std::string whole_key) : client_(client), key_(std::move(whole_key)) {}
  s3_upload(const s3_upload&) = delete;
  s3_upload& operator=(const s3_upload&) = delete;
  ~s3_upload();

  void append(std::span<const std::byte> bytes);
  // Completes the object, and checks it with the server. Throws zarrbits::error.
  void commit();
  std::uint64_t size() const { return size_; }

 private:
  std::size_t part_size() const { return first_part << std::min<std::size_t>(etags_.size() / 1000, 8); }
  void send_part();
  void complete();
  s3_client& client_;
  std::string key_, upload_;
  std::vector<std::byte> part_;
  std::vector<std::string> etags_;
  std::uint64_t size_ = 0;
};

// A PUT in one request. Throws zarrbits::error.
void put_object(s3_client& client, const std::string& whole_key, std::span<const std::byte> bytes);

}  // namespace zarrbits::conversion

#endif
