// SPDX-License-Identifier: BSL-1.0
//
// One object on a server, by HTTP or S3: what it is, and ranges of it. Every response is checked to be of the same content as the
// first one.
//
#ifndef ZARRBITS_REMOTE_REMOTE_OBJECT_HPP
#define ZARRBITS_REMOTE_REMOTE_OBJECT_HPP

#include "io/files.hpp"

#include <zarrbits/remote_access.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zarrbits::remote {

constexpr unsigned max_mismatched_responses = 3;  // attempts whose responses do not belong to the request

// Thread-safe after open().
class remote_object {
 public:
  remote_object() = default;
  remote_object(const remote_object&) = delete;
  remote_object& operator=(const remote_object&) = delete;
  virtual ~remote_object() = default;

  // Finds the object with a request for its beginning, which goes to `head` as far as there is room. Returns its state; its size
  // limits what came. Throws zarrbits::error, also if there is no such object.
  virtual io::file_state open(std::span<std::byte> head) = 0;
  // Bytes of an object that is in this state. Throws zarrbits::error, errc::changed if it is in another.
  virtual void read(const io::file_state& state, std::uint64_t offset, std::span<std::byte> out) = 0;
  // Its state now; not regular if it is absent. Throws zarrbits::error.
  virtual io::file_state current_state() = 0;
  // Servers said that there were too many requests: so often.
  std::uint64_t slowed_down() const { return slowed_down_; }

 protected:
  std::atomic<std::uint64_t> slowed_down_ = 0;
};

// "s3://bucket/key", "https://host/path". Throws zarrbits::error if the name, or this build, is not one for that.
std::unique_ptr<remote_object> find_object(const std::string& name, const remote_access& remote);
std::unique_ptr<remote_object> find_web_object(const std::string& name, const remote_access& remote);  // web_object.cpp
std::unique_ptr<remote_object> find_s3_object(const std::string& name, const remote_access& remote);   // s3_object.cpp

}  // namespace zarrbits::remote

#endif
