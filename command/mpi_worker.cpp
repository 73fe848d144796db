// SPDX-License-Identifier: BSL-1.0
#include "command/mpi_worker.hpp"

#include "command/child_process.hpp"
#include "command/combined_source.hpp"
#include "command/command_line.hpp"
#include "command/convert_arguments.hpp"
#include "command/location.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zarrbits::command {

namespace {

// Lines between the two: "start RANK SIZE", answered by "status N" or by "unit DATASET NUMBER PATH"... and "ready"; "unit ..." by
// "made" or "failed WHY"; "leave" by "left"; "finish" by "status N".
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "\n";
}

convert_worker::unit parse_unit(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  convert_worker::unit u;
  in >> word >> u.dataset >> u.number;
  in.get();
  std::getline(in, u.path);
  return u;
}

}  // namespace

mpi_worker::mpi_worker(int argc, char** argv) {
  folder_ = combined_source::new_folder();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw command_error("cannot make a pipe");
  const pid_t self = ::getpid();
  child_ = ::fork();
  if (child_ == 0) {
    exit_with_parent(self);  // mpirun ends the ranks
    ::close(ends[0]);
    fd_ = ends[1];
    serve(argc, argv);
  }
  ::close(ends[1]);
  fd_ = ends[0];
  if (child_ < 0) gone_ = true;
}

mpi_worker::~mpi_worker() {
  ::close(fd_);  // the child ends when it reads that
  if (child_ > 0) ::waitpid(child_, nullptr, 0);
  std::error_code e;
  std::filesystem::remove_all(folder_, e);
}

void mpi_worker::say(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the other end is gone, which the next read reports
    done += static_cast<std::size_t>(n);
  }
}

std::optional<std::string> mpi_worker::line(int milliseconds) {
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      std::string l = read_.substr(0, end);
      read_.erase(0, end + 1);
      return l;
    }
    if (gone_) return {};
    pollfd p{fd_, POLLIN, 0};
    const int ready = ::poll(&p, 1, milliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return {};
    char some[4096];
    const ssize_t n = ::read(fd_, some, sizeof some);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) gone_ = true;
    else read_.append(some, static_cast<std::size_t>(n));
  }
}

std::string mpi_worker::ending() {
  int status = 0;
  if (child_ > 0 && ::waitpid(child_, &status, 0) == child_ && WIFSIGNALED(status)) {
    child_ = -1;
    return std::string("libhdf5 or zarrbits crashed (") + strsignal(WTERMSIG(status)) + ")";
  }
  child_ = -1;
  return "its process ended";
}

int mpi_worker::start(int rank, int size) {
  say("start " + std::to_string(rank) + " " + std::to_string(size) + "\n");
  for (;;) {
    const auto l = line(-1);
    if (!l) {
      print_error("rank " + std::to_string(rank) + ": " + ending() + " before the work began");
      return exit_failure;
    }
    if (l->starts_with("status ")) return std::atoi(l->c_str() + 7);
    if (*l == "ready") return -1;
    units_.push_back(*l);
  }
}

void mpi_worker::begin(const std::string& unit) {
  unit_ = unit;
  say(unit + "\n");
}

std::optional<std::string> mpi_worker::answer(std::chrono::milliseconds time) {
  const auto l = line(static_cast<int>(time.count()));
  if (l) return *l == "made" ? "" : l->substr(std::min(l->size(), std::strlen("failed ")));
  if (!gone_) return {};
  const convert_worker::unit u = parse_unit(unit_);
  return "!" + ending() + " in unit " + std::to_string(u.number) + " of dataset " + quote(u.path);
}

std::string mpi_worker::wait() { return *answer(std::chrono::milliseconds(-1)); }

void mpi_worker::leave() {
  say("leave\n");
  line(-1);  // or it is gone
}

int mpi_worker::finish() {
  say("finish\n");
  const auto l = line(-1);
  if (l && l->starts_with("status ")) return std::atoi(l->c_str() + 7);
  print_error(ending() + " while it wrote the metadata; run the same command with --resume to continue");
  return exit_failure;
}

// In the child: until the other end is closed.
void mpi_worker::serve(int argc, char** argv) {
  static convert_arguments arguments;
  static std::optional<combined_source> combined;
  static std::optional<convert_worker> work;
  static mpi_worker* self = nullptr;
  self = this;
  const auto next = [&] {
    auto l = line(-1);
    if (!l) std::_Exit(0);
    return *l;
  };
  const auto status = [&](int s) {
    std::fflush(nullptr);
    say("status " + std::to_string(s) + "\n");
    std::_Exit(0);
  };
  int rank = 0, size = 1;
  std::istringstream(next().substr(6)) >> rank >> size;
  if (rank != 0) {  // rank 0 has said it
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO), ::dup2(nowhere, STDOUT_FILENO);
  }
  const auto parse = [](int count, char** values) -> int {
    std::vector<std::string> names = with_location_names(count, values);
    std::vector<char*> pointers = pointers_to(names);
    return parse_convert_arguments(arguments, convert_kind::mpi, count, pointers.data()).value_or(-1);
  };
  if (const int over = run_guarded(parse, argc, argv); over >= 0) status(over);
  arguments.options.execution.partition = partition{static_cast<unsigned>(rank), static_cast<unsigned>(size)};
  combined.emplace(arguments.combination, folder_);
  arguments.options.source.is_temporary = combined->is_used();
  if (const auto write = arguments.options.execution.before_done; write && combined->is_used())
    arguments.options.execution.before_done = [write](const convert_result& result) { write(combined->described(result)); };
  const auto open = [](int, char**) -> int {
    convert_options& o = arguments.options;
    // each rank on its own: the name of the file follows from the files and their states
    combined->replace(o.source.name, o.source.concat, o.target.base, o.source.external, o.remote, o.source.lock,
                      arguments.quiet || o.execution.partition->index != 0, [](const std::string&) {});
    if (o.execution.partition->index == 0 && o.target.existing == existing_store::resume && is_up_to_date(arguments))
      return exit_success;
    if (o.execution.partition->index == 0) begin_store(o);  // from then on all join
    work.emplace(o);
    if (o.execution.partition->index == 0) {
      for (const auto& u : work->missing())
        self->say(one_line("unit " + std::to_string(u.dataset) + " " + std::to_string(u.number) + " " + u.path));
    }
    return -1;
  };
  if (const int over = run_guarded(open, 0, nullptr); over >= 0) status(over);
  say("ready\n");
  for (;;) {
    const std::string l = next();
    if (l == "finish") {
      status(run_guarded(
          [](int, char**) -> int {
            arguments.options.execution.partition.reset();
            return print_result(arguments, combined->described(finalize(arguments.options)));
          },
          0, nullptr));
    }
    if (l == "leave") {
      work.reset();
      say("left\n");
      continue;
    }
    const convert_worker::unit u = parse_unit(l);
    std::string answer = "made\n";
    try {
      work->make(u);
    } catch (const std::exception& e) {
      answer = one_line("failed unit " + std::to_string(u.number) + " of dataset " + quote(u.path) + ": " + e.what());
    }
    say(answer);
  }
}

}  // namespace zarrbits::command
