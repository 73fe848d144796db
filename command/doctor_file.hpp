// SPDX-License-Identifier: BSL-1.0
//
// What our filters did in a file: their parameters in words, the chunks that are stored raw and why, the bytes saved.
//
#ifndef ZARRBITS_COMMAND_DOCTOR_FILE_HPP
#define ZARRBITS_COMMAND_DOCTOR_FILE_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::doctor {

struct raw_chunk {
  std::vector<std::uint64_t> origin;
  std::string why;
};

struct filtered_dataset {
  std::string path;
  std::string filter;              // "packbits" or "bytes"
  std::string parameters;          // in words
  std::vector<std::string> after;  // names of the filters after ours
  bool mandatory = false;
  std::vector<std::uint64_t> chunk;
  std::uint64_t chunks = 0;               // stored
  std::uint64_t raw = 0;                  // of them, without the filter
  std::vector<raw_chunk> shown;           // the first of the raw ones
  std::uint64_t decoded = 0, stored = 0;  // bytes of the stored chunks
  std::string problem;                    // what is wrong with it, or ""
};

struct file_report {
  std::uint64_t datasets = 0;  // in the file, of all kinds
  std::vector<filtered_dataset> ours;
  std::vector<std::string> unreadable;  // objects, with the reason
};

// `lock`: as convert_options has it.
file_report examine(const std::string& path, bool lock,
                    const std::function<void(const std::string& object, std::uint64_t number, std::uint64_t of)>& at);

}  // namespace zarrbits::doctor

#endif
