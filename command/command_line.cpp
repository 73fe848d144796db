// SPDX-License-Identifier: BSL-1.0
#include "command/command_line.hpp"

#include "command/help.hpp"
#include "text/closest_match.hpp"

#include <zarrbits/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <iterator>
#include <memory>
#include <new>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::command {

namespace {

std::string error_message(int error) { return std::generic_category().message(error); }

// The temporary file that a signal must remove. One at a time: a command writes one file. A plain array, because a signal
// handler may use nothing else.
char temporary_path[4096];
volatile std::sig_atomic_t temporary_set = 0;

extern "C" void remove_temporary(int signal_number) {
  if (temporary_set) ::unlink(temporary_path);
  // the handler was reset on entry (SA_RESETHAND): end as if it had never been there
  ::raise(signal_number);
}

void watch_temporary(const std::string& path) {
  if (path.size() >= sizeof temporary_path) return;
  std::memcpy(temporary_path, path.c_str(), path.size() + 1);
  temporary_set = 1;
  for (const int s : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT}) {
    struct sigaction previous = {};
    if (::sigaction(s, nullptr, &previous) != 0 || previous.sa_handler != SIG_DFL) continue;  // ignored (nohup) stays ignored
    struct sigaction action = {};
    action.sa_handler = remove_temporary;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(s, &action, nullptr);
  }
}

// A name next to the target. The target's name is cut to leave room for the suffix: file systems take 255 bytes.
std::string temporary_name(const std::string& target) {
  const std::size_t begin = target.rfind('/') + 1;  // 0 without a "/"
  std::size_t keep = std::min<std::size_t>(target.size() - begin, 200);
  while (keep > 0 && begin + keep < target.size() && (static_cast<unsigned char>(target[begin + keep]) & 0xC0) == 0x80) --keep;
  return target.substr(0, begin + keep) + ".XXXXXX.partial";
}

void wait_for(int descriptor, short events) {
  pollfd p = {descriptor, events, 0};
  while (::poll(&p, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

int run_guarded(int (*run)(int argc, char** argv), int argc, char** argv) noexcept {
  try {
    const int status = run(argc, argv);
    errno = 0;
    std::cout.flush();
    if (!std::cout || std::fflush(stdout) != 0) {
      if (errno == EPIPE) throw broken_pipe();
      throw command_error("cannot write to standard output" + (errno ? ": " + error_message(errno) : std::string()));
    }
    return status;
  } catch (const broken_pipe&) {
    return exit_failure;
  } catch (const usage_error& e) {
    print_error(e.what());
    return exit_usage;
  } catch (const zarrbits::error& e) {
    print_error(e);
    return e.kind() < errc::value_does_not_fit || e.kind() == errc::invalid_option ? exit_usage : exit_failure;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return exit_failure;
  } catch (const std::exception& e) {
    print_error(e.what());
    return exit_failure;
  } catch (...) {
    print_error("an unknown error stopped the command; please report it");
    return exit_failure;
  }
}

namespace {

// The first argument that is not an option of the command, and the option that was probably meant; empty if all are.
std::string unknown_option(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> flags = flags_of(app);
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view argument = argv[i], name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || std::find(flags.begin(), flags.end(), name) != flags.end()) continue;
    const std::string closest = text::closest_match(name, flags);
    return quote(name) + " is not an option of this command" + (closest.empty() ? "" : "; did you mean " + closest + "?");
  }
  return "";
}

// An empty value is what a script passes that forgot to set a variable. Where a default would take its place, a task of many
// would convert everything.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_items_expected_max() == 0) continue;  // a flag
    const auto& values = o->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    if (o->get_positional()) throw usage_error("a name is empty: a variable of the shell may not be set; pass a file or a store");
    throw usage_error(o->get_name() +
                      " has an empty value: a variable of the shell may not be set; set it, or remove the option");
  }
}

}  // namespace

std::vector<char*> pointers_to(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool can_parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::ParseError&) {
    return false;
  }
}

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv) {
  const std::string name_in_front = app.get_name().substr(app.get_name().find(' ') + 1) + ": ";
  const std::string see_help = "; see \"" + app.get_name() + " --help\"";
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {  // `--output=$EMPTY in` would take `in` for the output
    const std::string_view argument = argv[i];
    if (argument.substr(0, 2) == "--" && argument.size() > 3 && argument.find('=') == argument.size() - 1)
      throw usage_error(name_in_front + quote(argument) + " has no value behind the =; set one, or remove the option");
  }
  try {
    app.parse(argc, argv);
    refuse_empty_values(app);
  } catch (const CLI::CallForHelp&) {
    std::cout << help_of(app, help_columns());
    return exit_success;
  } catch (const CLI::ParseError& e) {
    const std::string unknown = unknown_option(app, argc, argv);
    throw usage_error(name_in_front + (unknown.empty() ? e.what() : unknown) + see_help);
  } catch (const usage_error& e) {
    throw usage_error(name_in_front + e.what());
  }
  return std::nullopt;
}

void add_external_option(CLI::App& app, std::vector<std::string>& external, const std::string& group) {
  app.add_option("--external", external,
                 "Also read other files of the source (external storage, sources of virtual datasets, targets of links in a Zarr "
                 "directory) in folder DIR and below, or, with all, anywhere. Default: only in the source's own folder and "
                 "below. Can be repeated")
      ->type_name("DIR|all")
      ->allow_extra_args(false)
      ->group(group);
}

void add_no_lock_option(CLI::App& app, bool& lock, const std::string& group) {
  app.add_flag_callback(
         "--no-lock", [&lock] { lock = false; },
         "Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written")
      ->group(group);
}

void add_log_format_option(CLI::App& app, const std::string& group) {
  app.add_option_function<std::string>(
         "--log-format", set_log_format,
         "text, or json: each line on standard error is one JSON object with time, level and message, and progress an "
         "occasional line. Without a terminal, progress lines have the time in both formats")
      ->type_name("text|json")
      ->group(group);
}

std::uint64_t parse_count(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error == std::errc::invalid_argument || end != text.data() + text.size()) {
    throw usage_error(option + " is " + quote(text) + ", which is not a count; use decimal digits, such as 1000");
  }
  if (error == std::errc::result_out_of_range) {
    throw usage_error(option + " is " + quote(text) + ", which does not fit in 64 bits; use a smaller count");
  }
  return value;
}

std::size_t read_some(int descriptor, char* data, std::size_t size, const std::string& name) {
  for (;;) {
    const ssize_t n = ::read(descriptor, data, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      wait_for(descriptor, POLLIN);
      continue;
    }
    if (errno == EISDIR) throw command_error("cannot read " + name + ": it is a directory; use a file");
    throw command_error("cannot read " + name + ": " + error_message(errno));
  }
}

void write_all(int descriptor, const char* data, std::size_t size, const std::string& name) {
  while (size > 0) {
    const ssize_t n = ::write(descriptor, data, size);
    if (n >= 0) {
      data += n;
      size -= static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      wait_for(descriptor, POLLOUT);
    } else if (errno == EPIPE) {
      throw broken_pipe();
    } else if (errno != EINTR) {
      throw command_error("cannot write to " + name + ": " + error_message(errno));
    }
  }
}

input_file::input_file(const std::string& path) {
  if (path.empty()) throw usage_error("the name of the input file is empty; use a file, or - for standard input");
  if (path == "-") {
    descriptor_ = STDIN_FILENO;
    name_ = "standard input";
    return;
  }
  name_ = quote(path);
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw command_error("cannot open " + name_ + ": " + error_message(errno));
  struct stat s = {};
  if (::fstat(descriptor_, &s) == 0 && S_ISDIR(s.st_mode)) {
    ::close(descriptor_);
    throw command_error("cannot read " + name_ + ": it is a directory; use a file");
  }
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

input_file::~input_file() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

std::optional<std::uint64_t> input_file::remaining() const noexcept {
  struct stat s = {};
  if (::fstat(descriptor_, &s) != 0 || !S_ISREG(s.st_mode)) return {};
  const off_t position =
      ::lseek(descriptor_, 0, SEEK_CUR);  // standard input may be a file that another program has begun to read
  // a size of 0 says nothing: /proc has files with contents and no size
  if (position < 0 || s.st_size <= 0) return {};
  return position < s.st_size ? static_cast<std::uint64_t>(s.st_size - position) : 0;
}

output_file::output_file(const std::string& path) {
  if (path.empty()) throw usage_error("the name of the output file is empty; use a file, or - for standard output");
  if (path == "-") {
    descriptor_ = STDOUT_FILENO;
    name_ = "standard output";
    return;
  }
  name_ = quote(path);
  target_ = path;
  mode_t mode = 0;
  struct stat s = {};
  if (::stat(path.c_str(), &s) == 0) {
    if (S_ISDIR(s.st_mode)) throw command_error("cannot write " + name_ + ": it is a directory; use a file's name");
    if (!S_ISREG(s.st_mode)) {
      descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor_ < 0) throw command_error("cannot open " + name_ + ": " + error_message(errno));
      return;
    }
    // a symbolic link stays one: its target is replaced
    if (const std::unique_ptr<char, decltype(&std::free)> real{::realpath(path.c_str(), nullptr), &std::free})
      target_ = real.get();
    mode = s.st_mode & 0777;
  } else {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  std::string name = temporary_name(target_);
  // block signals from the file's creation until the handler knows its name
  sigset_t all_signals, old_mask;
  ::sigfillset(&all_signals);
  ::sigprocmask(SIG_SETMASK, &all_signals, &old_mask);
  descriptor_ = ::mkostemps(name.data(), 8, O_CLOEXEC);
  const int error = errno;
  if (descriptor_ >= 0) {
    temporary_ = name;
    watch_temporary(temporary_);
  }
  ::sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  if (descriptor_ < 0) throw command_error("cannot create a file beside " + name_ + ": " + error_message(error));
  if (::fchmod(descriptor_, mode) != 0) {
    // some file systems have no modes; the file's contents do not depend on it
  }
}

output_file::~output_file() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    temporary_set = 0;
  }
}

void output_file::commit() {
  if (descriptor_ < 0) return;
  // network file systems report a full disk here
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) {
    if (errno == EPIPE) throw broken_pipe();
    throw command_error("cannot write to " + name_ + ": " + error_message(errno));
  }
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw command_error("cannot create " + name_ + ": " + error_message(errno));
  temporary_.clear();
  temporary_set = 0;
}

}  // namespace zarrbits::command
