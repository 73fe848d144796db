// SPDX-License-Identifier: BSL-1.0
//
// Datasets and filters as arguments of h5repack.
//
//   repack_names names(file);
//   repack_filter(names.name_of(o, dataset), hdf5::packbits_filter, "1,12")     // {"-f", "/camera:UD=45429,1,1,12"}
//
#ifndef ZARRBITS_INSPECT_REPACK_HPP
#define ZARRBITS_INSPECT_REPACK_HPP

#include "hdf5/source_file.hpp"

#include <map>
#include <string>
#include <vector>

namespace zarrbits::inspection {

// h5repack identifies a dataset only by the first of its names, and ignores options for another name.
class repack_names {
 public:
  explicit repack_names(const hdf5::source_file& file) : file_(file) {}

  // The name as in the file; the object's path is the escaped form.
  std::string name_of(const hdf5::source_object& o, hid_t dataset);

 private:
  const hdf5::source_file& file_;
  std::map<haddr_t, std::string> first_;  // filled when a dataset has several names
};

// h5repack splits its argument at the first colon, and names at commas; there is no escape.
bool can_repack(const std::string& name);

// The option that gives the dataset this filter, optional; `values` are how many and which. Empty where h5repack cannot be given
// the name.
std::vector<std::string> repack_filter(const std::string& name, int id, const std::string& values);

}  // namespace zarrbits::inspection

#endif
