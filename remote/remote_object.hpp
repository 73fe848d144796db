// SPDX-License-Identifier: BSL-1.0
//
// One object on a server, by HTTP, S3, or what Google and Azure speak: what it is, and ranges of it. Every response is checked to
// be of the same content as the first one, and to have the bytes that were requested.
//
//   const auto object = find_object("https://host/in.nc", remote);
//   const io::file_state state = object->open(head);
//   object->read(state, 4096, out);
//
#ifndef ZARRBITS_REMOTE_REMOTE_OBJECT_HPP
#define ZARRBITS_REMOTE_REMOTE_OBJECT_HPP

#include "io/files.hpp"

#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zarrbits::remote {

class s3_client;

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
  virtual std::uint64_t slowed_down() const = 0;
};

// "s3://bucket/key", "https://host/path". Throws zarrbits::error if the name, or this build, is not one for that.
std::unique_ptr<remote_object> find_object(const std::string& name, const remote_access& remote);
// An object of a bucket whose client lives longer.
std::unique_ptr<remote_object> find_object(s3_client& client, const std::string& key);

}  // namespace zarrbits::remote

#endif
