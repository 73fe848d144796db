// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_upload.hpp"

#include "io/files.hpp"
#include "text/base64.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace zarrbits::zarr {

void put_object(remote::s3_client& client, const std::string& whole_key, std::span<const std::byte> bytes) {
  const auto response = client.store({.method = "PUT", .key = whole_key, .body = bytes});
  if (response.status == 404) {
    throw zarrbits::error(errc::not_found,
                          "there is no " + client.settings().bucket_kind() + " \"" + client.settings().bucket + "\" at " +
                              client.settings().url + "; create it, or check `endpoint`",
                          {client.settings().name_of("")});
  }
}

s3_upload::~s3_upload() {
  if (upload_.empty() || client_.settings().is_azure()) return;  // Azure removes blocks that are not used after a week
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

void s3_upload::begin() {
  if (!upload_.empty()) return;
  if (client_.settings().is_azure()) {
    upload_ = io::unique_token();
    return;
  }
  const auto response = client_.send(
      {.method = "POST", .key = key_, .query = {{"uploads", ""}}, .expected_element = "InitiateMultipartUploadResult"});
  const std::string id = response.xml.text_of("UploadId");
  if (response.status == 404 || id.empty() || id.size() > 4096) {
    throw zarrbits::error(errc::server_failed,
                          client_.settings().server_name() + " does not start a multipart upload for \"" + key_ +
                              "\"; check the bucket and `endpoint`",
                          {key_});
  }
  upload_ = id;
}

// All blocks of an object must have names of one length, also those that killed runs left.
std::string s3_upload::block_name(std::size_t number) const {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08zu", number);
  return text::base64(upload_ + digits);
}

std::map<std::string, std::string> s3_upload::next_part() const {
  if (client_.settings().is_azure()) return {{"blockid", block_name(etags_.size())}, {"comp", "block"}};
  return {{"partNumber", std::to_string(etags_.size() + 1)}, {"uploadId", upload_}};
}

void s3_upload::send_part() {
  begin();
  const auto response = client_.store({.method = "PUT", .key = key_, .query = next_part(), .body = part_});
  if (response.status == 404)
    throw zarrbits::error(errc::server_failed,
                          client_.settings().server_name() + " does not accept parts of \"" + key_ + "\"; convert again", {key_});
  etags_.push_back(response.etag);
  part_.clear();
}

namespace {

// The ETag in the response to a copy. Throws zarrbits::error if it is absent: then nothing confirms the copy.
std::string etag_of_copy(const remote::s3_client& client, const remote::s3_client::response& response, const std::string& from,
                         const std::string& to) {
  std::string etag = response.xml.text_of("ETag");
  if (etag.starts_with('"') && etag.ends_with('"') && etag.size() > 1) etag = etag.substr(1, etag.size() - 2);
  if (response.status == 404 || etag.empty() || etag.size() > 1000 || etag.find_first_of("<>&\"") != std::string::npos) {
    throw zarrbits::error(errc::server_failed,
                          client.settings().server_name() + " does not copy \"" + from + "\" to \"" + to + "\"", {to});
  }
  return etag;
}

}  // namespace

void s3_upload::append_copy(const std::string& whole_key, std::uint64_t offset, std::uint64_t size) {
  begin();
  const auto response = client_.send(
      {.method = "PUT",
       .key = key_,
       .query = next_part(),
       .expected_element = "CopyPartResult",
       .headers = {{"x-amz-copy-source", client_.copy_source(whole_key)},
                   {"x-amz-copy-source-range", "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + size - 1)}}});
  etags_.push_back(etag_of_copy(client_, response, whole_key, key_));
  size_ += size;
}

namespace {

// Azure answers at once, and may be copying then. Its copies have any size.
void copy_in_azure(remote::s3_client& client, const std::string& from, const std::string& to, std::uint64_t size) {
  const auto begun = client.send({.method = "PUT", .key = to, .headers = {{"x-amz-copy-source", client.copy_source(from)}}});
  std::string progress;
  double changed = remote::uptime();
  remote::s3_client::response copy;
  for (auto pause = std::chrono::milliseconds(50); begun.status != 404;
       pause = std::min(2 * pause, std::chrono::milliseconds(2000))) {
    copy = client.send({.method = "HEAD", .key = to});
    if (copy.copy_status != "pending") break;
    if (copy.copy_progress != progress) {
      progress = copy.copy_progress;
      changed = remote::uptime();
    }
    if (remote::uptime() - changed > 10 * remote::http_timeout()) break;
    std::this_thread::sleep_for(pause);
  }
  if (copy.copy_status == "success" && copy.length == static_cast<long long>(size)) return;
  throw zarrbits::error(errc::server_failed,
                        client.settings().server_name() + " does not copy \"" + from + "\" to \"" + to + "\"", {to});
}

}  // namespace

void copy_object(remote::s3_client& client, const std::string& from, const std::string& to, std::uint64_t size) {
  if (client.settings().is_azure()) return copy_in_azure(client, from, to, size);
  // a single copy may have 5 GiB, but takes as long as the server likes; 10,000 parts are allowed
  constexpr std::uint64_t min_part = 64 << 20, max_parts = 9000;
  const std::uint64_t part = std::max(min_part, size / max_parts);
  // Google copies objects of any size at once, and has no copies of ranges
  if (size <= part || client.settings().is_google()) {
    const auto response = client.send({.method = "PUT",
                                       .key = to,
                                       .expected_element = "CopyObjectResult",
                                       .headers = {{"x-amz-copy-source", client.copy_source(from)}}});
    etag_of_copy(client, response, from, to);
    return;
  }
  s3_upload upload(client, to);
  for (std::uint64_t offset = 0; offset < size; offset += part) upload.append_copy(from, offset, std::min(part, size - offset));
  upload.commit();
}

remote::s3_client::response s3_upload::join_parts() {
  if (client_.settings().is_azure()) {
    std::string list = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
    for (std::size_t i = 0; i < etags_.size(); ++i) list += "<Latest>" + block_name(i) + "</Latest>";
    list += "</BlockList>";
    return client_.send({.method = "PUT",
                         .key = key_,
                         .query = {{"comp", "blocklist"}},
                         .body = std::as_bytes(std::span(list.data(), list.size()))});
  }
  std::string list = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < etags_.size(); ++i) {
    list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>\"" + etags_[i] + "\"</ETag></Part>";
  }
  list += "</CompleteMultipartUpload>";
  return client_.send({.method = "POST",
                       .key = key_,
                       .query = {{"uploadId", upload_}},
                       .body = std::as_bytes(std::span(list.data(), list.size())),
                       .expected_element = "CompleteMultipartUploadResult"});
}

void s3_upload::complete() {
  const auto response = join_parts();
  // a response of 404 after a lost response: the lost attempt succeeded
  if (response.status == 404 && response.attempts == 1)
    throw zarrbits::error(errc::server_failed,
                          client_.settings().server_name() + " lost the upload of \"" + key_ + "\"; convert again", {key_});
  const auto uploaded = client_.send({.method = "HEAD", .key = key_});
  if (uploaded.status == 404 || uploaded.length != static_cast<long long>(size_)) {
    throw zarrbits::error(
        errc::server_failed,
        client_.settings().server_name() + " joined the parts of \"" + key_ + "\" to " +
            (uploaded.status == 404 ? "nothing" : "an object of " + std::to_string(uploaded.length) + " bytes") + ", not of " +
            std::to_string(size_) + "; convert again",
        {key_});
  }
  upload_.clear();
}

}  // namespace zarrbits::zarr
