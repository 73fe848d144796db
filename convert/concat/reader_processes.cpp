// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/reader_processes.hpp"

#include "io/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace zarrbits::conversion {

namespace {

constexpr std::size_t min_files_per_process = 16;  // of a process: it has to open the first file, too
constexpr double max_file_seconds = 30;            // seconds of processor time; in a damaged one libhdf5 may never end
constexpr std::uint64_t max_reply_bytes = 1U << 30;

using read_function = reader_processes::read_function;

[[noreturn]] void serve(int pipe, pid_t parent, std::size_t first, std::size_t step, std::size_t files,
                        const std::function<read_function()>& make) noexcept {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (::getppid() != parent) ::_exit(0);  // it was faster
  try {
    const read_function read = make();
    for (std::size_t k = first; k < files; k += step) {
      const std::string reply = to_bytes(read(k));
      const std::uint64_t size = reply.size();
      if (io::write_all(pipe, std::as_bytes(std::span(&size, 1))) != 0 ||
          io::write_all(pipe, std::as_bytes(std::span(reply))) != 0)
        break;
    }
  } catch (...) {  // the caller reads the file, and meets the same
  }
  ::_exit(0);  // nothing that the parent has, too, is flushed or closed here
}

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// False at the end of the pipe, or if its process takes too long.
bool read_all(int pipe, pid_t process, std::span<std::byte> output) {
  const double begin = processor_seconds(process);
  while (!output.empty()) {
    pollfd p{pipe, POLLIN, 0};
    const int ready = ::poll(&p, 1, 1000);
    if (ready == 0 && processor_seconds(process) - begin > max_file_seconds) return false;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(pipe, output.data(), output.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    output = output.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

reader_processes::reader_processes(std::size_t files, unsigned processes, const std::function<read_function()>& make) {
  const std::size_t n = std::min<std::size_t>(processes, files / min_files_per_process);
  if (n < 2) return;
  const pid_t self = ::getpid();
  for (std::size_t i = 0; i < n; ++i) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
    const hdf5::lock::unlock_guard unlocked;  // a child could not release it
    const pid_t child = ends[0] < 0 ? -1 : ::fork();
    if (child == 0) serve(ends[1], self, i + 1, n, files, make);
    if (ends[1] >= 0) ::close(ends[1]);
    if (child < 0 && ends[0] >= 0) ::close(ends[0]);
    processes_.push_back({child, child < 0 ? -1 : ends[0]});
  }
}

reader_processes::~reader_processes() {
  for (process& p : processes_) end(p);
}

void reader_processes::end(process& p) {
  if (p.pipe < 0) return;
  ::close(std::exchange(p.pipe, -1));
  ::kill(p.id, SIGKILL);
  while (::waitpid(p.id, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<file_metadata> reader_processes::take(std::size_t k) {
  if (processes_.empty()) return {};
  process& p = processes_[(k - 1) % processes_.size()];
  if (p.pipe < 0) return {};
  std::uint64_t size = 0;
  if (read_all(p.pipe, p.id, std::as_writable_bytes(std::span(&size, 1))) && size <= max_reply_bytes) {
    std::string reply(static_cast<std::size_t>(size), '\0');
    if (read_all(p.pipe, p.id, std::as_writable_bytes(std::span(reply)))) return from_bytes(reply);
  }
  end(p);
  return {};
}

}  // namespace zarrbits::conversion
