// SPDX-License-Identifier: BSL-1.0
//
// Where HDF5 looks for filter plugins, and what happens to each file there.
//
//   const scan s = scan_plugins();
//   s.find_plugin(packbits_id, search::up_to_1_14);  // the path of the file that serves packbits there, or ""
//
// The folders are listed and the files are opened as HDF5 does, in the same order; each file in a child process, because its code
// runs when it is opened.
//
#ifndef ZARRBITS_COMMAND_DOCTOR_PLUGINS_HPP
#define ZARRBITS_COMMAND_DOCTOR_PLUGINS_HPP

#include "command/doctor_signatures.hpp"

#include <string>
#include <vector>

namespace zarrbits::command {

// HDF5's search changed: what cannot be opened ended it up to 1.14.
enum class search { up_to_1_14, from_2_0 };

struct plugin_file {
  std::string name;
  bool opened = false;       // HDF5 opens it while it searches
  bool ends_search = false;  // and goes no further
  bool is_filter = false;
  int class_version = 0;  // is_filter
  int id = -1;
  std::string filter_name;
  std::string version;         // of zarrbits; "" if it is not ours, or too old to say it
  bool serves_netcdf = false;  // it has a codec for netCDF's Zarr files
  bool is_signed = false;      // by h5sign
  bool fault = false;
  std::string description;  // what happens to it and why
};

struct folder {
  std::string path;
  bool fault = false;
  bool ends_search = false;        // up to 1.14
  bool misspelt = false;           // it is not what the user meant, or not everywhere
  std::string description;         // "" where all is well
  std::vector<plugin_file> files;  // in the order in which HDF5 meets them
};

struct scan {
  std::string hdf5;  // version of this command's libhdf5
  bool from_environment = false;
  bool disabled = false;  // HDF5_PLUGIN_PRELOAD=::
  std::vector<folder> folders;
  keystore keys;
  std::string own_folder;  // a folder that has our plugins, found or not; "" if none has

  // The path of the file that serves this filter, or "".
  std::string find_plugin(int id, search version) const;
  bool finds_both() const;  // every HDF5 finds both of our filters
  unsigned faults() const;
  // The line to type so that HDF5 finds our plugins before anything that stops the search, and still finds what it found before;
  // "" if nothing needs to be done.
  std::string export_line() const;
};

constexpr int packbits_id = ZARRBITS_CONVERT_PACKBITS_ID, bytes_id = ZARRBITS_CONVERT_BYTES_ID;

scan scan_plugins();

}  // namespace zarrbits::command

#endif
