// SPDX-License-Identifier: BSL-1.0
//
// Paths of the objects that references of a file lead to, as the file has them.
//
#ifndef ZARRBITS_READER_OBJECT_PATHS_HPP
#define ZARRBITS_READER_OBJECT_PATHS_HPP

#include "hdf5/h5.hpp"
#include "hdf5/values_json.hpp"

#include <map>
#include <optional>
#include <string>

namespace zarrbits::reader {

// Lists the objects of the file when the first reference is resolved. The caller holds hdf5::lock.
class object_paths {
 public:
  explicit object_paths(hid_t file) : file_(file) {}
  // "" for an address that no listed object has.
  const std::string& path_of(haddr_t address);

 private:
  const hid_t file_;
  std::optional<std::map<haddr_t, std::string>> paths_;
};

// Resolves the references that an open object holds: {"path": ...}, with the selection of a region; null if they lead nowhere.
class reference_paths final : public hdf5::reference_reader {
 public:
  reference_paths(object_paths& paths, hid_t holder) : paths_(paths), holder_(holder) {}
  text::json object(const void* reference) override;
  text::json region(const void* reference) override;

 private:
  object_paths& paths_;
  const hid_t holder_;
};

}  // namespace zarrbits::reader

#endif
