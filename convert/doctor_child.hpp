// SPDX-License-Identifier: BSL-1.0
//
// Damaged files make libhdf5 itself crash. What reads them runs in a child process, so that even then the user gets a sentence.
//
#ifndef ZARRBITS_CONVERT_DOCTOR_CHILD_HPP
#define ZARRBITS_CONVERT_DOCTOR_CHILD_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace zarrbits::cli {

// Calls `run` in a child process and returns its exit status. `run` tells what it is at with the function that it is given.
int in_child(const std::string& file, const std::function<int(const std::function<void(const std::string&)>&)>& run);

// "in.h5  42 %  /group/dataset", redrawn in place, on standard error where that is a terminal; gone at the end.
class progress_line {
 public:
  progress_line(const std::string& file, std::uint64_t total);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  void advance(std::uint64_t done, const std::string& at);

 private:
  std::string file_;
  std::uint64_t total_, done_ = 0;
  bool on_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace zarrbits::cli

#endif
