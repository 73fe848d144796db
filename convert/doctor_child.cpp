// SPDX-License-Identifier: BSL-1.0
#include "convert/doctor_child.hpp"

#include "convert/command_line.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace zarrbits::cli {

int in_child(const std::string& file, const std::function<int(const std::function<void(const std::string&)>&)>& run) {
  constexpr std::size_t room = 4096;
  void* shared = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* at = shared == MAP_FAILED ? nullptr : static_cast<char*>(shared);
  const pid_t child = ::fork();
  if (child < 0) return run([](const std::string&) {});
  if (child == 0) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    return run([at](const std::string& what) {
      if (!at) return;
      const std::size_t n = std::min(what.size(), room - 1);
      std::memcpy(at, what.data(), n);
      at[n] = '\0';
    });
  }
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended == child && WIFSIGNALED(status)) {
    const std::string where = at && *at ? " while it read " + quote(at) : "";
    throw command_error("libhdf5 ended the process (" + std::string(strsignal(WTERMSIG(status))) + ") in " + quote(file) + where +
                        "; the file is damaged there");
  }
  return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : exit_failure;
}

progress_line::progress_line(const std::string& file, std::uint64_t total)
    : file_(file.substr(file.rfind('/') + 1)), total_(total), on_(::isatty(STDERR_FILENO) != 0) {}

progress_line::~progress_line() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void progress_line::advance(std::uint64_t done, const std::string& at) {
  done_ += done;
  if (!on_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  winsize window{};
  std::size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 20 ? window.ws_col : 80;
  const std::uint64_t percent = total_ == 0 ? 100 : std::min<std::uint64_t>(100, done_ / (total_ / 100 + 1));
  const auto filled = static_cast<std::size_t>(percent / 5);
  const std::string quoted = quote(file_ + "  " + at);  // control characters do not reach the terminal
  std::string line = "[" + std::string(filled, '#') + std::string(20 - filled, '.') + "] " + std::to_string(percent) + " %  " +
                     quoted.substr(1, quoted.size() - 2);
  if (line.size() >= columns) line.resize(columns - 1);
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace zarrbits::cli
