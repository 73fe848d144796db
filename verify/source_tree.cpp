// SPDX-License-Identifier: BSL-1.0
#include "verify/source_tree.hpp"

#include "hdf5/registered_decoders.hpp"
#include "text/name_escaping.hpp"
#include "verify/blocks.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <deque>
#include <iterator>

namespace zarrbits::verification {

namespace {

herr_t add_link(hid_t, const char* name, const H5L_info_t* info, void* out) {
  try {
    static_cast<std::vector<source_link>*>(out)->push_back({name, info->type, HADDR_UNDEF, {}});
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

}  // namespace

std::string child_path(const std::string& parent, const std::string& name) {
  return parent == "/" ? "/" + name : parent + "/" + name;
}

source_tree::source_tree(hid_t file, const std::string& top, comparison_progress& progress)
    : file_(file), source_(file), top_(top) {
  const hdf5::handle root = checked(H5Oopen(file_, top_.c_str(), H5P_DEFAULT),
                                    top_ == "/" ? "cannot open the root group" : "cannot open what the store was made from");
  list(root.get(), progress);
}

source_tree::source_tree(const source_tree& source, hid_t object, const std::string& path, comparison_progress& progress)
    : file_handle_(checked(H5Iget_file_id(object), "cannot tell the file of an object")),
      file_(file_handle_.get()),
      source_(source.source_),
      top_(path) {
  list(object, progress);
  objects_[root_].names.push_back(path.substr(path.rfind('/') + 1));
}

void source_tree::list(hid_t root, comparison_progress& progress) {
  H5O_info_t info;
  check(H5Oget_info(root, &info), "cannot open the root group");
  root_ = info.addr;
  number_ = info.fileno;
  source_object& first = objects_[root_];
  first.type = info.type;
  first.path = top_;
  first.has_attributes = info.num_attrs > 0;
  first.selected = true;
  std::deque<haddr_t> groups;
  if (info.type == H5O_TYPE_GROUP) groups.push_back(root_);
  while (!groups.empty()) {
    const haddr_t address = groups.front();
    groups.pop_front();
    source_object& group = objects_[address];
    progress.begin_object(group.path);
    list_group(address, group);
    for (const source_link& l : group.links) {
      if (l.target != HADDR_UNDEF && objects_[l.target].type == H5O_TYPE_GROUP &&
          objects_[l.target].path == child_path(group.path, l.name)) {
        groups.push_back(l.target);
      }
    }
  }
}

void source_tree::list_group(haddr_t address, source_object& group) {
  const hdf5::handle id = open(address);
  if (const hdf5::handle properties(id ? H5Gget_create_plist(id.get()) : -1); properties)
    hdf5::register_decoders(properties.get());  // its links may be compressed
  if (!id || H5Literate(id.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_link, &group.links) < 0) {
    group.reason = "cannot be listed: " + hdf5_reason();
  }
  for (source_link& l : group.links) {
    if (l.type != H5L_TYPE_HARD) continue;
    H5O_info_t info;
    const hdf5::handle child(H5Oopen(id.get(), l.name.c_str(), H5P_DEFAULT));
    if (!child || H5Oget_info(child.get(), &info) < 0) {
      l.reason = hdf5_reason();
      continue;
    }
    l.target = info.addr;
    const auto [entry, is_new] = objects_.try_emplace(info.addr);
    entry->second.names.push_back(l.name);
    if (is_new) {
      entry->second.type = info.type;
      entry->second.path = child_path(group.path, l.name);
      entry->second.parent = address;
      entry->second.has_attributes = info.num_attrs > 0;
    }
  }
}

bool source_tree::is_in_file(hid_t object) const {
  H5O_info_t info;
  return H5Oget_info(object, &info) >= 0 && info.fileno == number_;
}

bool source_tree::is_on_path(const std::string& path, const H5O_info_t& object) const {
  for (std::string p = path; !p.empty(); p = p == "/" ? "" : p.substr(0, std::max<std::size_t>(p.rfind('/'), 1))) {
    // a file that is opened through a link keeps its number while any part of it is open
    H5O_info_t info;
    if (H5Oget_info_by_name(source_, p.c_str(), &info, H5P_DEFAULT) >= 0 && info.fileno == object.fileno &&
        info.addr == object.addr)
      return true;
  }
  H5Eclear2(H5E_DEFAULT);
  return false;
}

void source_tree::select(text::selection& requested, text::selection& claimed) {
  std::deque<source_object*> brought;
  const auto select_object = [&](source_object& o) {
    if (!o.selected) brought.push_back(&o);
    o.selected = true;
  };
  for (const auto& [address, group] : objects_) {
    for (const source_link& l : group.links) {
      if (l.target == HADDR_UNDEF) continue;
      source_object& o = objects_[l.target];
      const std::string path = text::escape_name(child_path(group.path, l.name));
      if (requested.matches(path)) select_object(o);
      else o.unselected = true;
      if (!claimed.matches(path)) o.disclaimed = true;
    }
  }
  while (!brought.empty()) {
    const source_object& group = *brought.front();
    brought.pop_front();
    for (const source_link& l : group.links) {
      if (l.target != HADDR_UNDEF && !requested.excludes(text::escape_name(child_path(group.path, l.name))))
        select_object(objects_[l.target]);
    }
  }
}

namespace {

std::uint64_t bytes_of_elements(hid_t dataset) {
  const hdf5::handle space(H5Dget_space(dataset)), type(H5Dget_type(dataset));
  const hssize_t elements = space ? H5Sget_simple_extent_npoints(space.get()) : 0;
  const std::uint64_t factors[] = {elements > 0 ? static_cast<std::uint64_t>(elements) : 0, type ? H5Tget_size(type.get()) : 0};
  return product(std::begin(factors), std::end(factors));
}

}  // namespace

// Opens each dataset, which takes some time: there are not too many of them.
void source_tree::count_work(comparison_progress& progress) {
  constexpr std::size_t max_opened = 10'000;
  std::uint64_t objects = 0, bytes = 0;
  for (auto& [address, o] : objects_) {
    if (!o.selected) continue;
    ++objects;
    if (o.type != H5O_TYPE_DATASET || !progress.is_watched() || objects_.size() > max_opened) continue;
    progress.begin_object(o.path);
    o.bytes = bytes_of_elements(open(address).get());
    bytes = sum(bytes, o.bytes);
  }
  progress.begin(objects, bytes);
}

std::optional<std::uint64_t> source_tree::address_of(const std::string& path) const {
  for (const std::string& p : {text::unescape_name(path), path, zarr::unescape_node_name(path)}) {
    H5O_info_t info;
    if (!p.empty() && H5Oget_info_by_name(source_, p.c_str(), &info, H5P_DEFAULT) >= 0 && info.fileno == number_)
      return info.addr;
  }
  H5Eclear2(H5E_DEFAULT);
  return {};
}

std::vector<std::string> source_tree::names_of(std::uint64_t address) const {
  const auto entry = objects_.find(address);
  if (entry != objects_.end()) return entry->second.names;
  if (top_ == "/" || file_handle_) return {};
  const hobj_ref_t reference = address;  // outside of the listed objects: libhdf5 searches the file for it
  char path[4096] = {};
  const ssize_t n = H5Rget_name(file_, H5R_OBJECT, &reference, path, sizeof path);
  H5Eclear2(H5E_DEFAULT);
  const std::string full_path = n > 0 && n < static_cast<ssize_t>(sizeof path) ? path : "";
  return full_path.empty() ? std::vector<std::string>() : std::vector<std::string>{full_path.substr(full_path.rfind('/') + 1)};
}

}  // namespace zarrbits::verification
