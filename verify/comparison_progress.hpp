// SPDX-License-Identifier: BSL-1.0
//
// How far a comparison is. Bytes are those of all elements in memory, also where nothing is stored.
//
//   comparison_progress progress(options.progress);
//   progress.begin({"/a", "/b"}.size(), bytes_of_all);
//   progress.begin_object("/a");
//   progress.add_bytes(4096);            // compared
//   progress.end_object(bytes_of_a);     // also what needed no comparison
//
#ifndef ZARRBITS_VERIFY_COMPARISON_PROGRESS_HPP
#define ZARRBITS_VERIFY_COMPARISON_PROGRESS_HPP

#include <zarrbits/verify.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace zarrbits::verification {

class comparison_progress {
 public:
  explicit comparison_progress(const std::function<void(const verify_progress&)>& report) : report_(report) {}

  // Several files: each counts as one object, and their bytes are not known before.
  void begin_files(std::uint64_t files);
  void end_file();
  // One file or store. Without effect if it is one of several.
  void begin(std::uint64_t objects, std::uint64_t bytes);

  void begin_object(std::string path);
  void add_bytes(std::uint64_t bytes);
  void end_object(std::uint64_t bytes);

  bool is_watched() const { return static_cast<bool>(report_); }

 private:
  void report() const;

  const std::function<void(const verify_progress&)>& report_;
  std::string path_;
  bool by_files_ = false;
  std::uint64_t objects_ = 0, objects_done_ = 0, bytes_ = 0;
  std::uint64_t bytes_before_ = 0, bytes_in_object_ = 0;  // compared
};

}  // namespace zarrbits::verification

#endif
