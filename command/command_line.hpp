// SPDX-License-Identifier: BSL-1.0
//
// What all subcommands share: exit statuses, one-sentence errors, arguments, and files that appear complete or not at all.
//
//   output_file out(path);        // a temporary file beside `path`, or `path` itself if it is a pipe or a device
//   write_all(out.descriptor(), data, size, out.name());
//   out.commit();                 // now it has its name; without commit() nothing stays
//
#ifndef ZARRBITS_COMMAND_COMMAND_LINE_HPP
#define ZARRBITS_COMMAND_COMMAND_LINE_HPP

#include "command/printable.hpp"

#include <zarrbits/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace zarrbits::command {

enum exit_status : int {
  exit_success = 0,
  exit_failure = 1,  // data, files, the machine
  exit_usage = 2,    // the command line, or a configuration in it
  exit_loss = 3,     // done, but something was left out; the output says what
};

// An error of the command line or of a configuration (exit status 2). what() is a sentence without "zarrbits: " in front.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Any other error that has its sentence already (exit status 1).
struct command_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The reader of our output went away. Unix tools end without a word then.
struct broken_pipe : std::runtime_error {
  broken_pipe() : std::runtime_error("the reader of the output is gone") {}
};

// Replaces the names of options in a sentence of the library, such as `keep_going`, by the command's flags: --keep-going.
std::string with_flags(std::string_view sentence);

// Prints "zarrbits: <sentence>" on standard error, always as one line, and with flags.
void print_error(std::string_view sentence) noexcept;
// Like the above, for an error of the library; with --log-format json also its code and its place.
void print_error(const error& e) noexcept;
// Prints text that is not an error on standard error: as it is or, with --log-format json, as a message.
void print_status(std::string_view text);
// A line of the log: {"time": "2026-01-31T12:34:56Z", "level": level, ...} with further members, such as "message".
void write_log_line(const char* level, const nlohmann::ordered_json& members);
// The time of a line of the log: "2026-01-31T12:34:56Z".
std::string time_text();

// Calls `run` and turns whatever it throws into one sentence and an exit status. A failed write to standard output is an error,
// too: a full disk must not look like success.
int run_guarded(int (*run)(int argc, char** argv), int argc, char** argv) noexcept;

// As argv has them, with null at the end; valid as long as the arguments.
std::vector<char*> pointers_to(std::vector<std::string>& arguments);

// Parses argv. A value means that the command is over (its help was printed) with this exit status. Throws usage_error.
std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);
// Whether the command has such options.
bool can_parse(CLI::App& app, int argc, char** argv);

// Adds --external; for all commands that read values of an HDF5 file.
void add_external_option(CLI::App& app, std::vector<std::string>& external, const std::string& group = "Options");
// Adds --no-lock; for all commands that open an HDF5 file.
void add_no_lock_option(CLI::App& app, bool& lock, const std::string& group = "Options");
// Adds --log-format. From where it is parsed, print_error() and print_status() write lines of that kind, also about other
// options.
void add_log_format_option(CLI::App& app, const std::string& group = "Options");
void set_log_format(const std::string& format);  // "text" or "json"; throws usage_error
bool logs_json() noexcept;

// A count in decimal digits ("--elements 1000"): no sign, no base, no exponent. Throws usage_error that names `option`.
std::uint64_t parse_count(const std::string& option, const std::string& text);

// read(2) and write(2) that retry after interrupts and wait for non-blocking descriptors. `name` is for the error's sentence.
// read_some() returns 0 at the end of the input.
std::size_t read_some(int descriptor, char* data, std::size_t size, const std::string& name);
void write_all(int descriptor, const char* data, std::size_t size, const std::string& name);

// A file opened for reading, or standard input for "-".
class input_file {
 public:
  explicit input_file(const std::string& path);
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  const std::string& name() const noexcept { return name_; }  // for sentences

  // Bytes from here to the end, where that is known: of regular files.
  std::optional<std::uint64_t> remaining() const noexcept;

 private:
  int descriptor_ = -1;
  std::string name_;
};

// A file that appears under its name when it is complete. "-" is standard output; an existing pipe or device is written
// directly.
class output_file {
 public:
  explicit output_file(const std::string& path);
  ~output_file();  // removes what was not committed
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  const std::string& name() const noexcept { return name_; }  // for sentences

  void commit();

 private:
  int descriptor_ = -1;
  std::string name_;
  std::string target_;     // where the file goes
  std::string temporary_;  // where it is until then; empty: nothing to rename
};

}  // namespace zarrbits::command

#endif
