// SPDX-License-Identifier: BSL-1.0
//
// A request that is repeated until its response can be used: how often, after which pauses, and the checks of every response,
// whoever the server is. What its words mean is for the derived class to say.
//
#ifndef ZARRBITS_REMOTE_REQUEST_LOOP_HPP
#define ZARRBITS_REMOTE_REQUEST_LOOP_HPP

#include "io/byte_range.hpp"
#include "remote/http_client.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace zarrbits::remote {

// What follows from a response.
enum class next_step {
  accept,       // it is the response
  repeat,       // at once: elsewhere, or with other credentials
  retry,        // after a pause: the server or the network may have failed for a time
  mismatch,     // likewise, but only a few times: it does not belong to the request
  wrong_range,  // likewise: it has other bytes than those of the range
  refuse,       // it is an error
};

// What else is required of a response that could be accepted; may throw.
using response_check = std::function<next_step(const http_client::response&)>;

class request_loop {
 public:
  virtual ~request_loop() = default;

 protected:
  // `slowed_down` counts the responses that say that there were too many requests. `is_known_host`: the server answered before.
  request_loop(const io::byte_range& range, bool is_known_host, std::atomic<std::uint64_t>& slowed_down)
      : range_(range), is_known_host_(is_known_host), slowed_down_(slowed_down) {}
  request_loop(const request_loop&) = delete;
  request_loop& operator=(const request_loop&) = delete;

  // Returns when a response was accepted. Throws zarrbits::error.
  void run();
  unsigned attempts() const { return tries_.attempts(); }
  std::string attempts_text() const { return tries_.attempts_text(); }

  // For those who wait.
  virtual std::string server() const = 0;
  // One attempt.
  virtual http_client::response send(double timeout) = 0;
  // A 206 that is accepted has the bytes of the range; that is checked later.
  virtual next_step judge(http_client::response& got) = 0;
  // Throws zarrbits::error.
  [[noreturn]] virtual void refuse(const http_client::response& got) = 0;
  // Like refuse(), for wrong_range. `reason`: which bytes the response has, and which were requested.
  [[noreturn]] virtual void refuse_range(const http_client::response& got, const std::string& reason) = 0;

 private:
  const io::byte_range range_;
  const bool is_known_host_;
  std::atomic<std::uint64_t>& slowed_down_;
  retry_policy tries_;
};

}  // namespace zarrbits::remote

#endif
