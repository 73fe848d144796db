// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_credential_process.hpp"

#include "io/files.hpp"
#include "remote/http_client.hpp"
#include "remote/s3_credential_endpoints.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace zarrbits::remote {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t longest_output = 64 << 10;

// A child that does not outlive this object.
class child {
 public:
  child() = default;
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  // 0, or errno.
  int start(std::vector<std::string> words, int out, int errors) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    sigset_t empty_mask, usual;
    ::sigemptyset(&empty_mask);
    ::sigemptyset(&usual);
    for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &empty_mask);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
    if (error == 0) pid_ = pid;
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    return error;
  }
  // Its status, once it has ended; 0 if other code has already reaped it.
  std::optional<int> ended() {
    int status = 0;
    const pid_t n = ::waitpid(pid_, &status, WNOHANG);
    if (n == 0 || (n < 0 && errno == EINTR)) return {};
    pid_ = -1;
    return n < 0 ? 0 : status;
  }

 private:
  pid_t pid_ = -1;
};

// A pipe to standard error: the program's children may outlive it, and whoever waits for the end of our standard error would wait
// for theirs.
class error_output {
 public:
  // 0, or errno.
  int open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    in_ = io::file_descriptor(ends[0]);
    out_ = io::file_descriptor(ends[1]);
    ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
    return 0;
  }
  ~error_output() { forward(); }
  int descriptor() const { return in_.get(); }  // -1 once it has ended
  int child_end() const { return out_.get(); }
  void close_child_end() { out_.close(); }
  // What is there now.
  void forward() {
    char piece[4096];
    while (in_) {
      const ssize_t n = ::read(in_.get(), piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) in_.close();
      else if (io::write_all(STDERR_FILENO, std::as_bytes(std::span(piece, static_cast<std::size_t>(n)))) != 0) return;
    }
  }

 private:
  io::file_descriptor in_, out_;
};

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
      continue;
    }
    inside = true;
    if (c == '\\') {
      if (++i == command.size()) return {};
      word += command[i];
    } else if (c == '\'' || c == '"') {
      for (++i; i < command.size() && command[i] != c; ++i) {
        const bool escape =
            c == '"' && command[i] == '\\' && i + 1 < command.size() && (command[i + 1] == '"' || command[i + 1] == '\\');
        word += command[escape ? ++i : i];
      }
      if (i == command.size()) return {};
    } else {
      word += c;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

s3_credentials credentials_of_process(const std::string& command, const std::string& profile) {
  const std::string itself = "the credential_process of the profile \"" + profile + "\"";
  const auto fail = [&](const std::string& problem, const std::string& remedy = "run it yourself to see why") {
    throw zarrbits::error(errc::permission_denied, itself + " " + problem + "; " + remedy);
  };
  auto words = split_words(command);
  if (!words || words->empty() || words->front().empty())
    fail("is not a command with closed quotes", "correct it in ~/.aws/config");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(std::string("cannot be started: ") + std::strerror(errno));
  const io::file_descriptor in(ends[0]);
  io::file_descriptor out(ends[1]);
  error_output errors;
  if (const int error = errors.open()) fail(std::string("cannot be started: ") + std::strerror(error));
  child process;
  if (const int error = process.start(std::move(*words), out.get(), errors.child_end()))
    fail(std::string("cannot be started: ") + std::strerror(error), "correct it in ~/.aws/config");
  out.close();
  errors.close_child_end();

  const auto end = clock::now() + std::chrono::milliseconds(static_cast<long>(1000 * http_timeout()));
  const auto remaining = [&] {
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count()));
  };
  const auto late = [&] { fail("did not end within " + std::to_string(static_cast<long>(http_timeout() + 0.5)) + " seconds"); };
  std::string text;
  std::optional<int> status;
  for (char piece[4096];;) {
    pollfd p[2] = {{in.get(), POLLIN, 0}, {errors.descriptor(), POLLIN, 0}};
    const int ready = ::poll(p, 2, std::min(remaining(), 50));
    if (ready < 0 && errno == EINTR) continue;
    if (p[1].revents != 0) errors.forward();
    if (ready == 0 || (ready > 0 && p[0].revents == 0)) {
      // a process that was forked meanwhile may have the other end open: then there is no end of the output
      if ((status = process.ended())) break;
      if (remaining() == 0) late();
      continue;
    }
    const ssize_t n = ready < 0 ? -1 : ::read(in.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece, static_cast<std::size_t>(n));
    if (text.size() > longest_output) fail("prints more than credentials take");
  }
  while (!status && !(status = process.ended())) {  // it may close its output long before
    if (remaining() == 0) late();
    errors.forward();
    ::poll(nullptr, 0, 5);
  }
  if (WIFSIGNALED(*status)) fail(std::string("was ended by a signal: ") + ::strsignal(WTERMSIG(*status)));
  if (WEXITSTATUS(*status) != 0) fail("ended with status " + std::to_string(WEXITSTATUS(*status)));
  const text::json document = text::parse_untrusted_json(text);
  const auto version = document.is_object() ? document.find("Version") : document.end();
  if (document.is_object() && (version == document.end() || *version != 1)) fail("does not print JSON of \"Version\": 1");
  return credentials_in_json(text, "SessionToken", false, itself);
}

}  // namespace zarrbits::remote
