// SPDX-License-Identifier: BSL-1.0
//
// All objects of an HDF5 file that links lead to, each once, with the links of its groups as the file has them: what a copy needs
// to have the same.
//
//   const file_tree tree = read_tree(file);
//   for (const tree_object& o : tree.objects) ...   // the root first, each group before the objects that it alone links to
//
#ifndef ZARRBITS_REPACK_FILE_TREE_HPP
#define ZARRBITS_REPACK_FILE_TREE_HPP

#include "hdf5/h5.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace zarrbits::repacking {

struct tree_link {
  std::string name;
  bool utf8 = false;  // its name's character set
  H5L_type_t type = H5L_TYPE_HARD;
  haddr_t address = HADDR_UNDEF;  // hard: of the object
  std::string value = {};         // others: as libhdf5 has it
};

struct tree_object {
  haddr_t address = HADDR_UNDEF;
  H5I_type_t kind = H5I_GROUP;
  std::string path;                   // the first one that was found, as in the file
  std::vector<tree_link> links = {};  // groups: in the order of creation if the group tracks it, else of names
};

struct file_tree {
  std::vector<tree_object> objects;
  std::map<haddr_t, std::size_t> index;  // by address

  // The object with a path of hard links ("/a/b"); null without one.
  const tree_object* find(const std::string& path) const;
};

// Throws hdf5::failure, with the path, for what cannot be read.
file_tree read_tree(hid_t file);

// The object of this name in the group of the object at `path`, or in one above; else the path it would have in the root group.
std::string path_in_scope(const file_tree& tree, const std::string& path, const std::string& name);

// Opens an object of the file that has the tree.
hdf5::handle open_object(hid_t file, const tree_object& o);

}  // namespace zarrbits::repacking

#endif
