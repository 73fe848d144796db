// SPDX-License-Identifier: BSL-1.0
#include "hdf5/source_file.hpp"

#include "hdf5/link_value.hpp"
#include "hdf5/registered_decoders.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace zarrbits::hdf5 {

namespace {

struct found_link {
  std::string name;
  H5L_type_t type;
  std::optional<std::int64_t> created;  // its place in the order of creation, if the group tracks that
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  static_cast<std::vector<found_link>*>(data)->push_back(
      {name, info->type, info->corder_valid ? std::optional(info->corder) : std::nullopt});
  return 0;
}

// The names in the order of creation; empty if it is not known, or the same as that of the names.
std::vector<std::string> creation_order(std::vector<found_link> links) {
  if (!std::all_of(links.begin(), links.end(), [](const found_link& l) { return l.created.has_value(); })) return {};
  const auto is_before = [](const found_link& a, const found_link& b) { return *a.created < *b.created; };
  if (std::is_sorted(links.begin(), links.end(), is_before)) return {};
  std::stable_sort(links.begin(), links.end(), is_before);
  std::vector<std::string> names;
  for (found_link& l : links) names.push_back(std::move(l.name));
  return names;
}

H5O_info_t info_of(hid_t object) {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
  return info;
}

source_object::kind_type kind_of(hid_t object) {
  switch (H5Iget_type(object)) {
    case H5I_GROUP: return source_object::kind_type::group;
    case H5I_DATASET: return source_object::kind_type::dataset;
    case H5I_DATATYPE: return source_object::kind_type::datatype;
    default: throw failure("an object of a kind that HDF5 1.10 does not know");
  }
}

}  // namespace

source_file::source_file(const std::string& path, const source_options& options) : path_(path), options_(options) {
  handle access(H5Pcreate(H5P_FILE_ACCESS), "create a property list");
  // size of the hash table: a prime number, many times the number of chunks that the cache is likely to hold
  if (options.chunk_cache > 0) H5Pset_cache(access, 0, 12421, static_cast<std::size_t>(options.chunk_cache), 0.75);
  opened_ = std::make_unique<const opened_source>(path, access, options.remote, options.cache, options.external, options.lock,
                                                  io::access_hint::partial, options.netcdf3);
  policy_ = opened_->policy();
  bytes_ = std::make_shared<const file_bytes>(opened_->chunks());
}

io::file_state source_file::state() const { return bytes_->state(); }

std::uint64_t source_file::user_block_size() const {
  const handle properties(H5Fget_create_plist(file()), "get the properties of the file");
  hsize_t size = 0;
  check(H5Pget_userblock(properties, &size), "get the size of the user block");
  return size;
}

handle source_file::open(const source_object& o) const {
  if (o.place.file == 0) return handle(H5Oopen_by_addr(file(), o.place.address), "open the object");
  // opened through the links, so that only files in use stay open
  handle object(H5Oopen(file(), o.route.c_str(), H5P_DEFAULT), "open the object");
  if (place_of(object) != o.place) throw failure("its links no longer lead to the same object");
  return object;
}

std::shared_ptr<const external_dependencies> source_file::find_external_dependencies(hid_t dataset) const {
  const lock one_thread;
  const H5O_info_t info = info_of(dataset);
  std::shared_ptr<const external_dependencies>& cached = dependencies_[{info.fileno, info.addr}];
  if (!cached) cached = std::make_shared<const external_dependencies>(hdf5::find_external_dependencies(dataset, *policy_));
  return cached;
}

void source_file::require_values(hid_t dataset) const {
  if (const auto dependencies = find_external_dependencies(dataset); !dependencies->obstacle.empty())
    throw failure(dependencies->obstacle);
}

const source_object* source_file::find_object(hid_t object) const {
  const auto entry = by_place_.find(place_of(object));
  return entry == by_place_.end() ? nullptr : &objects_[entry->second];
}

source_object source_file::top_object(const std::string& path) {
  const handle object(H5Oopen(file(), path.c_str(), H5P_DEFAULT));
  const std::string description =
      path == "/" ? "the root group of \"" + path_ + "\"" : "object \"" + path + "\" of \"" + path_ + "\"";
  if (!object) {
    const std::string reason = last_error();
    if (!policy_->refusal().empty())
      throw zarrbits::error(errc::refused, "cannot open " + description + ": it lies in another file, " + policy_->refusal(),
                            {path_, path});
    throw zarrbits::error(path == "/" ? errc::damaged_source : errc::not_found,
                          "cannot open " + description + ": " + reason +
                              (path == "/" ? "; the file is damaged" : "; \"zarrbits inspect\" lists the objects of a file"),
                          {path_, path});
  }
  source_object o;
  try {
    const H5O_info_t info = info_of(object);
    number_ = info_of(file()).fileno;
    if (path != "/" && info.fileno != number_)
      throw zarrbits::error(errc::refused, description + " lies in another file; convert that file", {path_, path});
    o.kind = kind_of(object);
    o.place.address = info.addr;
  } catch (const failure& e) {
    throw zarrbits::error(errc::damaged_source, "cannot open " + description + ": " + e.what() + "; the file is damaged",
                          {path_, path});
  }
  if (o.kind == source_object::kind_type::datatype)
    throw zarrbits::error(errc::unsupported, description + " is a named datatype; use a dataset or a group", {path_, path});
  o.path = text::escape_name(path);
  o.store_path = "/";
  return o;
}

void source_file::walk(bool tells_case_apart, const std::string& top, const std::function<void(const std::string&)>& on_group) {
  if (!top.empty()) top_ = top;
  objects_.push_back(top_object(top_));
  by_place_[objects_[0].place] = 0;
  if (!top.empty()) {
    selection_note_["object"] = text::escape_name(top);
    source_object outside;  // one entry for everything outside
    outside.path = "/";
    unselected_.push_back(std::move(outside));
  }
  if (objects_[0].kind != source_object::kind_type::group) return;
  std::vector<std::size_t> todo{0};
  while (!todo.empty()) {
    const std::size_t index = todo.back();
    todo.pop_back();
    std::vector<std::size_t> fresh;
    if (on_group) on_group(objects_[index].path);
    list_group(index, tells_case_apart, fresh);
    todo.insert(todo.end(), fresh.rbegin(), fresh.rend());
  }
  require_unchanged();  // otherwise half of it may be missing
}

void source_file::select(text::selection& patterns) {
  if (patterns.matches_all()) return;
  if (!patterns.included().empty()) selection_note_["include"] = patterns.included();
  if (!patterns.excluded().empty()) selection_note_["exclude"] = patterns.excluded();
  std::vector<bool> keep(objects_.size(), false);
  for (std::size_t i = 0; i < objects_.size(); ++i) keep[i] = patterns.matches(objects_[i].path);
  // further hard links: they add their objects with all below; the links themselves are selected like all others
  std::vector<std::size_t> added;
  for (source_object& o : objects_) {
    for (extra_link& link : o.links) {
      link.selected = patterns.matches(text::join_path(o.path, text::escape_name(link.name)));
      if (link.selected && !link.copied && link.object != no_object && !keep[link.object]) added.push_back(link.object);
    }
  }
  while (!added.empty()) {
    const std::size_t i = added.back();
    added.pop_back();
    if (keep[i] || patterns.excludes(objects_[i].path)) continue;
    keep[i] = true;
    added.insert(added.end(), objects_[i].children.begin(), objects_[i].children.end());
  }
  patterns.require_all_matched();
  keep[0] = true;
  for (std::size_t i = objects_.size(); --i > 0;) {  // the groups above kept objects: parents come first in the list
    if (std::any_of(objects_[i].links.begin(), objects_[i].links.end(), [](const extra_link& l) { return l.selected; }))
      keep[i] = true;
    if (keep[i]) keep[objects_[i].parent] = true;
  }
  keep_only(keep);
}

void source_file::keep_only(const std::vector<bool>& keep) {
  std::vector<std::size_t> place(objects_.size(), no_object);
  std::vector<source_object> previous = std::move(objects_);
  objects_.clear();
  by_place_.clear();
  for (std::size_t i = 0; i < previous.size(); ++i) {
    source_object& o = previous[i];
    if (keep[i]) {
      place[i] = objects_.size();
      if (o.parent != no_object) o.parent = place[o.parent];
      by_place_.emplace(o.place, place[i]);
      objects_.push_back(std::move(o));
      continue;
    }
    if (o.place.file > 0) unselected_paths_.emplace(o.place, o.path);
    if (place[o.parent] != no_object) {
      unselected_.push_back(std::move(o));
    }
  }
  for (source_object& o : objects_) {
    std::vector<std::size_t> children;
    for (const std::size_t child : o.children) {
      if (place[child] != no_object) children.push_back(place[child]);
    }
    o.children = std::move(children);
  }
}

std::size_t source_file::add_object(std::size_t parent, const std::string& link, hid_t object, const object_place& place,
                                    bool copy, bool tells_case_apart, names& used_names, bool& left_out) {
  constexpr std::size_t max_copies = 100'000;  // a few groups that link to each other may expand to any number
  source_object o;
  o.kind = kind_of(object);
  o.place = place;
  o.copy = copy;
  o.parent = parent;
  o.link_name = link;
  o.path = text::join_path(objects_[parent].path, text::escape_name(link));
  if (place.file > 0) o.route = route_to(parent, link);
  std::string name = text::node_name(link);
  const auto is_free = [&] { return used_names.insert(tells_case_apart ? name : text::case_fold(name)).second; };
  bool free = is_free();
  while (!free) {
    std::string alternative = text::make_case_unique(name);
    if (alternative == name) break;
    name = std::move(alternative);
    free = is_free();
  }
  o.store_path = text::join_path(objects_[parent].store_path, name);
  left_out = !free || name.size() > text::max_name_bytes || o.store_path.size() > longest_store_path_;
  if (!free) throw failure("its group has another object of this name", reason_code::invalid_name);
  if (left_out) throw failure("its path is longer than a file system can hold", reason_code::invalid_name);
  if (copy && ++copies_ > max_copies)
    throw failure("links lead to more than " + std::to_string(max_copies) + " objects", reason_code::too_large);
  const std::size_t n = objects_.size();
  by_place_.emplace(place, n);
  objects_.push_back(std::move(o));
  objects_[parent].children.push_back(n);
  return n;
}

void source_file::list_group(std::size_t index, bool tells_case_apart, std::vector<std::size_t>& fresh) {
  std::vector<found_link> links;
  handle group;
  try {
    group = open(objects_[index]);
    if (const handle properties(H5Gget_create_plist(group)); properties)
      register_decoders(properties);  // its links may be compressed
    hsize_t position = 0;
    check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, collect_link, &links), "list the group");
  } catch (const failure& e) {
    objects_[index].listing_error = e.reason();
    if (!group) return;
  }
  objects_[index].order = creation_order(links);
  names used_names;
  const bool copy = objects_[index].copy;
  for (const found_link& link : links) {
    extra_link extra;
    extra.name = link.name;
    try {
      if (link.type == H5L_TYPE_HARD) {
        handle object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), "open the object");
        const object_place place = find_place(object);
        const auto existing = by_place_.find(place);
        if (existing != by_place_.end() && (!copy || is_in(index, place))) {
          extra.kind = "hard";
          extra.object = existing->second;
          extra.target = objects_[existing->second].path;
        } else {
          const std::size_t n = add_object(index, link.name, object, place, copy, tells_case_apart, used_names, extra.left_out);
          if (objects_[n].kind == source_object::kind_type::group) fresh.push_back(n);
          continue;
        }
      } else if (link.type == H5L_TYPE_SOFT) {
        extra.kind = "soft";
        extra.target = text::escape_name(link_value(group, link.name).c_str());
      } else if (link.type == H5L_TYPE_EXTERNAL) {
        extra.kind = "external";
        const std::string value = link_value(group, link.name);
        unsigned flags = 0;
        const char *file = nullptr, *object = nullptr;
        check(H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &object), "read an external link");
        extra.file = text::escape_name(file);
        extra.target = text::escape_name(object);
      } else {
        extra.kind = "user";
        extra.target = "link class " + std::to_string(static_cast<int>(link.type));
        try {
          const std::string value = link_value(group, link.name);
          extra.detail = text::base64(value);
        } catch (const failure&) {  // libhdf5 returns nothing for a class that is not registered
          H5Eclear2(H5E_DEFAULT);
        }
      }
    } catch (const failure& e) {
      extra.kind = "broken";
      extra.detail = e.what();
      extra.code = code_of_link_failure(e);
    }
    objects_[index].links.push_back(std::move(extra));
  }
}

void source_file::keep_reserved_names() {
  names used_names;
  for (source_object& o : objects_) {  // parents come first
    if (o.parent == no_object) continue;
    const std::string& parent_path = objects_[o.parent].store_path;
    const auto path_of = [&](std::string node) {
      return text::join_path(parent_path, text::with_reserved_prefix(o.link_name, std::move(node)));
    };
    // names that it had to differ from may be different now
    std::string path = path_of(o.link_name.starts_with("__") ? text::node_name(o.link_name) : text::base_name(o.store_path));
    if (!used_names.insert(text::case_fold(path)).second) path = path_of(text::base_name(o.store_path));
    o.store_path = std::move(path);
  }
}

const source_object* source_file::target(hid_t holder, const void* reference, H5R_type_t type) const {
  if (type == H5R_OBJECT && place_of(holder).file == 0) {  // it is the address, in little-endian order: nothing need be opened
    object_place place;
    place.address = 0;
    for (std::size_t i = sizeof(hobj_ref_t); i-- > 0;)
      place.address = place.address << 8 | static_cast<const unsigned char*>(reference)[i];
    if (const auto entry = by_place_.find(place); entry != by_place_.end()) return &objects_[entry->second];
  }
  const handle object(H5Rdereference2(holder, H5P_DEFAULT, type, reference));
  const source_object* result = object ? find_object(object) : nullptr;
  H5Eclear2(H5E_DEFAULT);
  return result;
}

std::string source_file::target_of(hid_t holder, const void* reference, H5R_type_t type) const {
  if (const source_object* o = target(holder, reference, type)) return o->path;
  std::string path;
  if (place_of(holder).file > 0) {
    const handle object(H5Rdereference2(holder, H5P_DEFAULT, type, reference));
    const auto entry = unselected_paths_.find(object ? place_of(object) : object_place());
    if (entry != unselected_paths_.end()) path = entry->second;
  } else if (!selection_note_.empty()) {  // it may not be selected: libhdf5 searches the file for it
    char name[4096];
    const ssize_t n = H5Rget_name(file(), type, reference, name, sizeof name);
    if (n > 0 && n < static_cast<ssize_t>(sizeof name)) path = text::escape_name(name);
  }
  H5Eclear2(H5E_DEFAULT);
  return path;
}

}  // namespace zarrbits::hdf5
