// SPDX-License-Identifier: BSL-1.0
//
// The progress of a command, on standard error: on a terminal one line that is redrawn in place, elsewhere a new line now and
// then.
//
//   progress p;
//   p.update({.done = 3, .total = 10, .path = "/a/b"});
//
#ifndef ZARRBITS_COMMAND_PROGRESS_HPP
#define ZARRBITS_COMMAND_PROGRESS_HPP

#include "command/terminal.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace zarrbits::command {

struct progress_state {
  std::uint64_t done = 0, total = 0;  // bytes, or whatever is counted
  bool bytes = false;                 // then their rate is shown
  std::uint64_t objects_done = 0, objects = 0;
  std::string path = {};      // the current object
  std::uint64_t resumed = 0;  // of `done`: by earlier runs, in no time of this one
};

class progress {
 public:
  // Draws nothing if `quiet`. Without a terminal, ZARRBITS_PROGRESS_SECONDS in the environment sets the time between two lines; 0
  // means none. If ZARRBITS_PROGRESS_FD names a descriptor of this process, it gets lines of JSON instead, for programs, `quiet`
  // or not: {"done": n, "total": n, "objects_done": n, "objects": n, "path": "/a"}, with "waiting" while a server is waited for.
  // The last line has the final counts.
  explicit progress(bool quiet = false);
  ~progress();  // the line on the terminal is gone
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  // Thread-safe.
  void update(const progress_state& s);
  bool is_visible() const noexcept { return interval_.count() > 0; }

 private:
  using clock = std::chrono::steady_clock;
  terminal screen_;
  std::chrono::milliseconds interval_{0};  // 0: nothing is shown
  clock::time_point started_ = clock::now(), last_ = started_;
  bool drawn_ = false;
  int descriptor_ = -1;  // of ZARRBITS_PROGRESS_FD
  progress_state state_;
  std::mutex mutex_;
  void draw(const progress_state& s, const std::string& wait);
  void show_wait(const std::string& text);
  void write_line(const std::string& wait = {}) const;
};

// "12 s", "3 min 05 s", "2 h 10 min"
std::string duration_text(double seconds);

}  // namespace zarrbits::command

#endif
