// SPDX-License-Identifier: BSL-1.0
#include "verify/walk.hpp"

#include "text/shown.hpp"
#include "verify/chunk_warning.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace zarrbits::verification {

io::read_extent extent_of(const verify_options& options, const source_name& source) {
  const bool all = source.object.empty() && options.include.empty() && options.exclude.empty();
  return all ? io::read_extent::whole : io::read_extent::parts;
}

walk::walk(const verify_options& options, const zarr::store_folder& store, const source_name& name, joined_arrays* joined, bool first,
           verify_result& result)
    : options_(options),
      store_(store),
      joined_(joined),
      first_(first),
      at_(options.progress),
      policy_(options.concat ? link_policy::keep : options.links),  // convert copies none for joined files
      result_(result) {
  const handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
  check(H5Pset_cache(access.get(), 0, 12421, 64u << 20, 0.75), "cannot prepare to open a file");
  source_ = std::make_shared<const hdf5::opened_source>(name.file, access.get(), options.remote, options.memory / 4,
                                                              options.external, options.lock, extent_of(options, name));
  gate_ = source_->gate();
  if (zarr::kind_of(store_) == zarr::node_kind::none) throw zarr::store_error("there is no " + (store_ / "zarr.json").name());
  const zarr::store_selection s = zarr::selection_of(store_);
  std::string top = !name.object.empty() ? name.object : s.object.empty() ? "/" : text::unshown(s.object);
  const std::string only = name.object.empty() && zarr::kind_of(store_) == zarr::node_kind::array ? only_dataset(source_->file()) : "";
  if (!only.empty()) top = only;
  else if (name.object.empty() && !s.object.empty()) part_ = s.object;
  selections_ = std::make_shared<selections>();
  selections_->wanted = text::selection(options.include, options.exclude);
  if (selections_->wanted.everything())
    selections_->claimed = text::selection(s.include, s.exclude);  // otherwise the caller has selected
  tree_.emplace(source_->file(), top, at_);
  begin();
  pairs_.push_back({tree_->root(), top, store_});
}

walk::walk(const walk& above, hid_t object, const std::string& path, const zarr::store_folder& folder)
    : options_(above.options_),
      store_(above.store_),
      joined_(above.joined_),
      first_(above.first_),
      gate_(above.gate_),
      source_(above.source_),
      at_(above.at_),
      selections_(above.selections_),
      policy_(above.policy_),
      in_source_(above.in_source_ && above.tree_->in_its_file(object)),
      result_(above.result_) {
  tree_.emplace(*above.tree_, object, path, at_);
  begin();
  pairs_.push_back({tree_->root(), path, folder});
}

void walk::begin() {
  tree_->select(selections_->wanted, selections_->claimed);
  rules_ = convention_of(zarr::read_node(store_), *tree_);
  metadata_.emplace(*tree_, rules_, result_);
  links_.emplace(*tree_, *metadata_, [this](const std::string& path) {
    const std::string shown = text::shown(path);
    if (rules_.exported && is_exported_type(path)) return verdict::equal;
    return !selections_->wanted.wants(shown)   ? verdict::equal
           : selections_->claimed.wants(shown) ? verdict::missing
                                               : verdict::unchecked;
  });
}

void walk::run() {
  pair();
  links_->finish();
  for (const auto& [address, o] : tree_->objects()) {
    if (o.wanted && !o.in_store && (o.type != H5O_TYPE_NAMED_DATATYPE || o.has_attributes)) add_missing(o);
  }
}

void walk::finish() {
  selections_->wanted.require_all_matched();
  if (!part_.empty()) add_rest();
  source_->require_unchanged();  // of a file on a server, all responses were of one content
  std::stable_sort(result_.findings.begin(), result_.findings.end(),
                   [](const finding& a, const finding& b) { return a.path < b.path; });
}

void walk::pair() {
  while (!pairs_.empty()) {
    const place p = std::move(pairs_.front());
    pairs_.pop_front();
    if (!paired_.insert({p.address, p.folder.path()}).second) continue;
    source_object& o = tree_->at(p.address);
    if (at_) at_(p.path);
    o.in_store = true;
    if (o.type == H5O_TYPE_GROUP) {
      pair_group(p, o);
    } else if (o.type == H5O_TYPE_DATASET) {
      compare_dataset(p.address, p.path, p.folder);
    } else if (o.type == H5O_TYPE_NAMED_DATATYPE) {
      compare_named_type(p);
    }
  }
}

// A named type is a node if it has attributes.
void walk::compare_named_type(const place& p) {
  finding f;
  f.path = p.path;
  f.store_path = store_path(p.folder);
  f.kind = "named type";
  try {
    const handle type = tree_->open(p.address);
    if (!type) throw source_error(hdf5_reason());
    const nlohmann::json node = zarr::read_node(p.folder);
    const node_pair n{p.path, f.store_path, node};
    metadata_->attributes(type.get(), n, false);
    metadata_->notes(n, {{"datatype", type_note(type.get())}}, {"attribute_types", "attribute_shapes", "attribute_values"});
    return;  // the type itself counts if its group has it
  } catch (const source_error& e) {
    f.outcome = verdict::unreadable;
    f.reason = std::string("cannot be read from the source: ") + e.what();
  } catch (const zarr::store_error& e) {
    f.outcome = verdict::differs;
    f.reason = std::string("cannot be read from the store: ") + e.what();
  }
  add(std::move(f));
}

void walk::pair_group(const place& p, const source_object& group) {
  const auto& [address, path, folder] = p;
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "group";
  zarr::child_nodes children;
  nlohmann::json node;
  try {
    if (zarr::kind_of(folder) != zarr::node_kind::group) {
      f.outcome = verdict::differs;
      f.reason = "is not a group in the store";
    } else {
      node = zarr::read_node(folder);
      children = zarr::child_nodes(folder, node);
      check_metadata(folder, f);
    }
  } catch (const zarr::store_error& e) {
    f.outcome = verdict::differs;
    f.reason = std::string("cannot be read from the store: ") + e.what();
  } catch (const zarr::not_supported& e) {
    f.outcome = verdict::unchecked;
    f.reason = std::string("was not compared: this reader does not support ") + e.what();
  }
  if (f.outcome < verdict::unreadable && !group.reason.empty()) {
    f.outcome = verdict::unreadable;
    f.reason = group.reason;
  }
  const node_pair n{path, f.store_path, node};
  add(std::move(f));
  std::set<std::string> nodes;                // the names of links that have a node
  std::map<std::string, std::string> stored;  // HDF5 names, by those of the nodes
  for (const source_link& l : group.links) {
    if (l.type != H5L_TYPE_HARD) {
      for (const zarr::store_folder& child : children.take(l.name)) {
        stored[child.last()] = l.name;
        pair_link(p, l, child);
      }
      continue;
    }
    if (rules_.netcdf && rules_.netcdf->has_no_variable(l.target)) {
      tree_->at(l.target).in_store = true;
      nodes.insert(l.name);
      const bool noted = n.notes().value("dimensions", nlohmann::json::object()).contains(text::shown(l.name));
      if (!noted && rules_.is_part && is_exported_dimension(*rules_.netcdf, group, l)) continue;
      if (const handle scale = tree_->open(l.target); scale && node.is_object() && tree_->at(l.target).wanted)
        compare_dimension(scale.get(), n, l);
      continue;
    }
    const netcdf_dimensions* const dimensions = rules_.netcdf ? rules_.netcdf.get() : rules_.exported.get();
    const bool is_exported = rules_.exported && rules_.exported->has_no_variable(l.target);
    std::string name_in_store = l.name;
    std::vector<zarr::store_folder> found;
    if (!is_exported || !rules_.exported->has_hidden(group, l)) {
      found = children.take(l.name);
      if (found.empty() && dimensions) {
        const std::string name = dimensions->name_of(group, l);
        found = children.take(name);
        if (rules_.exported) name_in_store = name;  // `export` gave it the other one
      }
    }
    if (found.empty() && is_exported && is_exported_dimension(*rules_.exported, group, l)) {
      tree_->at(l.target).in_store = true;
      nodes.insert(l.name);
      continue;
    }
    if (l.target == HADDR_UNDEF) {
      if (!selections_->wanted.wants(text::shown(child_path(path, l.name)))) continue;
      finding broken;
      broken.path = child_path(path, l.name);
      broken.kind = "link";
      broken.outcome = verdict::unreadable;
      broken.reason = "cannot be opened: " + l.reason;
      add(std::move(broken));
      continue;
    }
    if (found.empty() && node.is_object() && tree_->at(l.target).type == H5O_TYPE_DATASET) {
      if (const handle dataset = tree_->open(l.target); dataset) metadata_->skipped(dataset.get(), n, l.name);
    }
    for (const zarr::store_folder& child : found) {
      nodes.insert(l.name);
      stored[child.last()] = name_in_store;
      pairs_.push_back({l.target, child_path(path, l.name), child});
    }
  }
  if (node.is_object()) {
    if (const handle id = tree_->open(address); id) metadata_->attributes(id.get(), n, false);
    std::set<std::string> known = {"attribute_types", "attribute_shapes", "attribute_values",
                                   "links",           "named_types",      "skipped",
                                   "names",           "dimensions",       "order"};
    if (folder.path().empty()) {
      known.merge(std::set<std::string>{"selection", "convention", "sources"});
      const handle creation(H5Fget_create_plist(source_->file()));
      hsize_t size = 0;
      if (creation && H5Pget_userblock(creation.get(), &size) >= 0 && size > 0 && tree_->top() == "/") {
        known.insert("user_block");
        metadata_->user_block(n, *source_, size);
      }
    }
    metadata_->notes(n, {}, known);
    metadata_->names(n, stored);
    if (const handle id = tree_->open(address); id && !joined_) metadata_->order(id.get(), n);
    links_->group(address, n, nodes);
    const nlohmann::json noted = n.notes().value("links", nlohmann::json::object());
    if (const handle id = tree_->open(address); id && policy_ != link_policy::keep) {
      std::set<std::string> copied;
      for (const auto& [name, original] : stored) copied.insert(original);
      for (const source_link& l : group.links) {
        if (!copied.contains(l.name) && noted.contains(text::shown(l.name))) expect_copy(p, id.get(), l);
      }
    }
  }
  for (const zarr::store_folder& child : children.rest()) result_.only_in_store.push_back(store_path(child));
}

// The store has a note of the link, but no copy of its target.
void walk::expect_copy(const place& group, hid_t id, const source_link& link) {
  const std::string path = child_path(group.path, link.name);
  if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT && link.type != H5L_TYPE_EXTERNAL) return;
  if (!selections_->wanted.wants(text::shown(path))) return;
  const handle object(H5Oopen(id, link.name.c_str(), H5P_DEFAULT));
  H5O_info_t info;
  const bool there = object && H5Oget_info(object.get(), &info) >= 0;
  H5Eclear2(H5E_DEFAULT);
  if (!there || info.type == H5O_TYPE_NAMED_DATATYPE || tree_->leads_back(group.path, info)) return;  // these have no copy
  const bool outside = !in_source_ || link.type == H5L_TYPE_EXTERNAL || !tree_->in_its_file(object.get());
  if (!policy_ && !outside && !rules_.links_are_objects) return;
  finding f;
  f.path = group.path;
  f.store_path = store_path(group.folder);
  f.kind = "link";
  f.attribute = link.name;
  f.outcome = policy_ ? verdict::missing : verdict::unchecked;
  f.reason = "has a link " + show_text(text::shown(link.name)) +
             " that the store has as a note, without a copy of its target" +
             (policy_ ? "" : "; use `links` keep if that was asked for");
  add(std::move(f));
}

// The node at the link's place is a copy of its target.
void walk::pair_link(const place& group, const source_link& link, const zarr::store_folder& child) {
  const std::string path = child_path(group.path, link.name);
  const handle above = tree_->open(group.address);
  gate_->forget_refusal();
  const handle object(above ? H5Oopen(above.get(), link.name.c_str(), H5P_DEFAULT) : -1);
  H5O_info_t info;
  if (object && H5Oget_info(object.get(), &info) >= 0) {
    if (tree_->has(info)) return pairs_.push_back({info.addr, path, child});
    return walk(*this, object.get(), path, child).run();
  }
  finding f;
  f.path = path;
  f.store_path = store_path(child);
  f.kind = "link";
  f.outcome = verdict::unreadable;
  const std::string reason = hdf5_reason();
  f.reason = "leads to an object that cannot be opened: " + (gate_->refusal().empty() ? reason : gate_->refusal());
  add(std::move(f));
}

// Readers may take metadata from another place than each node's zarr.json.
void walk::check_metadata(const zarr::store_folder& folder, finding& f) const {
  if (const std::string older = zarr::older_metadata(folder); !older.empty()) {
    f.outcome = verdict::unchecked;
    f.reason = "has metadata of Zarr v2 beside the zarr.json in the store (" + older +
               "), which were not compared; readers may use either";
  }
  if (const std::string why = refused_field(folder); !why.empty()) {
    f.outcome = verdict::differs;
    f.reason = why;
    return;
  }
  for (const std::string& path : zarr::differing_consolidated(folder)) {
    f.outcome = verdict::unchecked;
    f.reason = "has consolidated metadata in the store that disagree with the zarr.json of " +
               store_path(path.empty() ? folder : folder / path) + ", which was compared; readers may use either";
    return;
  }
}

// True for a named type that the store need not have: netCDF needs one for each type that is not one number or text.
bool walk::is_exported_type(const std::string& path) {
  const auto address = tree_->address_of(text::shown(path));
  const auto found = address ? tree_->objects().find(*address) : tree_->objects().end();
  return found != tree_->objects().end() && found->second.type == H5O_TYPE_NAMED_DATATYPE && !found->second.has_attributes;
}

// True for a dimension without a variable that `export` made of the names that the store's arrays have for it.
bool walk::is_exported_dimension(const netcdf_dimensions& all, const source_object& group, const source_link& link) {
  if (!stored_dimensions_) stored_dimensions_.emplace(store_);
  const netcdf_dimensions::dimension& d = *all.at(link.target);
  if (!stored_dimensions_->has(group.path, d.name, d.length)) return false;
  const handle scale = tree_->open(link.target);
  return scale && has_bookkeeping_alone(scale.get());
}

// A netCDF dimension without a variable. If it is joined, its length is that of the arrays, which are compared.
void walk::compare_dimension(hid_t scale, const node_pair& group, const source_link& link) {
  std::uint64_t length = rules_.netcdf->at(link.target)->length;
  const std::string name = text::shown(link.name);
  if (joined_ && joined_->is_dimension(name)) {
    const auto notes = group.notes().value("dimensions", nlohmann::json::object()).value(name, nlohmann::json::object());
    if (notes.contains("length") && notes["length"].is_number_unsigned()) length = notes["length"].get<std::uint64_t>();
  }
  metadata_->dimension(scale, group, link.name, length);
}

void walk::compare_metadata(hid_t dataset, const std::string& path, const zarr::store_folder& folder) {
  try {
    const nlohmann::json node = zarr::kind_of(folder) == zarr::node_kind::none ? nlohmann::json() : zarr::read_node(folder);
    if (node.is_object()) metadata_->dataset(dataset, {path, store_path(folder), node}, folder);
  } catch (const zarr::store_error&) {  // reported when values are compared
  }
}

void walk::compare_dataset(haddr_t address, const std::string& path, const zarr::store_folder& folder) {
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "dataset";
  const handle dataset = tree_->open(address);
  if (!dataset) {
    f.outcome = verdict::unreadable;
    f.reason = "cannot be opened: " + hdf5_reason();
    return add(std::move(f));
  }
  try {
    const auto other = hdf5::find_external_data(dataset.get(), *gate_);
    if (!other.endless && !joined_) compare_metadata(dataset.get(), path, folder);
    if (!other.obstacle.empty() || other.refused > 0) {
      f.outcome = verdict::unreadable;
      f.reason = "cannot be read: " +
                 (other.obstacle.empty() ? "one of its sources must not be read: " + other.why_refused : other.obstacle);
      return add(std::move(f));
    }
  } catch (const hdf5::failure& e) {
    f.outcome = verdict::unreadable;
    f.reason = e.what();
    return add(std::move(f));
  }
  std::vector<std::uint64_t> lengths;
  if (rules_.netcdf)
    for (const netcdf_dimensions::dimension* d : rules_.netcdf->of(address)) lengths.push_back(d ? d->length : 0);
  dataset_comparison c(
      dataset.get(), *tree_, std::move(lengths),
      [&] {
    if (at_) at_(path);
      },
      f);
  if (rules_.netcdf_forms()) c.know_netcdf();
  if (rules_.exported) c.know_export();
  c.warn_with([&](const zarr::zarr_array& array) { warn_of_chunks(options_, path, array); });
  std::optional<joined_place> lies;
  try {
    if (joined_) lies = joined_->place(dataset.get(), address, path, f.store_path, *tree_, rules_);
    if (lies) joined_->find_units(*lies, address, store_, f.store_path, *tree_);
    if (lies) c.lie_at(*lies);
    else if (joined_ && !first_ && !joined_->all_equal()) return;
    c.run(folder);
    if (lies) joined_->note_length(f.store_path, c.joined_length());
    if (joined_ && c.by_meaning()) metadata_->unpacked(f.store_path);
  } catch (const std::runtime_error& e) {
    f.outcome = verdict::unreadable;
    f.reason = std::string("has dimensions that cannot be read from the source: ") + e.what();
  }
  metadata_->add_dimension(lies && lies->added ? joined_->added_dimension() : "");
  if (joined_ && first_) compare_metadata(dataset.get(), path, folder);
  for (const zarr::store_folder& more : c.only_in_store()) result_.only_in_store.push_back(store_path(more));
  result_.elements += c.elements();
  result_.elements_unchecked += c.elements_unchecked();
  add(std::move(f));
}

void walk::add_missing(const source_object& o) {
  finding f;
  f.path = o.path;
  f.kind = o.type == H5O_TYPE_GROUP ? "group" : o.type == H5O_TYPE_DATASET ? "dataset" : "named type";
  f.outcome = verdict::missing;
  f.reason = o.type == H5O_TYPE_NAMED_DATATYPE ? "has attributes, which are not in the store" : "is not in the store";
  if (o.unwanted) {
    f.outcome = verdict::unchecked;
    f.reason = "is not in the store; one of its paths is selected, and another is not";
  } else if (o.disclaimed) {
    f.outcome = verdict::unchecked;
    f.reason =
        "is not in the store, which says (zarrbits.selection) that it was not selected; if so, pass verify the same `include` "
        "and "
        "`exclude`";
    const auto above = tree_->objects().find(o.parent);
    if (above != tree_->objects().end() && above->second.only_disclaimed()) {  // the group covers all below it
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
      "was not compared, except for " + part_ +
      ": the store says (zarrbits.selection) that it was made from that; if so, name it after the file, as in in.h5:" + part_ +
      ", where that is so";
  add(std::move(f));
}

}  // namespace zarrbits::verification
