// SPDX-License-Identifier: BSL-1.0
#include "command/child_process.hpp"

#include "command/command_line.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace zarrbits::cli {

namespace {

// What parent and child share.
struct board {
  std::atomic<std::uint64_t> steps;
  char at[4096];
};

// Seconds of processor time in which a step has to come; the environment may say another number, for chunks of many gigabytes on slow machines.
double patience(bool started) {
  const char* given = std::getenv("ZARRBITS_STALLED_AFTER");
  const double seconds = given ? std::strtod(given, nullptr) : 0;
  if (seconds > 0) return seconds;
  return started ? 100 : 1000;  // the names of a million objects are listed before the first step
}

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Waits for the child's end, which closes its end of the pipe. In damaged files libhdf5 may follow a ring of addresses for ever: true where
// the child had to be killed for that.
bool watch(pid_t child, int pipe, const board* shared) {
  std::uint64_t steps = 0;
  double since = 0;
  for (;;) {
    pollfd end{pipe, POLLIN, 0};
    const int n = ::poll(&end, 1, 1000);
    if (n > 0 || (n < 0 && errno != EINTR)) return false;
    const double now = processor_seconds(child);
    if (!shared || shared->steps != steps) {
      steps = shared ? shared->steps.load() : 0;
      since = now;
    } else if (now - since > patience(steps > 0)) {
      ::kill(child, SIGKILL);
      return true;
    }
  }
}

}  // namespace

int in_child(const std::string& file, const std::function<int(const std::function<void(const std::string&)>&)>& run,
             const std::function<void()>& clean_up) {
  void* mapped = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  board* shared = mapped == MAP_FAILED ? nullptr : new (mapped) board{};
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  const pid_t child = ::fork();
  if (child < 0) return run([](const std::string&) {});
  if (child == 0) {
    if (ends[0] >= 0) ::close(ends[0]);  // the other end stays open until the child is gone
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    return run([shared](const std::string& what) {
      if (!shared) return;
      const std::size_t n = std::min(what.size(), sizeof shared->at - 1);
      std::memcpy(shared->at, what.data(), n);
      shared->at[n] = '\0';
      ++shared->steps;
    });
  }
  // an interrupt from the terminal reaches both; the child's end decides
  std::signal(SIGINT, SIG_IGN);
  bool stalled = false;
  if (ends[0] >= 0) {
    ::close(ends[1]);
    stalled = watch(child, ends[0], shared);
    ::close(ends[0]);
  }
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended == child && WIFEXITED(status)) return WEXITSTATUS(status);
  if (clean_up) clean_up();
  const int signal = WTERMSIG(status);
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  const std::string where = shared && *shared->at ? " at object " + quote(shared->at) : "";
  if (stalled) {
    throw command_error("libhdf5 does not come to an end" + where + " of " + quote(file) +
                        "; the file is damaged there, or ZARRBITS_STALLED_AFTER has to allow more seconds of processor time without progress");
  }
  throw command_error("libhdf5 or zarrbits crashed (" + std::string(strsignal(signal)) + ")" + where + " of " + quote(file) +
                      "; the file is damaged there, or this libhdf5 cannot read it: try a newer one");
}

}  // namespace zarrbits::cli
