// SPDX-License-Identifier: BSL-1.0
//
// One file that might be a plugin: what its header says, and what it says itself when it is opened.
//
#ifndef ZARRBITS_COMMAND_DOCTOR_PROBE_HPP
#define ZARRBITS_COMMAND_DOCTOR_PROBE_HPP

#include <string>

namespace zarrbits::command {

struct probe_result {
  enum class kind_of {
    filter,
    other_plugin,
    no_plugin,
    cannot_load,
    crashes,
    other_machine,
    no_library
  } kind = kind_of::no_library;
  std::string detail;  // the loader's reason, the machine, the signal
  int type = 0;        // other_plugin: H5PL_type_t
  int class_version = 0, id = -1;
  std::string name;
  bool netcdf_codec = false;
  std::string version;  // that it says with zarrbits_hdf5_version()
};

// Loads the file in a child process.
probe_result probe(const std::string& path);

}  // namespace zarrbits::command

#endif
