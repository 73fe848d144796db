// SPDX-License-Identifier: BSL-1.0
#include "verify/comparison_progress.hpp"

#include <algorithm>

namespace zarrbits::verification {

void comparison_progress::begin_files(std::uint64_t files) {
  by_files_ = true;
  objects_ = files;
}

void comparison_progress::end_file() {
  ++objects_done_;
  report();
}

void comparison_progress::begin(std::uint64_t objects, std::uint64_t bytes) {
  if (by_files_) return;
  objects_ = objects;
  bytes_ = bytes;
}

void comparison_progress::begin_object(std::string path) {
  path_ = std::move(path);
  report();
}

void comparison_progress::add_bytes(std::uint64_t bytes) {
  bytes_in_object_ += bytes;
  report();
}

void comparison_progress::end_object(std::uint64_t bytes) {
  bytes_before_ += bytes_ > 0 ? bytes : bytes_in_object_;
  bytes_in_object_ = 0;
  if (!by_files_) ++objects_done_;
  report();
}

// Targets of links, which no total includes, may be compared beside the objects.
void comparison_progress::report() const {
  if (!report_) return;
  const std::uint64_t done = bytes_before_ + bytes_in_object_;
  report_({path_, std::min(objects_done_, objects_), objects_, bytes_ > 0 ? std::min(done, bytes_) : done, bytes_});
}

}  // namespace zarrbits::verification
