// SPDX-License-Identifier: BSL-1.0
#include "verify/tree_comparison.hpp"

#include "text/name_escaping.hpp"
#include "verify/blocks.hpp"
#include "verify/chunk_warning.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/selected_coordinates.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace zarrbits::verification {

std::uint64_t work_memory(const verify_options& options) { return options.memory / 2; }

io::access_hint extent_of(const verify_options& options, const source_name& source) {
  const bool reads_all = source.object.empty() && options.include.empty() && options.exclude.empty();
  return reads_all ? io::access_hint::full : io::access_hint::partial;
}

tree_comparison::tree_comparison(const verify_options& options, const zarr::store_folder& store, const source_name& name,
                                 joined_arrays* joined, bool first, comparison_progress& progress, io::thread_pool& pool,
                                 verify_result& result)
    : options_(options),
      store_(store),
      joined_(joined),
      first_(first),
      progress_(progress),
      pool_(pool),
      policy_(options.concat ? link_policy::keep : options.links),  // convert copies none for joined files
      result_(result) {
  const hdf5::handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
  check(H5Pset_cache(access.get(), 0, 12421, 64u << 20, 0.75), "cannot prepare to open a file");
  source_ = std::make_shared<const hdf5::opened_source>(name.file, access.get(), options.remote, options.memory / 4,
                                                        options.external, options.lock, extent_of(options, name), true);
  gate_ = source_->policy();
  if (zarr::kind_of(store_) == metadata::node_kind::none) throw zarr::store_error("there is no " + (store_ / "zarr.json").name());
  const zarr::store_selection s = zarr::selection_of(store_);
  std::string top = !name.object.empty() ? name.object : s.object.empty() ? "/" : text::unescape_name(s.object);
  const std::string only =
      name.object.empty() && zarr::kind_of(store_) == metadata::node_kind::array ? only_dataset(source_->file()) : "";
  if (!only.empty()) top = only;
  else if (name.object.empty() && !s.object.empty()) part_ = s.object;
  selections_ = std::make_shared<selections>();
  selections_->requested = text::selection(options.include, options.exclude);
  if (selections_->requested.matches_all())
    selections_->claimed = text::selection(s.include, s.exclude);  // otherwise the caller has selected
  tree_.emplace(source_->file(), top, progress_);
  begin();
  pairs_.push_back({tree_->root(), top, store_});
}

tree_comparison::tree_comparison(const tree_comparison& parent, hid_t object, const std::string& path,
                                 const zarr::store_folder& folder)
    : options_(parent.options_),
      store_(parent.store_),
      joined_(parent.joined_),
      first_(parent.first_),
      gate_(parent.gate_),
      source_(parent.source_),
      progress_(parent.progress_),
      pool_(parent.pool_),
      selections_(parent.selections_),
      policy_(parent.policy_),
      in_source_(parent.in_source_ && parent.tree_->is_in_file(object)),
      result_(parent.result_) {
  tree_.emplace(*parent.tree_, object, path, progress_);
  begin();
  pairs_.push_back({tree_->root(), path, folder});
}

void tree_comparison::begin() {
  rules_ = convention_of(zarr::read_node(store_), *tree_, result_.is_exchanged);
  std::vector<std::string> coordinates = selected_coordinates(options_, *tree_, rules_);
  if (joined_) coordinates = joined_->common_coordinates(std::move(coordinates));
  for (const std::string& path : coordinates) selections_->requested.include(text::pattern_of_path(path));
  tree_->select(selections_->requested, selections_->claimed);
  metadata_.emplace(*tree_, rules_, result_);
  links_.emplace(*tree_, *metadata_, [this](const std::string& path) {
    const std::string escaped_path = text::escape_name(path);
    if (rules_.exported && is_exported_type(path)) return verdict::equal;
    return !selections_->requested.matches(escaped_path) ? verdict::equal
           : selections_->claimed.matches(escaped_path)  ? verdict::missing
                                                         : verdict::unchecked;
  });
}

void tree_comparison::run() {
  if (!joined_) tree_->count_work(progress_);
  pair();
  links_->finish();
  for (const auto& [address, o] : tree_->objects()) {
    if (o.selected && !o.in_store && (o.type != H5O_TYPE_NAMED_DATATYPE || o.has_attributes)) add_missing(o);
  }
}

void tree_comparison::finish() {
  selections_->requested.require_all_matched();
  if (!part_.empty()) add_rest();
  source_->require_unchanged();  // of a file on a server, all responses were of one content
  std::stable_sort(result_.findings.begin(), result_.findings.end(),
                   [](const finding& a, const finding& b) { return a.path < b.path; });
}

void tree_comparison::pair() {
  while (!pairs_.empty()) {
    const place p = std::move(pairs_.front());
    pairs_.pop_front();
    if (!paired_.insert({p.address, p.folder.path()}).second) continue;
    source_object& o = tree_->object_at(p.address);
    progress_.begin_object(p.path);
    o.in_store = true;
    if (o.type == H5O_TYPE_GROUP) {
      pair_group(p, o);
    } else if (o.type == H5O_TYPE_DATASET) {
      compare_dataset(p.address, p.path, p.folder);
    } else if (o.type == H5O_TYPE_NAMED_DATATYPE) {
      compare_named_type(p);
    }
    progress_.end_object(o.bytes);
  }
}

// A named type is a node if it has attributes.
void tree_comparison::compare_named_type(const place& p) {
  finding f;
  f.path = p.path;
  f.store_path = store_path(p.folder);
  f.kind = "named type";
  try {
    const hdf5::handle type = tree_->open(p.address);
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

void tree_comparison::pair_group(const place& p, const source_object& group) {
  const auto& [address, path, folder] = p;
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "group";
  zarr::child_nodes children;
  nlohmann::json node;
  try {
    if (zarr::kind_of(folder) != metadata::node_kind::group) {
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
      for (const zarr::store_folder& child : children.match(l.name)) {
        stored[child.leaf_name()] = l.name;
        pair_link(p, l, child);
      }
      continue;
    }
    if (rules_.netcdf && rules_.netcdf->has_no_variable(l.target)) {
      tree_->object_at(l.target).in_store = true;
      nodes.insert(l.name);
      const bool noted = n.notes().value("dimensions", nlohmann::json::object()).contains(text::escape_name(l.name));
      if (!noted && rules_.is_part && is_exported_dimension(*rules_.netcdf, group, l)) continue;
      if (const hdf5::handle scale = tree_->open(l.target); scale && node.is_object() && tree_->object_at(l.target).selected)
        compare_dimension(scale.get(), n, l);
      continue;
    }
    const netcdf_dimensions* const dimensions = rules_.netcdf ? rules_.netcdf.get() : rules_.exported.get();
    const bool is_exported = rules_.exported && rules_.exported->has_no_variable(l.target);
    std::string name_in_store = l.name;
    std::vector<zarr::store_folder> matches;
    if (!is_exported || !rules_.exported->has_hidden(group, l)) {
      matches = children.match(l.name);
      if (matches.empty() && dimensions) {
        const std::string name = dimensions->name_of(group, l);
        matches = children.match(name);
        if (rules_.exported) name_in_store = name;  // `export` gave it the other one
      }
    }
    if (matches.empty() && is_exported && is_exported_dimension(*rules_.exported, group, l)) {
      tree_->object_at(l.target).in_store = true;
      nodes.insert(l.name);
      continue;
    }
    if (l.target == HADDR_UNDEF) {
      if (!selections_->requested.matches(text::escape_name(child_path(path, l.name)))) continue;
      finding broken;
      broken.path = child_path(path, l.name);
      broken.kind = "link";
      broken.outcome = verdict::unreadable;
      broken.reason = "cannot be opened: " + l.reason;
      add(std::move(broken));
      continue;
    }
    if (matches.empty() && node.is_object() && tree_->object_at(l.target).type == H5O_TYPE_DATASET) {
      if (const hdf5::handle dataset = tree_->open(l.target); dataset) metadata_->skipped(dataset.get(), n, l.name);
    }
    for (const zarr::store_folder& child : matches) {
      nodes.insert(l.name);
      stored[child.leaf_name()] = name_in_store;
      pairs_.push_back({l.target, child_path(path, l.name), child});
    }
  }
  if (node.is_object()) {
    if (const hdf5::handle id = tree_->open(address); id) metadata_->attributes(id.get(), n, false);
    std::set<std::string> handled = {"attribute_types", "attribute_shapes", "attribute_values",
                                     "links",           "named_types",      "skipped",
                                     "names",           "dimensions",       "order"};
    if (folder.path().empty()) {
      handled.merge(std::set<std::string>{"selection", "convention", "sources"});
      const hdf5::handle creation(H5Fget_create_plist(source_->file()));
      hsize_t size = 0;
      if (creation && H5Pget_userblock(creation.get(), &size) >= 0 && size > 0 && tree_->top() == "/") {
        handled.insert("user_block");
        metadata_->user_block(n, *source_, size);
      }
    }
    metadata_->notes(n, {}, handled);
    metadata_->names(n, stored);
    if (const hdf5::handle id = tree_->open(address); id && !joined_) metadata_->order(id.get(), n);
    links_->group(address, n, nodes);
    const nlohmann::json noted = n.notes().value("links", nlohmann::json::object());
    if (const hdf5::handle id = tree_->open(address); id && policy_ != link_policy::keep) {
      std::set<std::string> copied;
      for (const auto& [name, original] : stored) copied.insert(original);
      for (const source_link& l : group.links) {
        if (!copied.contains(l.name) && noted.contains(text::escape_name(l.name))) expect_copy(p, id.get(), l);
      }
    }
  }
  for (const zarr::store_folder& child : children.unmatched()) result_.only_in_store.push_back(store_path(child));
}

// The store has a note of the link, but no copy of its target.
void tree_comparison::expect_copy(const place& group, hid_t id, const source_link& link) {
  const std::string path = child_path(group.path, link.name);
  if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT && link.type != H5L_TYPE_EXTERNAL) return;
  if (!selections_->requested.matches(text::escape_name(path))) return;
  const hdf5::handle object(H5Oopen(id, link.name.c_str(), H5P_DEFAULT));
  H5O_info_t info;
  const bool target_exists = object && H5Oget_info(object.get(), &info) >= 0;
  H5Eclear2(H5E_DEFAULT);
  if (!target_exists || info.type == H5O_TYPE_NAMED_DATATYPE || tree_->is_on_path(group.path, info))
    return;  // these have no copy
  const bool outside = !in_source_ || link.type == H5L_TYPE_EXTERNAL || !tree_->is_in_file(object.get());
  if (!policy_ && !outside && !rules_.links_are_objects) return;
  finding f;
  f.path = group.path;
  f.store_path = store_path(group.folder);
  f.kind = "link";
  f.attribute = link.name;
  f.outcome = policy_ ? verdict::missing : verdict::unchecked;
  f.reason = "has a link " + format_text(text::escape_name(link.name)) +
             " that the store has as a note, without a copy of its target" +
             (policy_ ? "" : "; use `links` keep if that was asked for");
  add(std::move(f));
}

// The node at the link's place is a copy of its target.
void tree_comparison::pair_link(const place& group, const source_link& link, const zarr::store_folder& child) {
  const std::string path = child_path(group.path, link.name);
  const hdf5::handle parent = tree_->open(group.address);
  gate_->forget_refusal();
  const hdf5::handle object(parent ? H5Oopen(parent.get(), link.name.c_str(), H5P_DEFAULT) : -1);
  H5O_info_t info;
  if (object && H5Oget_info(object.get(), &info) >= 0) {
    if (tree_->contains(info)) return pairs_.push_back({info.addr, path, child});
    return tree_comparison(*this, object.get(), path, child).run();
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
void tree_comparison::check_metadata(const zarr::store_folder& folder, finding& f) const {
  if (const std::string older = zarr::v2_metadata_key(folder); !older.empty()) {
    f.outcome = verdict::unchecked;
    f.reason = "has metadata of Zarr v2 beside the zarr.json in the store (" + older +
               "), which were not compared; readers may use either";
  }
  if (const std::string reason = refused_field(folder); !reason.empty()) {
    f.outcome = verdict::differs;
    f.reason = reason;
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
bool tree_comparison::is_exported_type(const std::string& path) {
  const auto address = tree_->address_of(text::escape_name(path));
  const auto entry = address ? tree_->objects().find(*address) : tree_->objects().end();
  return entry != tree_->objects().end() && entry->second.type == H5O_TYPE_NAMED_DATATYPE && !entry->second.has_attributes;
}

// True for a dimension without a variable that `export` made of the names that the store's arrays have for it.
bool tree_comparison::is_exported_dimension(const netcdf_dimensions& dimensions, const source_object& group,
                                            const source_link& link) {
  if (!stored_dimensions_) stored_dimensions_.emplace(store_);
  const netcdf_dimensions::dimension& d = *dimensions.find(link.target);
  if (!stored_dimensions_->contains(group.path, d.name, d.length)) return false;
  const hdf5::handle scale = tree_->open(link.target);
  return scale && has_only_bookkeeping(scale.get());
}

// A netCDF dimension without a variable. If it is joined, its length is that of the arrays, which are compared.
void tree_comparison::compare_dimension(hid_t scale, const node_pair& group, const source_link& link) {
  std::uint64_t length = rules_.netcdf->find(link.target)->length;
  const std::string name = text::escape_name(link.name);
  if (joined_ && joined_->is_dimension(name)) {
    const auto notes = group.notes().value("dimensions", nlohmann::json::object()).value(name, nlohmann::json::object());
    if (notes.contains("length") && notes["length"].is_number_unsigned()) length = notes["length"].get<std::uint64_t>();
  }
  metadata_->dimension(scale, group, link.name, length);
}

void tree_comparison::compare_metadata(hid_t dataset, const std::string& path, const zarr::store_folder& folder) {
  try {
    if (zarr::kind_of(folder) == metadata::node_kind::none) return;
    // a store of `convert` has "dimension_names"; FILE may be the export of another one
    const nlohmann::json node = with_dimension_names(zarr::read_node(folder));
    if (node.is_object()) metadata_->dataset(dataset, {path, store_path(folder), node}, folder);
  } catch (const zarr::store_error&) {  // reported when values are compared
  }
}

void tree_comparison::compare_dataset(haddr_t address, const std::string& path, const zarr::store_folder& folder) {
  finding f;
  f.path = path;
  f.store_path = store_path(folder);
  f.kind = "dataset";
  const hdf5::handle dataset = tree_->open(address);
  if (!dataset) {
    f.outcome = verdict::unreadable;
    f.reason = "cannot be opened: " + hdf5_reason();
    return add(std::move(f));
  }
  try {
    const auto external_data = hdf5::find_external_dependencies(dataset.get(), *gate_);
    if (!external_data.is_cyclic && !joined_) compare_metadata(dataset.get(), path, folder);
    if (!external_data.obstacle.empty() || external_data.refused > 0) {
      f.outcome = verdict::unreadable;
      f.reason = "cannot be read: " + (external_data.obstacle.empty()
                                           ? "one of its sources must not be read: " + external_data.refusal_reason
                                           : external_data.obstacle.sentence);
      return add(std::move(f));
    }
  } catch (const hdf5::failure& e) {
    f.outcome = verdict::unreadable;
    f.reason = e.what();
    return add(std::move(f));
  }
  std::vector<std::uint64_t> lengths;
  if (rules_.netcdf)
    for (const netcdf_dimensions::dimension* d : rules_.netcdf->dimensions_of(address)) lengths.push_back(d ? d->length : 0);
  dataset_comparison c(
      dataset.get(), *tree_, std::move(lengths), [&](std::uint64_t bytes) { progress_.add_bytes(bytes); }, pool_,
      work_memory(options_), f);
  if (rules_.netcdf_forms()) c.set_netcdf();
  if (rules_.exported) c.set_exported();
  c.set_warning_callback([&](const zarr::zarr_array& array) { warn_about_chunks(options_, path, array); });
  std::optional<joined_place> lies;
  try {
    if (joined_) lies = joined_->place(dataset.get(), address, path, f.store_path, *tree_, rules_);
    if (lies) joined_->find_units(*lies, address, store_, f.store_path, *tree_);
    if (lies) c.set_place(*lies);
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
  for (const zarr::store_folder& extra_node : c.only_in_store()) result_.only_in_store.push_back(store_path(extra_node));
  result_.elements += c.elements();
  result_.elements_unchecked += c.elements_unchecked();
  add(std::move(f));
}

void tree_comparison::add_missing(const source_object& o) {
  finding f;
  f.path = o.path;
  f.kind = o.type == H5O_TYPE_GROUP ? "group" : o.type == H5O_TYPE_DATASET ? "dataset" : "named type";
  f.outcome = verdict::missing;
  f.reason = o.type == H5O_TYPE_NAMED_DATATYPE ? "has attributes, which are not in the store" : "is not in the store";
  if (o.unselected) {
    f.outcome = verdict::unchecked;
    f.reason = "is not in the store; one of its paths is selected, and another is not";
  } else if (o.disclaimed) {
    f.outcome = verdict::unchecked;
    f.reason =
        "is not in the store, which says (zarrbits.selection) that it was not selected; if so, pass verify the same `include` "
        "and "
        "`exclude`";
    const auto parent = tree_->objects().find(o.parent);
    if (parent != tree_->objects().end() && parent->second.only_disclaimed()) {  // the group covers all below it
      ++(f.kind == "group" ? result_.groups : result_.datasets)[static_cast<std::size_t>(f.outcome)];
      return;
    }
  }
  add(std::move(f));
}

void tree_comparison::add_rest() {
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
