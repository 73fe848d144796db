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
#include <iterator>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace zarrbits::command {

namespace {

// What parent and child share.
struct shared_state {
  std::atomic<std::uint64_t> steps;
  char path[4096];
};

double seconds_from_environment(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  const double seconds = value ? std::strtod(value, nullptr) : 0;
  return seconds > 0 ? seconds : otherwise;
}

// Seconds of processor time within which the child must report a step; the environment may set a different number, for chunks of
// many gigabytes on slow machines.
double max_processor_seconds(bool started) {
  return seconds_from_environment("ZARRBITS_STALLED_AFTER",
                                  started ? 100 : 1000);  // the names of a million objects are listed before the first step
}

// Seconds within which something must happen. A process that waits for a dead mount takes no processor time; but tapes
// and servers that restart take long, too.
double max_silence() { return seconds_from_environment("ZARRBITS_SILENT_AFTER", 3600); }

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
volatile std::sig_atomic_t caught = 0;

extern "C" void note_signal(int signal) {
  if (!caught) caught = signal;
}

bool is_ending_signal(int signal) {
  return std::find(std::begin(ending_signals), std::end(ending_signals), signal) != std::end(ending_signals);
}

// From its construction on, the signals that end us are blocked; they are noted while poll() waits, and never in between.
class signal_blocker {
 public:
  signal_blocker() {
    caught = 0;
    sigset_t blocked;
    ::sigemptyset(&blocked);
    struct sigaction note = {};
    note.sa_handler = note_signal;
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
      ::sigaction(ending_signals[i], nullptr, &previous_[i]);
      if (previous_[i].sa_handler == SIG_IGN) continue;  // nohup
      ::sigaddset(&blocked, ending_signals[i]);
      ::sigaction(ending_signals[i], &note, nullptr);
    }
    ::sigprocmask(SIG_BLOCK, &blocked, &mask_);
  }
  ~signal_blocker() { restore(); }
  signal_blocker(const signal_blocker&) = delete;
  signal_blocker& operator=(const signal_blocker&) = delete;

  // As it was before; for the child, too.
  void restore() {
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) ::sigaction(ending_signals[i], &previous_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  // What poll() returns, or -1 after a signal.
  int poll(int descriptor, long seconds) const {
    pollfd p{descriptor, POLLIN, 0};
    const timespec t{seconds, 0};
    return ::ppoll(&p, 1, &t, &mask_);
  }
  // Ends this process with the status that shells know.
  [[noreturn]] void terminate_by(int signal) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);  // SIGQUIT: nothing of interest is in this process
    std::signal(signal, SIG_DFL);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signal);
    ::_exit(128 + signal);  // the first process of a container does not die of signals
  }

 private:
  struct sigaction previous_[std::size(ending_signals)] = {};
  sigset_t mask_ = {};
};

enum class ending { exited, stalled, silent, interrupted };

// Waits for the child's end, which closes its end of the pipe. In damaged files libhdf5 may follow a ring of addresses forever,
// and a dead mount may never answer: then, and after a signal, the child is killed.
ending watch(pid_t child, int pipe, const shared_state* shared, const signal_blocker& signals) {
  std::uint64_t steps = 0;
  double last_step = 0, last_used = 0, silence = 0;
  for (;;) {
    const int n = signals.poll(pipe, 1);
    ending end = ending::exited;
    if (caught) {
      end = ending::interrupted;
    } else if (n > 0 || (n < 0 && errno != EINTR)) {
      return end;
    } else if (n < 0) {
      continue;
    } else {
      // seconds are counted here, and not read from a clock: those in which everything was stopped (Ctrl-Z, a laptop asleep) do
      // not count
      const double used_seconds = processor_seconds(child);
      silence = used_seconds - last_used < 1e-3 ? silence + 1 : 0;
      last_used = used_seconds;
      if (!shared || shared->steps != steps) {
        steps = shared ? shared->steps.load() : 0;
        last_step = used_seconds;
        silence = 0;
      }
      if (steps > 0 && !*shared->path) continue;
      if (used_seconds - last_step > max_processor_seconds(steps > 0)) end = ending::stalled;
      else if (silence >= max_silence()) end = ending::silent;
      else continue;
    }
    ::kill(child, SIGKILL);
    return end;
  }
}

// The status of a child that is about to end. Empty if it does not end: a process that waits for a dead disk cannot be killed.
std::optional<int> status_of(pid_t child, bool killed) {
  int status = 0;
  for (int tries = 0; killed && tries < 100; ++tries) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    ::poll(nullptr, 0, 100);
  }
  if (killed) return {};
  pid_t ended = 0;
  do ended = ::waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended == child) return status;
  return {};
}

}  // namespace

void exit_with_parent(int parent) {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (::getppid() != parent) ::_exit(exit_failure);  // it was faster
}

int run_in_subprocess(const std::string& file, const std::function<int(const std::function<void(const std::string&)>&)>& run,
                      const std::function<void(bool interrupted)>& clean_up) {
  void* mapped = ::mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared_state* shared = mapped == MAP_FAILED ? nullptr : new (mapped) shared_state{};
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw command_error("cannot make a pipe: " + std::string(std::strerror(errno)));
  signal_blocker signals;
  const pid_t self = ::getpid(), child = ::fork();
  if (child < 0) throw command_error("cannot start the process that reads " + quote(file) + ": " + std::strerror(errno));
  if (child == 0) {
    exit_with_parent(self);
    signals.restore();
    ::close(ends[0]);  // the other end stays open until the child is gone
    return run([shared](const std::string& path) {
      if (!shared) return;
      const std::size_t n = std::min(path.size(), sizeof shared->path - 1);
      std::memcpy(shared->path, path.data(), n);
      shared->path[n] = '\0';
      ++shared->steps;
    });
  }
  ::close(ends[1]);
  const ending end = watch(child, ends[0], shared, signals);
  ::close(ends[0]);
  const std::optional<int> status = status_of(child, end != ending::exited);
  if (status && WIFEXITED(*status)) return WEXITSTATUS(*status);
  const int signal = status ? WTERMSIG(*status) : SIGKILL;
  const bool ended_from_outside = end == ending::exited && (is_ending_signal(signal) || signal == SIGKILL || signal == SIGXCPU);
  // a child that waits for a dead disk prevents the removal of what it has open there
  if (status && clean_up) clean_up(end == ending::interrupted || ended_from_outside);
  if (end == ending::interrupted) signals.terminate_by(caught);
  if (end == ending::exited && is_ending_signal(signal)) signals.terminate_by(signal);
  const std::string path = shared ? shared->path : "";
  const bool is_file = !path.empty() && (path[0] != '/' || path.starts_with("//"));
  const std::string location = path.empty() || is_file ? "" : " at object " + quote(path);
  const std::string named = !is_file ? file : path[0] == '/' ? path.substr(1) : path;
  if (end == ending::stalled) {
    throw command_error(
        "gave up" + location + " of " + quote(named) +
        " after much processor time without progress; libhdf5 may loop forever in an incomplete or corrupt file. If the file is "
        "merely large, set ZARRBITS_STALLED_AFTER to more seconds");
  }
  if (end == ending::silent) {
    throw command_error("no progress" + location + " of " + quote(named) +
                        "; a disk, a server or a pipe that it waits for does not respond, or "
                        "ZARRBITS_SILENT_AFTER must allow more seconds of waiting");
  }
  if (signal == SIGKILL || signal == SIGXCPU) {
    throw command_error("the process that reads the file was ended from outside (" + std::string(strsignal(signal)) + ")" +
                        location + " of " + quote(named) + "; probably out of memory, a resource limit, or a user");
  }
  throw command_error("libhdf5 or zarrbits crashed (" + std::string(strsignal(signal)) + ")" + location + " of " + quote(named) +
                      "; the file is damaged there, or this libhdf5 cannot read it: try a newer one");
}

}  // namespace zarrbits::command
