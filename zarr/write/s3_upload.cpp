// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_upload.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>

namespace zarrbits::conversion {

void put_object(s3_client& client, const std::string& whole_key, std::span<const std::byte> bytes) {
  const auto answer = client.store({.method = "PUT", .key = whole_key, .body = bytes});
  if (answer.status == 404) {
    throw zarrbits::error(errc::not_found,
                          "there is no S3 bucket \"" + client.settings().bucket + "\" at " + client.settings().url +
                              "; create it, or check `endpoint`",
                          {"s3://" + client.settings().bucket});
  }
}

s3_upload::~s3_upload() {
  if (upload_.empty()) return;
  try {
    client_.send({.method = "DELETE", .key = key_, .query = {{"uploadId", upload_}}});
  } catch (...) {  // the server's rules for unfinished uploads remove it
  }
}

void s3_upload::append(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), part_size() - part_.size());
    part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (part_.size() == part_size() && !bytes.empty()) send_part();
  }
}

void s3_upload::commit() {
  if (upload_.empty()) return put_object(client_, key_, part_);
  if (!part_.empty()) send_part();
  complete();
}

void s3_upload::send_part() {
  if (upload_.empty()) {
    const auto answer =
        client_.send({.method = "POST", .key = key_, .query = {{"uploads", ""}}, .answer = "InitiateMultipartUploadResult"});
    const std::string id = answer.xml.text_of("UploadId");
    if (answer.status == 404 || id.empty() || id.size() > 4096) {
      throw zarrbits::error(
          errc::server_failed,
          "the S3 server does not start a multipart upload for \"" + key_ + "\"; check the bucket and `endpoint`", {key_});
    }
    upload_ = id;
  }
  const auto answer = client_.store({.method = "PUT",
                                     .key = key_,
                                     .query = {{"partNumber", std::to_string(etags_.size() + 1)}, {"uploadId", upload_}},
                                     .body = part_});
  if (answer.status == 404)
    throw zarrbits::error(errc::server_failed, "the S3 server does not accept parts of \"" + key_ + "\"; convert again", {key_});
  etags_.push_back(answer.etag);
  part_.clear();
}

void s3_upload::complete() {
  std::string list = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < etags_.size(); ++i) {
    list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>\"" + etags_[i] + "\"</ETag></Part>";
  }
  list += "</CompleteMultipartUpload>";
  const auto answer = client_.send({.method = "POST",
                                    .key = key_,
                                    .query = {{"uploadId", upload_}},
                                    .body = std::as_bytes(std::span(list.data(), list.size())),
                                    .answer = "CompleteMultipartUploadResult"});
  // an answer of 404 after a lost answer: the lost attempt succeeded
  if (answer.status == 404 && answer.attempts == 1)
    throw zarrbits::error(errc::server_failed, "the S3 server lost the upload of \"" + key_ + "\"; convert again", {key_});
  const auto there = client_.send({.method = "HEAD", .key = key_});
  if (there.status == 404 || there.length != static_cast<long long>(size_)) {
    throw zarrbits::error(errc::server_failed,
                          "the S3 server joined the parts of \"" + key_ + "\" to " +
                              (there.status == 404 ? "nothing" : "an object of " + std::to_string(there.length) + " bytes") +
                              ", not of " + std::to_string(size_) + "; convert again",
                          {key_});
  }
  upload_.clear();
}

}  // namespace zarrbits::conversion
