// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/source_file.hpp"

#include "convert/hdf5/lent_decoders.hpp"
#include "convert/hdf5/s3_source.hpp"
#include "convert/io/files.hpp"
#include "convert/io/s3_access.hpp"
#include "convert/text/names.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

namespace zarrbits::conversion {

namespace {

constexpr std::size_t longest_link_value = 1 << 20;

struct found_link {
  std::string name;
  H5L_type_t type;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  static_cast<std::vector<found_link>*>(data)->push_back({name, info->type});
  return 0;
}

H5O_info_t info_of(hid_t object) {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  h5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "look at an object");
  return info;
}

source_object::kind_type kind_of(hid_t object) {
  switch (H5Iget_type(object)) {
    case H5I_GROUP: return source_object::kind_type::group;
    case H5I_DATASET: return source_object::kind_type::dataset;
    case H5I_DATATYPE: return source_object::kind_type::datatype;
    default: throw h5::failure("an object of a kind that HDF5 1.10 does not know");
  }
}

std::vector<char> link_value(hid_t group, const found_link& link) {
  H5L_info_t info;
  h5::check(H5Lget_info(group, link.name.c_str(), &info, H5P_DEFAULT), "look at a link");
  if (info.u.val_size > longest_link_value) throw h5::failure("a link's value of " + human_bytes(info.u.val_size));
  std::vector<char> value(info.u.val_size + 1, '\0');
  if (info.u.val_size > 0)
    h5::check(H5Lget_val(group, link.name.c_str(), value.data(), info.u.val_size, H5P_DEFAULT), "read a link");
  return value;
}

}  // namespace

source_file::source_file(const std::string& path, const source_options& options) : path_(path) {
  if (!is_s3(path)) {
    if (const std::string why = why_no_file(path); !why.empty()) throw convert_error(why);
  }
  h5::handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  // the hash table: a prime number, many times the number of chunks that the cache is likely to hold
  if (options.chunk_cache > 0) H5Pset_cache(access, 0, 12421, static_cast<std::size_t>(options.chunk_cache), 0.75);
  s3_source remote;
  h5::handle below;
  if (is_s3(path)) {
    below = h5::handle(H5Pcopy(access), "copy a property list");
    remote = find_in_s3(path, options.endpoint, below);
  }
  etag_ = remote.etag;
  const std::string name = is_s3(path) ? remote.url : path;
  gate_ = std::make_shared<file_gate>(name, is_s3(path), options.external);
  opened_ = std::make_unique<const opened_source>(path, name, access, gate_, std::move(below), options.lock);
  if (chunks().descriptor() >= 0) descriptor_ = ::fcntl(chunks().descriptor(), F_DUPFD_CLOEXEC, 0);
}

source_file::~source_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void source_file::require_range(std::uint64_t offset, std::uint64_t size) const {
  if (offset > opened_->state().size || size > opened_->state().size - offset) throw unreadable_range("the file ends before it");
}

std::uint64_t source_file::user_block_size() const {
  const h5::handle properties(H5Fget_create_plist(file()), "tell the properties of the file");
  hsize_t size = 0;
  h5::check(H5Pget_userblock(properties, &size), "tell the size of the user block");
  return size;
}

h5::handle source_file::open(const source_object& o) const {
  return h5::handle(H5Oopen_by_addr(file(), o.address), "open the object");
}

std::shared_ptr<const beside> source_file::look_beside(hid_t dataset) const {
  const h5::lock one_thread;
  std::shared_ptr<const beside>& known = beside_[info_of(dataset).addr];
  if (!known) known = std::make_shared<const beside>(conversion::look_beside(dataset, *gate_));
  return known;
}

void source_file::require_values(hid_t dataset) const {
  if (const auto other = look_beside(dataset); !other->obstacle.empty()) throw h5::failure(other->obstacle);
}

const source_object* source_file::at(haddr_t address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &objects_[found->second];
}

source_object source_file::top_object(const std::string& path) {
  const h5::handle object(H5Oopen(file(), path.c_str(), H5P_DEFAULT));
  const std::string what = path == "/" ? "the root group of \"" + path_ + "\"" : "object \"" + path + "\" of \"" + path_ + "\"";
  if (!object) {
    const std::string reason = h5::last_error();
    if (!gate_->refusal().empty()) throw convert_error("cannot open " + what + ": it lies in another file, " + gate_->refusal());
    throw convert_error("cannot open " + what + ": " + reason +
                        (path == "/" ? "; the file is damaged" : "; \"zarrbits inspect\" lists the objects of a file"));
  }
  source_object o;
  try {
    const H5O_info_t info = info_of(object);
    if (path != "/" && info.fileno != info_of(file()).fileno) throw convert_error(what + " lies in another file; give that file");
    o.kind = kind_of(object);
    o.address = info.addr;
  } catch (const h5::failure& e) {
    throw convert_error("cannot open " + what + ": " + e.what() + "; the file is damaged");
  }
  if (o.kind == source_object::kind_type::datatype) throw convert_error(what + " is a named datatype; give a dataset or a group");
  o.path = shown(path);
  o.store_path = "/";
  return o;
}

void source_file::walk(bool tells_case_apart, const std::string& top, const std::function<void(const std::string&)>& at) {
  objects_.push_back(top_object(top.empty() ? "/" : top));
  by_address_[objects_[0].address] = 0;
  if (!top.empty()) {
    selection_note_["object"] = shown(top);
    source_object rest;  // one entry for all outside
    rest.path = "/";
    unselected_.push_back(std::move(rest));
  }
  if (objects_[0].kind != source_object::kind_type::group) return;
  std::vector<std::size_t> todo{0};
  while (!todo.empty()) {
    const std::size_t index = todo.back();
    todo.pop_back();
    std::vector<std::size_t> fresh;
    if (at) at(objects_[index].path);
    list_group(index, tells_case_apart, fresh);
    todo.insert(todo.end(), fresh.rbegin(), fresh.rend());
  }
  require_unchanged();  // else half of it may be missing
}

void source_file::select(selection& wanted) {
  if (wanted.everything()) return;
  if (!wanted.included().empty()) selection_note_["include"] = wanted.included();
  if (!wanted.excluded().empty()) selection_note_["exclude"] = wanted.excluded();
  std::vector<bool> keep(objects_.size(), false);
  for (std::size_t i = 0; i < objects_.size(); ++i) keep[i] = wanted.wants(objects_[i].path);
  // further hard links: they add their objects with all below, and themselves are taken or left like the rest
  std::vector<std::size_t> added;
  for (source_object& o : objects_) {
    for (extra_link& link : o.links) {
      link.selected = wanted.wants(join_path(o.path, shown(link.name)));
      if (link.selected && link.object != no_object && !keep[link.object]) added.push_back(link.object);
    }
  }
  while (!added.empty()) {
    const std::size_t i = added.back();
    added.pop_back();
    if (keep[i] || wanted.excludes(objects_[i].path)) continue;
    keep[i] = true;
    added.insert(added.end(), objects_[i].children.begin(), objects_[i].children.end());
  }
  wanted.require_all_matched();
  keep[0] = true;
  for (std::size_t i = objects_.size(); --i > 0;) {  // the groups above what is kept: parents come first in the list
    if (std::any_of(objects_[i].links.begin(), objects_[i].links.end(), [](const extra_link& l) { return l.selected; }))
      keep[i] = true;
    if (keep[i]) keep[objects_[i].parent] = true;
  }
  keep_only(keep);
}

void source_file::keep_only(const std::vector<bool>& keep) {
  std::vector<std::size_t> place(objects_.size(), no_object);
  std::vector<source_object> all = std::move(objects_);
  objects_.clear();
  by_address_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    source_object& o = all[i];
    if (keep[i]) {
      place[i] = objects_.size();
      if (o.parent != no_object) o.parent = place[o.parent];
      by_address_[o.address] = place[i];
      objects_.push_back(std::move(o));
    } else if (place[o.parent] != no_object) {
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

void source_file::list_group(std::size_t index, bool tells_case_apart, std::vector<std::size_t>& fresh) {
  std::vector<found_link> found;
  h5::handle group;
  try {
    group = open(objects_[index]);
    if (const h5::handle properties(H5Gget_create_plist(group)); properties)
      register_decoders(properties);  // its links may be compressed
    hsize_t position = 0;
    h5::check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, collect_link, &found), "list the group");
  } catch (const h5::failure& e) {
    objects_[index].listing_error = e.what();
    if (!group) return;
  }
  std::unordered_set<std::string> taken;
  for (const found_link& link : found) {
    extra_link extra;
    extra.name = link.name;
    try {
      if (link.type == H5L_TYPE_HARD) {
        h5::handle object(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), "open the object");
        const H5O_info_t info = info_of(object);
        const auto known = by_address_.find(info.addr);
        if (known != by_address_.end()) {
          extra.kind = "hard";
          extra.object = known->second;
          extra.target = objects_[known->second].path;
        } else {
          source_object o;
          o.kind = kind_of(object);
          o.address = info.addr;
          o.parent = index;
          o.link_name = link.name;
          o.path = join_path(objects_[index].path, shown(link.name));
          std::string name = node_name(link.name);
          const auto is_free = [&] { return taken.insert(tells_case_apart ? name : folded(name)).second; };
          bool free = is_free();
          while (!free && !tells_case_apart) {
            std::string other = unlike_by_case(name);
            if (other == name) break;
            name = std::move(other);
            free = is_free();
          }
          o.store_path = join_path(objects_[index].store_path, name);
          extra.left_out = !free || name.size() > longest_name || o.store_path.size() > longest_store_path_;
          if (!free) throw h5::failure("another object of its group has its name");
          if (extra.left_out) throw h5::failure("its path is longer than a file system can hold");
          const std::size_t n = objects_.size();
          by_address_[info.addr] = n;
          if (o.kind == source_object::kind_type::group) fresh.push_back(n);
          objects_.push_back(std::move(o));
          objects_[index].children.push_back(n);
          continue;
        }
      } else if (link.type == H5L_TYPE_SOFT) {
        extra.kind = "soft";
        extra.target = shown(link_value(group, link).data());
      } else if (link.type == H5L_TYPE_EXTERNAL) {
        extra.kind = "external";
        const std::vector<char> value = link_value(group, link);
        unsigned flags = 0;
        const char *file = nullptr, *object = nullptr;
        h5::check(H5Lunpack_elink_val(value.data(), value.size() - 1, &flags, &file, &object), "read an external link");
        extra.file = shown(file);
        extra.target = shown(object);
      } else {
        extra.kind = "user";
        extra.target = "link class " + std::to_string(static_cast<int>(link.type));
        try {
          const std::vector<char> value = link_value(group, link);
          extra.detail = base64(std::string_view(value.data(), value.size() - 1));
        } catch (const h5::failure&) {  // libhdf5 tells nothing of a class that nobody registered
          H5Eclear2(H5E_DEFAULT);
        }
      }
    } catch (const h5::failure& e) {
      extra.kind = "broken";
      extra.detail = e.what();
    }
    objects_[index].links.push_back(std::move(extra));
  }
}

const source_object* source_file::target(const void* reference, H5R_type_t type) const {
  const h5::handle object(H5Rdereference2(file(), H5P_DEFAULT, type, reference));
  H5O_info_t info;
  const bool there = object && H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0;
  H5Eclear2(H5E_DEFAULT);
  return there ? at(info.addr) : nullptr;
}

std::string source_file::target_of(const void* reference, H5R_type_t type) const {
  if (const source_object* o = target(reference, type)) return o->path;
  std::string path;
  if (!selection_note_.empty()) {  // it may have been left out: libhdf5 searches the file for it
    char name[4096];
    const ssize_t n = H5Rget_name(file(), type, reference, name, sizeof name);
    if (n > 0 && n < static_cast<ssize_t>(sizeof name)) path = shown(name);
  }
  H5Eclear2(H5E_DEFAULT);
  return path;
}

json source_file::object(const void* reference) {
  hobj_ref_t address = 0;
  std::memcpy(&address, reference, sizeof address);
  if (address == 0 || address == HADDR_UNDEF) return "";
  const std::string path = target_of(reference, H5R_OBJECT);
  return path.empty() ? json(nullptr) : json(path);
}

json source_file::region(const void* reference) {
  const auto* bytes = static_cast<const unsigned char*>(reference);
  if (std::all_of(bytes, bytes + sizeof(hdset_reg_ref_t), [](unsigned char b) { return b == 0; })) return "";
  const std::string path = target_of(reference, H5R_DATASET_REGION);
  if (path.empty()) return nullptr;
  json result = {{"path", path}};
  const h5::handle space(H5Rget_region(file(), H5R_DATASET_REGION, reference));
  if (!space) {
    H5Eclear2(H5E_DEFAULT);
    return nullptr;
  }
  const int rank = H5Sget_simple_extent_ndims(space);
  const H5S_sel_type kind = H5Sget_select_type(space);
  const auto lists = [&](const std::vector<hsize_t>& numbers, std::size_t per) {
    json all = json::array();
    for (std::size_t i = 0; i + per <= numbers.size(); i += per) {
      all.push_back(std::vector<hsize_t>(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                         numbers.begin() + static_cast<std::ptrdiff_t>(i + per)));
    }
    return all;
  };
  constexpr hssize_t most = 1 << 20;
  const auto r = static_cast<std::size_t>(std::max(rank, 0));
  if (kind == H5S_SEL_POINTS) {
    const hssize_t n = H5Sget_select_elem_npoints(space);
    if (n < 0 || n > most) return nullptr;
    std::vector<hsize_t> points(static_cast<std::size_t>(n) * r);
    if (n > 0 && H5Sget_select_elem_pointlist(space, 0, static_cast<hsize_t>(n), points.data()) < 0) return nullptr;
    result["points"] = lists(points, r);
  } else if (kind == H5S_SEL_HYPERSLABS) {
    const hssize_t n = H5Sget_select_hyper_nblocks(space);
    if (n < 0 || n > most) return nullptr;
    std::vector<hsize_t> blocks(static_cast<std::size_t>(n) * 2 * r);
    if (n > 0 && H5Sget_select_hyper_blocklist(space, 0, static_cast<hsize_t>(n), blocks.data()) < 0) return nullptr;
    result["blocks"] = lists(blocks, 2 * r);  // first corner, then the opposite one, both inclusive
  } else {
    result["selection"] = kind == H5S_SEL_ALL ? "all" : "none";
  }
  return result;
}

}  // namespace zarrbits::conversion
