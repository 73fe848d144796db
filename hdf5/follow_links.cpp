// SPDX-License-Identifier: BSL-1.0
//
// Copies targets of links to the links' places: Zarr has no links.
//
#include "hdf5/source_file.hpp"

#include "text/node_names.hpp"

#include <algorithm>
#include <cstring>
#include <sys/stat.h>

namespace zarrbits::hdf5 {

namespace {

constexpr std::size_t unknown_file = static_cast<std::size_t>(-1);

}  // namespace

object_place source_file::place_of(hid_t object) const {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return {unknown_file, HADDR_UNDEF};
  if (info.fileno == number_) return {0, info.addr};
  // libhdf5 gives a file a new number each time it is opened
  const handle file(H5Iget_file_id(object));
  struct stat status {};
  if (!file || ::fstat(chunk_locator(file).descriptor(), &status) != 0) return {unknown_file, HADDR_UNDEF};
  const auto entry = std::find(linked_files_.begin(), linked_files_.end(), std::pair(status.st_dev, status.st_ino));
  if (entry == linked_files_.end()) return {unknown_file, HADDR_UNDEF};
  return {static_cast<std::size_t>(entry - linked_files_.begin()) + 1, info.addr};
}

object_place source_file::find_place(hid_t object) {
  object_place place = place_of(object);
  if (place.file != unknown_file) return place;
  const handle file(H5Iget_file_id(object), "get the file of an object");
  struct stat status {};
  if (::fstat(chunk_locator(file).descriptor(), &status) != 0) throw failure("it is in a file that is not local");
  linked_files_.emplace_back(status.st_dev, status.st_ino);
  place = place_of(object);
  if (place.file == unknown_file) throw failure("libhdf5 does not report where it is");
  return place;
}

bool source_file::is_in(std::size_t group, const object_place& place) const {
  for (; group != no_object; group = objects_[group].parent) {
    if (objects_[group].place == place) return true;
  }
  return false;
}

std::string source_file::route_to(std::size_t parent, const std::string& link) const {
  std::string route = "/" + link;
  for (; objects_[parent].parent != no_object; parent = objects_[parent].parent) route = "/" + objects_[parent].link_name + route;
  return top_ == "/" ? route : top_ + route;
}

void source_file::follow_links(bool inside, bool tells_case_apart) {
  for (std::size_t i = 0; i < objects_.size(); ++i) {  // it grows in the loop
    if (objects_[i].kind != source_object::kind_type::group) continue;
    std::vector<std::size_t> fresh;
    if (objects_[i].copy) list_group(i, tells_case_apart, fresh);
    follow_links_of(i, inside, tells_case_apart);
  }
  H5Eclear2(H5E_DEFAULT);
  require_unchanged();
}

void source_file::follow_links_of(std::size_t index, bool inside, bool tells_case_apart) {
  if (objects_[index].links.empty()) return;
  handle group;
  try {
    group = open(objects_[index]);
  } catch (const failure&) {  // already reported that it cannot be opened
    return;
  }
  // links within another file lead to objects that have no other place in the store
  const bool follow_all = inside || objects_[index].place.file > 0;
  names used_names;
  for (const std::size_t child : objects_[index].children) {
    const std::string name = text::base_name(objects_[child].store_path);
    used_names.insert(tells_case_apart ? name : text::case_fold(name));
  }
  std::vector<extra_link> links = std::move(objects_[index].links);
  for (extra_link& link : links) {
    if (link.kind != "external" && link.kind != "soft" && (link.kind != "hard" || !follow_all)) continue;
    policy_->forget_refusal();
    try {
      follow(index, group, link, follow_all, tells_case_apart, used_names);
    } catch (const failure& e) {
      const bool is_refused = !policy_->refusal().empty();
      link.not_copied = is_refused ? policy_->refusal() : e.what();
      link.code = is_refused ? reason_code::refused_file : code_of_link_failure(e);
      if (is_refused) policy_->note_refusal();
    }
    H5Eclear2(H5E_DEFAULT);
  }
  objects_[index].links = std::move(links);
}

void source_file::follow(std::size_t index, hid_t group, extra_link& link, bool follow_all, bool tells_case_apart,
                         names& used_names) {
  handle object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT));
  if (!object) {
    if (link.kind == "soft" && !follow_all && policy_->refusal().empty()) return;  // within the file, as far as is known
    // not every libhdf5 names the file in its message
    fail(("open \"" + link.target + "\"" + (link.file.empty() ? "" : " of \"" + link.file + "\"")).c_str());
  }
  const object_place place = find_place(object);
  if (H5Iget_type(object) == H5I_DATATYPE || (!follow_all && place.file == 0 && link.kind != "external")) return;
  link.is_cyclic = is_in(index, place);
  if (link.is_cyclic) throw failure("it points back to a group that contains it");
  bool left_out = false;
  add_object(index, link.name, object, place, true, tells_case_apart, used_names, left_out);
  link.copied = true;
}

}  // namespace zarrbits::hdf5
