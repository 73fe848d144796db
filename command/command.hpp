// SPDX-License-Identifier: BSL-1.0
//
// The subcommands of `zarrbits`. Each is a main function of its own: argv[0] is the subcommand's name, the result is the exit
// status. An exception becomes one sentence on standard error (command_line.hpp).
//
#ifndef ZARRBITS_COMMAND_COMMAND_HPP
#define ZARRBITS_COMMAND_COMMAND_HPP

#include <string>

namespace CLI {
class App;
}

namespace zarrbits::command {

struct command {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

int convert_main(int argc, char** argv);
int plan_main(int argc, char** argv);
int export_main(int argc, char** argv);
int repack_main(int argc, char** argv);
// Whether the arguments of `convert` or `plan` are those of these: their options, a source of their kind, and an HDF5 file to
// write.
bool is_export(int argc, char** argv);
bool is_repack(int argc, char** argv);
// Their options.
const CLI::App& export_parser();
const CLI::App& repack_parser();
int plan_repack_main(int argc, char** argv);
int rename_main(int argc, char** argv);
int digest_main(int argc, char** argv);
int check_main(int argc, char** argv);
int finalize_main(int argc, char** argv);
int encode_main(int argc, char** argv);
int decode_main(int argc, char** argv);
int inspect_main(int argc, char** argv);
int verify_main(int argc, char** argv);
int doctor_main(int argc, char** argv);
int suggest_main(int argc, char** argv);

}  // namespace zarrbits::command

#endif
