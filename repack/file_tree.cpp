// SPDX-License-Identifier: BSL-1.0
#include "repack/file_tree.hpp"

#include "hdf5/link_value.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::repacking {

namespace {

constexpr std::size_t max_path = 1 << 16;

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* links) {
  tree_link link;
  link.name = name;
  link.utf8 = info->cset == H5T_CSET_UTF8;
  link.type = info->type;
  if (info->type == H5L_TYPE_HARD) link.address = info->u.address;
  static_cast<std::vector<tree_link>*>(links)->push_back(std::move(link));
  return 0;
}

std::vector<tree_link> links_of(hid_t group) {
  const hdf5::handle properties(H5Gget_create_plist(group), "get the properties of a group");
  unsigned order = 0;
  hdf5::check(H5Pget_link_creation_order(properties, &order), "get the order of links");
  std::vector<tree_link> links;
  hsize_t position = 0;
  hdf5::check(H5Literate(group, (order & H5P_CRT_ORDER_TRACKED) ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, &position,
                         collect_link, &links),
              "list a group");
  for (tree_link& link : links) {
    if (link.type == H5L_TYPE_HARD) continue;
    hdf5::register_link_class(link.type);
    link.value = hdf5::link_value(group, link.name);
  }
  return links;
}

}  // namespace

const tree_object* file_tree::find(const std::string& path) const {
  const auto match = std::find_if(objects.begin(), objects.end(), [&](const tree_object& o) { return o.path == path; });
  return match == objects.end() ? nullptr : &*match;
}

std::string path_in_scope(const file_tree& tree, const std::string& path, const std::string& name) {
  for (std::string group = path; !group.empty();) {
    group.resize(group.rfind('/'));
    if (tree.find(group + "/" + name)) return group + "/" + name;
  }
  return "/" + name;
}

hdf5::handle open_object(hid_t file, const tree_object& o) { return {H5Oopen_by_addr(file, o.address), "open an object"}; }

file_tree read_tree(hid_t file) {
  file_tree tree;
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  hdf5::check(H5Oget_info2(file, &info, H5O_INFO_BASIC), "open the root group");
  tree.objects.push_back({info.addr, H5I_GROUP, "/"});
  tree.index[info.addr] = 0;
  for (std::size_t i = 0; i < tree.objects.size(); ++i) {
    const std::string path = tree.objects[i].path;
    try {
      const hdf5::handle object = open_object(file, tree.objects[i]);
      const H5I_type_t kind = H5Iget_type(object);
      if (kind != H5I_GROUP && kind != H5I_DATASET && kind != H5I_DATATYPE)
        throw hdf5::failure("an object of a kind that HDF5 1.10 does not know");
      tree.objects[i].kind = kind;
      if (kind != H5I_GROUP) continue;
      tree.objects[i].links = links_of(object);
      for (std::size_t j = 0; j < tree.objects[i].links.size(); ++j) {
        const tree_link& link = tree.objects[i].links[j];
        if (link.type != H5L_TYPE_HARD || !tree.index.emplace(link.address, tree.objects.size()).second) continue;
        if (path.size() + link.name.size() > max_path) throw hdf5::failure("a path of more than 64 KiB");
        tree.objects.push_back({link.address, H5I_GROUP, (path == "/" ? path : path + "/") + link.name});
      }
    } catch (const hdf5::failure& e) {
      throw hdf5::failure("\"" + text::escape_name(path) + "\": " + e.what());
    }
  }
  return tree;
}

}  // namespace zarrbits::repacking
