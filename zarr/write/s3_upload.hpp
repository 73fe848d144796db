// SPDX-License-Identifier: BSL-1.0
//
// One object of an S3 bucket, written piece by piece: a multipart upload if there is more than one part.
//
#ifndef ZARRBITS_ZARR_WRITE_S3_UPLOAD_HPP
#define ZARRBITS_ZARR_WRITE_S3_UPLOAD_HPP

#include "remote/s3_client.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::zarr {

constexpr std::size_t first_part = 16 << 20;  // S3 requires at least 5 MiB, and allows 10,000 parts: later parts are larger

class s3_upload {
 public:
  s3_upload(remote::s3_client& client, std::string whole_key) : client_(client), key_(std::move(whole_key)) {}
  s3_upload(const s3_upload&) = delete;
  s3_upload& operator=(const s3_upload&) = delete;
  ~s3_upload();

  void append(std::span<const std::byte> bytes);
  // Bytes of another object of the bucket, which the server copies as a part of their own: at least 5 MiB, unless they are the
  // last ones. Not together with append().
  void append_copy(const std::string& whole_key, std::uint64_t offset, std::uint64_t size);
  // Completes the object, and checks it with the server. Throws zarrbits::error.
  void commit();
  std::uint64_t size() const { return size_; }

 private:
  std::size_t part_size() const { return first_part << std::min<std::size_t>(etags_.size() / 1000, 8); }
  void begin();
  void send_part();
  std::map<std::string, std::string> next_part() const;
  std::string block_name(std::size_t number) const;
  remote::s3_client::response join_parts();
  void complete();
  remote::s3_client& client_;
  std::string key_, upload_;
  std::vector<std::byte> part_;
  std::vector<std::string> etags_;
  std::uint64_t size_ = 0;
};

// A PUT in one request. Throws zarrbits::error.
void put_object(remote::s3_client& client, const std::string& whole_key, std::span<const std::byte> bytes);

// The server copies an object of this size within the bucket; larger ones in several parts. Throws zarrbits::error.
void copy_object(remote::s3_client& client, const std::string& from, const std::string& to, std::uint64_t size);

}  // namespace zarrbits::zarr

#endif
