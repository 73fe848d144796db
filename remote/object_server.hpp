// SPDX-License-Identifier: BSL-1.0
//
// What one kind of server needs, and says, about one object. All else about its ranges is the same for all (ranged_object.cpp).
//
#ifndef ZARRBITS_REMOTE_OBJECT_SERVER_HPP
#define ZARRBITS_REMOTE_OBJECT_SERVER_HPP

#include "io/byte_range.hpp"
#include "remote/request_loop.hpp"

#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zarrbits::remote {

class s3_client;

constexpr const char* modified_prefix = "modified ";

// What a response says of the content, in the form in which stores note it; "" for what it does not say.
struct validators {
  std::string etag = {};
  std::string modified = {};  // begins with modified_prefix

  const std::string& preferred() const { return etag.empty() ? modified : etag; }
};

// What one kind of server needs, and says, about one object. Thread-safe.
class object_server {
 public:
  virtual ~object_server() = default;

  struct request {
    io::byte_range range;
    std::span<std::byte> output;
    const std::string* validator;  // of the state that is requested; null: any
    response_check check;
  };
  // Requests a range. Returns the status of the response that the check accepted: 200, 206 or 416, also if a 200 has more bytes
  // than there is room for. Else 404 or 410 if the server says that the object is absent, or 412 if it is not in the state.
  // Throws zarrbits::error for any other response.
  virtual long get(const request& r) = 0;
  virtual validators validators_of(const http_client::response& got) const = 0;
  // `status`: of the response that says that the object is absent.
  [[noreturn]] virtual void throw_not_found(long status) const = 0;
  // How often the server said that there were too many requests.
  virtual std::uint64_t slowed_down() const = 0;
};

std::unique_ptr<object_server> find_web_server(const std::string& name, const remote_access& remote);  // web_object.cpp
std::unique_ptr<object_server> find_s3_server(const std::string& name, const remote_access& remote);   // s3_object.cpp
std::unique_ptr<object_server> find_s3_server(s3_client& client, const std::string& key);

}  // namespace zarrbits::remote

#endif
