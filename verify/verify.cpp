// SPDX-License-Identifier: BSL-1.0
//
// Walks the file and the store side by side. Objects of the file are told apart by their address, so that groups that contain
// themselves end; an object with several hard links may be in the store under any of them.
//
#include <zarrbits/verify.hpp>

#include "convert/hdf5/open_source.hpp"
#include "convert/io/files.hpp"
#include "convert/io/s3_access.hpp"
#include "convert/io/source_name.hpp"
#include "convert/text/names.hpp"
#include "convert/text/selection.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/zarr/zarr_reader.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

namespace zarrbits::verification {

namespace {

struct link {
  std::string name;
  haddr_t target = HADDR_UNDEF;  // undefined: cannot be opened
  std::string reason;            // then
};

struct object {
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  std::string path;              // one of them
  haddr_t parent = HADDR_UNDEF;  // the group of that path
  std::vector<link> links;       // of a group: its hard links
  std::string reason;            // why the group cannot be listed, where it cannot
  bool in_store = false;
  bool wanted = false;      // under one of its paths
  bool unwanted = false;    // under another
  bool disclaimed = false;  // the store says that it was not wanted, under one of its paths
};

struct name_and_type {
  std::string name;
  H5L_type_t type;
};

herr_t add_link(hid_t, const char* name, const H5L_info_t* info, void* out) {
  try {
    static_cast<std::vector<name_and_type>*>(out)->push_back({name, info->type});
    return 0;
  } catch (...) {
    return -1;  // no exception may pass through libhdf5
  }
}

class walk {
 public:
  walk(const verify_options& options, const conversion::source_name& name)
      : store_(open_store(options.store, options.endpoint)),
        gate_(std::make_shared<conversion::file_gate>(name.file, false, options.external)),
        at_(options.progress) {
    const std::string& source = name.file;
    if (const std::string why = conversion::why_no_file(source); !why.empty()) throw source_error(why);
    const handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
    check(H5Pset_cache(access.get(), 0, 12421, 64u << 20, 0.75), "cannot prepare to open a file");
    source_ = std::make_unique<const conversion::opened_source>(source, source, access.get(), gate_, h5::handle(), options.lock);
    if (kind_of(store_) == node_kind::none) throw store_error("there is no " + (store_ / "zarr.json").name());
    const store_selection s = selection_of(store_);
    top_ = !name.object.empty() ? name.object : s.object.empty() ? "/" : conversion::unshown(s.object);
    if (name.object.empty() && !s.object.empty()) part_ = s.object;
    wanted_ = conversion::selection(options.include, options.exclude);
    if (wanted_.everything()) claimed_ = conversion::selection(s.include, s.exclude);  // else it is known what was wanted
  }

  verify_result run() {
    list_source();
    select();
    wanted_.require_all_matched();
    pair();
    for (const auto& [address, o] : objects_) {
      if (o.wanted && !o.in_store && o.type != H5O_TYPE_NAMED_DATATYPE) add_missing(o);
    }
    if (!part_.empty()) add_rest();
    source_->require_unchanged();
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const finding& a, const finding& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  void list_source();
  void list_group(haddr_t address, object& group);
  void select();
  void pair();
  void pair_group(const object& group, const std::string& path, const store_folder& folder);
  void compare_dataset(haddr_t address, const std::string& path, const store_folder& folder);
  void check_metadata(const store_folder& folder, finding& f) const;
  void add_missing(const object& o);
  void add_rest();
  bool disclaimed(const object& o) const { return !o.in_store && !o.unwanted && o.disclaimed; }
  std::optional<std::uint64_t> address_of(const std::string& path) const;

  void add(finding&& f) {
    f.path = shown_name(f.path);
    f.reason = shown_name(f.reason);
    ++(f.kind == "group" ? result_.groups : result_.datasets)[static_cast<std::size_t>(f.outcome)];
    if (f.outcome != verdict::equal) result_.findings.push_back(std::move(f));
  }
  static std::string store_path(const store_folder& folder) { return "/" + folder.path(); }

  store_folder store_;
  std::shared_ptr<conversion::file_gate> gate_;  // the converter's: which other files may be read
  std::unique_ptr<const conversion::opened_source> source_;
  haddr_t root_ = 0;
  const std::function<void(const std::string&)>& at_;
  std::string top_;
  std::string part_;  // what the store says that it was made of, where nobody else does
  conversion::selection wanted_, claimed_;
  std::map<haddr_t, object> objects_;
  struct place {
    haddr_t address;
    std::string path;
    store_folder folder;
  };
  std::deque<place> pairs_;
  std::set<std::pair<haddr_t, std::string>> paired_;
  verify_result result_;
};

std::string child_path(const std::string& parent, const std::string& name) {
  return parent == "/" ? "/" + name : parent + "/" + name;
}

void walk::list_source() {
  const handle root = checked(H5Oopen(source_->file(), top_.c_str(), H5P_DEFAULT),
                              top_ == "/" ? "cannot open the root group" : "cannot open what the store was made of");
  H5O_info_t info;
  check(H5Oget_info(root.get(), &info), "cannot open the root group");
  root_ = info.addr;
  object& top = objects_[root_];
  top.type = info.type;
  top.path = top_;
  top.wanted = true;
  result_.attributes += info.num_attrs;
  std::deque<haddr_t> groups;
  if (info.type == H5O_TYPE_GROUP) groups.push_back(root_);
  while (!groups.empty()) {
    const haddr_t address = groups.front();
    groups.pop_front();
    object& group = objects_[address];
    if (at_) at_(group.path);
    list_group(address, group);
    for (const link& l : group.links) {
      if (l.target != HADDR_UNDEF && objects_[l.target].type == H5O_TYPE_GROUP &&
          objects_[l.target].path == child_path(group.path, l.name)) {
        groups.push_back(l.target);
      }
    }
  }
}

void walk::list_group(haddr_t address, object& group) {
  const handle id(H5Oopen_by_addr(source_->file(), address));
  std::vector<name_and_type> names;
  if (!id || H5Literate(id.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_link, &names) < 0) {
    group.reason = "cannot be listed: " + hdf5_reason();
  }
  for (name_and_type& n : names) {
    if (n.type != H5L_TYPE_HARD) {
      ++result_.links;
      continue;
    }
    link l;
    H5O_info_t info;
    const handle child(H5Oopen(id.get(), n.name.c_str(), H5P_DEFAULT));
    if (!child || H5Oget_info(child.get(), &info) < 0) {
      l.reason = hdf5_reason();
    } else {
      l.target = info.addr;
      const auto [at, is_new] = objects_.try_emplace(info.addr);
      if (is_new) {
        at->second.type = info.type;
        at->second.path = child_path(group.path, n.name);
        at->second.parent = address;
        result_.attributes += info.num_attrs;
        if (info.type == H5O_TYPE_NAMED_DATATYPE) ++result_.named_types;
      }
    }
    l.name = std::move(n.name);
    group.links.push_back(std::move(l));
  }
}

// An object is wanted by any of its links, and brings what is below it.
void walk::select() {
  std::deque<object*> brought;
  const auto want = [&](object& o) {
    if (!o.wanted) brought.push_back(&o);
    o.wanted = true;
  };
  for (const auto& [address, group] : objects_) {
    for (const link& l : group.links) {
      if (l.target == HADDR_UNDEF) continue;
      object& o = objects_[l.target];
      const std::string path = conversion::shown(child_path(group.path, l.name));
      if (wanted_.wants(path)) want(o);
      else o.unwanted = true;
      if (!claimed_.wants(path)) o.disclaimed = true;
    }
  }
  while (!brought.empty()) {
    const object& group = *brought.front();
    brought.pop_front();
    for (const link& l : group.links) {
      if (l.target != HADDR_UNDEF && !wanted_.excludes(conversion::shown(child_path(group.path, l.name))))
        want(objects_[l.target]);
    }
  }
}

void walk::pair() {
  pairs_.push_back({root_, top_, store_});
  while (!pairs_.empty()) {
    const place p = std::move(pairs_.front());
    pairs_.pop_front();
    if (!paired_.insert({p.address, p.folder.path()}).second) continue;
    object& o = objects_[p.address];
    o.in_store = true;
    if (o.type == H5O_TYPE_GROUP) {
      pair_group(o, p.path, p.folder);
    } else if (o.type == H5O_TYPE_DATASET) {
      compare_dataset(p.address, p.path, p.folder);
    }
  }
}

void walk::pair_group(const object& group, const std::string& path, const store_folder& folder) {
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "group";
  child_nodes children;
  try {
    if (kind_of(folder) != node_kind::group) {
      f.outcome = verdict::differs;
      f.reason = "is no group in the store";
    } else {
      children = child_nodes(folder);
      check_metadata(folder, f);
    }
  } catch (const store_error& e) {
    f.outcome = verdict::differs;
    f.reason = std::string("cannot be read from the store: ") + e.what();
  } catch (const not_supported& e) {
    f.outcome = verdict::unchecked;
    f.reason = std::string("was not compared: this reader does not know ") + e.what();
  }
  if (f.outcome < verdict::unreadable && !group.reason.empty()) {
    f.outcome = verdict::unreadable;
    f.reason = group.reason;
  }
  add(std::move(f));
  for (const link& l : group.links) {
    const std::vector<store_folder> found = children.take(l.name);
    if (l.target == HADDR_UNDEF) {
      if (!wanted_.wants(conversion::shown(child_path(path, l.name)))) continue;
      finding broken;
      broken.path = child_path(path, l.name);
      broken.kind = "link";
      broken.outcome = verdict::unreadable;
      broken.reason = "cannot be opened: " + l.reason;
      add(std::move(broken));
      continue;
    }
    for (const store_folder& child : found) pairs_.push_back({l.target, child_path(path, l.name), child});
  }
  for (const store_folder& child : children.rest()) result_.only_in_store.push_back(store_path(child));
}

// Readers may take metadata from elsewhere than each node's zarr.json.
void walk::check_metadata(const store_folder& folder, finding& f) const {
  if (const std::string older = older_metadata(folder); !older.empty()) {
    f.outcome = verdict::unchecked;
    f.reason = "has metadata of Zarr v2 beside the zarr.json in the store (" + older +
               "), which were not compared; readers may take either";
  }
  for (const std::string& path : differing_consolidated(folder)) {
    f.outcome = verdict::unchecked;
    f.reason = "has consolidated metadata in the store that say other than the zarr.json of " +
               store_path(path.empty() ? folder : folder / path) + ", which was compared; readers may take either";
    return;
  }
}

void walk::compare_dataset(haddr_t address, const std::string& path, const store_folder& folder) {
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "dataset";
  const handle dataset(H5Oopen_by_addr(source_->file(), address));
  if (!dataset) {
    f.outcome = verdict::unreadable;
    f.reason = "cannot be opened: " + hdf5_reason();
    return add(std::move(f));
  }
  try {
    if (const auto other = conversion::look_beside(dataset.get(), *gate_); !other.obstacle.empty() || other.refused > 0) {
      f.outcome = verdict::unreadable;
      f.reason =
          "cannot be read: " + (other.obstacle.empty() ? "one of its sources must not be: " + other.why_refused : other.obstacle);
      return add(std::move(f));
    }
  } catch (const h5::failure& e) {
    f.outcome = verdict::unreadable;
    f.reason = e.what();
    return add(std::move(f));
  }
  const comparison::lookup find_address = [this](const std::string& p) { return address_of(p); };
  if (at_) at_(path);
  dataset_comparison c(
      dataset.get(), find_address,
      [&] {
    if (at_) at_(path);
      },
      f);
  c.run(folder);
  for (const store_folder& more : c.only_in_store()) result_.only_in_store.push_back(store_path(more));
  result_.elements += c.elements();
  result_.elements_unchecked += c.elements_unchecked();
  add(std::move(f));
}

void walk::add_missing(const object& o) {
  finding f;
  f.path = o.path;
  f.kind = o.type == H5O_TYPE_GROUP ? "group" : "dataset";
  f.outcome = verdict::missing;
  f.reason = "is not in the store";
  if (o.unwanted) {
    f.outcome = verdict::unchecked;
    f.reason = "is not in the store; one of its paths is selected, and another is not";
  } else if (o.disclaimed) {
    f.outcome = verdict::unchecked;
    f.reason =
        "is not in the store, which says itself (zarrbits.selection) that it was not wanted; give verify the same `include` and "
        "`exclude` where that is so";
    const auto above = objects_.find(o.parent);
    if (above != objects_.end() && disclaimed(above->second)) {  // the group stands for all below it
      ++(f.kind == "group" ? result_.groups : result_.datasets)[static_cast<std::size_t>(f.outcome)];
      return;
    }
  }
  add(std::move(f));
}

void walk::add_rest() {
  finding f;
  f.path = "/";
  f.store_path = "/";
  f.kind = "group";
  f.outcome = verdict::unchecked;
  f.reason =
      "was not compared but for " + part_ +
      ", which the store says itself (zarrbits.selection) that it was made of; name it behind the file, as in in.h5:" + part_ +
      ", where that is so";
  add(std::move(f));
}

// References in the store are paths, of the file or of the store.
std::optional<std::uint64_t> walk::address_of(const std::string& path) const {
  for (const std::string& p : {conversion::unshown(path), path, unescape(path)}) {
    H5O_info_t info;
    if (!p.empty() && H5Oget_info_by_name(source_->file(), p.c_str(), &info, H5P_DEFAULT) >= 0) return info.addr;
  }
  H5Eclear2(H5E_DEFAULT);
  return {};
}

}  // namespace

}  // namespace zarrbits::verification

namespace zarrbits {

const char* to_string(verdict v) noexcept {
  static const char* const names[verdict_count] = {"equal", "unchecked", "unreadable", "missing", "differs"};
  return names[static_cast<std::size_t>(v)];
}

bool verify_result::failed() const noexcept {
  return std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome > verdict::unchecked; });
}

bool verify_result::incomplete() const noexcept {
  return !only_in_store.empty() ||
         std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome == verdict::unchecked; });
}

void check_options(const verify_options& options) {
  try {
    conversion::selection(options.include, options.exclude);
  } catch (const convert_error& e) {
    throw verify_error(e.what());
  }
}

verify_result verify(const verify_options& options) {
  check_options(options);
  const h5::silence quiet;
  try {
    const conversion::source_name name = conversion::split_source(options.source);
    conversion::prepare_s3(name.file, options.store, options.endpoint, options.warning);
    return verification::walk(options, name).run();
  } catch (const std::runtime_error& e) {  // of the source, the store, or their names
    throw verify_error(e.what());
  }
}

}  // namespace zarrbits
