// SPDX-License-Identifier: BSL-1.0
//
// The `zarrbits` command: finds the subcommand and runs it.
//
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/location.hpp"
#include "command/remote_options.hpp"
#include "remote/remote_file.hpp"
#include "text/closest_match.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/version.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <hdf5.h>
#include <iostream>
#include <string>
#include <string_view>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>
#include <vector>

namespace zarrbits::command {
namespace {

const command commands[] = {
    {"convert", "convert HDF5 files and Zarr stores to a Zarr store, or to an HDF5 file", convert_main},
    {"plan", "dry run: say what convert would do, and how much it would write", plan_main},
    {"finalize", "write the metadata of a store that was converted in shares", finalize_main},
    {"export", "write a Zarr store into an HDF5 or netCDF-4 file", export_main},
    {"repack", "change the layout, chunks or filters of an HDF5 file: for archives and servers", repack_main},
    {"rename", "rename the sources of references, for readers who find them elsewhere", rename_main},
    {"verify", "compare a store with what it was made from: values, types, attributes", verify_main},
    {"digest", "print a digest of the values of each array, equal in all formats", digest_main},
    {"check", "say whether a store or an HDF5 file is all right: every chunk, all metadata", check_main},
    {"inspect", "show what is in an HDF5 file or a Zarr v3 store, or both side by side", inspect_main},
    {"encode", "encode an array with a Zarr codec, as a filter between files or pipes", encode_main},
    {"decode", "decode what encode wrote, or one chunk of a Zarr array", decode_main},
    {"doctor", "say whether HDF5 finds the plugins, why not, and what they did in a file", doctor_main},
    {"suggest", "say which bits packbits has to keep for the datasets of an HDF5 file", suggest_main},
};

void print_help() {
  std::cout << "zarrbits - Zarr's bytes and packbits codecs for streams, HDF5 files and Zarr v3 stores\n\n"
               "Usage: zarrbits COMMAND [OPTIONS]\n\nCommands:\n";
  for (const command& c : commands) {
    std::string name = c.name;
    name.resize(10, ' ');
    std::cout << "  " << name << c.summary << '\n';
  }
  std::cout << "\nOptions:\n"
               "  -h,--help   print this help; \"zarrbits COMMAND --help\" lists the options of a command\n"
               "  --version   print the version\n\n"
               "Exit status: 0 success, 1 failure, 2 wrong usage or configuration, 3 done, but something was left out.\n";
}

[[noreturn]] void refuse_command(std::string_view name) {
  std::vector<std::string> names;
  for (const command& c : commands) names.emplace_back(c.name);
  const std::string closest = text::closest_match(name, names);
  throw usage_error(quote(name) + " is not a command of zarrbits; " + (closest.empty() ? "" : "did you mean " + closest + "? ") +
                    "\"zarrbits --help\" lists the commands");
}

const command& find_command(std::string_view name) {
  for (const command& c : commands) {
    if (name == c.name) return c;
  }
  refuse_command(name);
}

int dispatch(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty()) throw usage_error("no command given; \"zarrbits --help\" lists the commands");
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && argc > 2) {
    std::string option = "--help";
    char* arguments[] = {argv[2], option.data(), nullptr};
    return find_command(argv[2]).run(2, arguments);
  }
  if (help) {
    print_help();
    return exit_success;
  }
  if (name == "--version" || name == "version") {
    std::cout << "zarrbits " << zarrbits::version() << '\n';
    return exit_success;
  }
  const command& chosen = find_command(name);
  std::vector<std::string> arguments = with_location_names(argc - 1, argv + 1);
  std::vector<char*> pointers = pointers_to(arguments);
  return chosen.run(argc - 1, pointers.data());
}

// If the program is started with standard output closed, the next file that it opens would get that descriptor, and the program
// would print into the file. So a closed descriptor is filled with one that refuses every use.
void reserve_standard_descriptors() {
  for (int d = 0; d <= 2; ++d) {
    if (::fcntl(d, F_GETFD) < 0 && ::open("/dev/null", (d == 0 ? O_WRONLY : O_RDONLY)) < 0) return;
  }
}

// The Python package names its process by ZARRBITS_PARENT. If that is killed, as Dask kills its workers, nobody waits for this
// work any more, and another process may begin the same: it ends as by SIGTERM, which leaves nothing half written.
void end_with_parent() {
  const char* const parent = std::getenv("ZARRBITS_PARENT");
  if (!parent) return;
  const pid_t process = static_cast<pid_t>(std::atoi(parent));
  ::unsetenv("ZARRBITS_PARENT");
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) ::raise(SIGTERM);  // it was faster
}

}  // namespace
}  // namespace zarrbits::command

int main(int argc, char** argv) {
  zarrbits::command::reserve_standard_descriptors();
  zarrbits::command::end_with_parent();
  std::vector<std::string> arguments = zarrbits::command::take_arguments(argc, argv);  // before there are child processes
  std::vector<char*> pointers = zarrbits::command::pointers_to(arguments);
  // a file that grows past `ulimit -f` is an error with a sentence, as a full disk is; SIGPIPE stays what the shell made it
  std::signal(SIGXFSZ, SIG_IGN);
  // at the end of the program, libhdf5 may fail to close objects of a damaged file, and print its own messages on standard error
  H5dont_atexit();
  const int status = zarrbits::command::run_guarded(zarrbits::command::dispatch, argc, pointers.data());
  // after a failure, other downloads may go on, with objects that exit() destroys
  if (zarrbits::remote::downloads_are_running()) {
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(status);
  }
  return status;
}
