// SPDX-License-Identifier: BSL-1.0
//
// Processes that read the metadata of many files at the same time: libhdf5 has one lock for a whole process, and disks and
// servers far away take their time for each file. Nothing depends on them: a file whose reader crashes, or does not end, is to be
// read by the caller, who then learns the reason.
//
//   reader_processes child_readers(names.size(), 4, [&] { return [reader = ...](std::size_t k) { return reader->read(k); }; });
//   for (std::size_t k = 1; k < names.size(); ++k) {
//     auto metadata = child_readers.take(k);
//     if (!metadata) metadata = local_reader.read(k);
//   }
//
#ifndef ZARRBITS_CONVERT_CONCAT_READER_PROCESSES_HPP
#define ZARRBITS_CONVERT_CONCAT_READER_PROCESSES_HPP

#include "convert/concat/file_metadata.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace zarrbits::conversion {

class reader_processes {
 public:
  using read_function = std::function<file_metadata(std::size_t k)>;

  // Begins to read files 1 to `files` - 1. Each process calls `make` once, and opens files of its own there: two processes cannot
  // share an open one. With fewer than 2 processes, or too few files for them, none is started.
  reader_processes(std::size_t files, unsigned processes, const std::function<read_function()>& make);
  ~reader_processes();  // ends them
  reader_processes(const reader_processes&) = delete;
  reader_processes& operator=(const reader_processes&) = delete;

  // The next file, from 1 on; waits for it. Nothing: it has to be read here.
  std::optional<file_metadata> take(std::size_t k);

 private:
  struct process {
    pid_t id = -1;
    int pipe = -1;  // -1: ended
  };
  static void end(process& p);

  std::vector<process> processes_;  // file k is that of process (k - 1) % n
};

}  // namespace zarrbits::conversion

#endif
