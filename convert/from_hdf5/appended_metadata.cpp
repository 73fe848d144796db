// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/appended_metadata.hpp"

#include "append/staged_append.hpp"
#include "array/chunk_grid.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/from_hdf5/dataset_metadata.hpp"
#include "hdf5/dimensions.hpp"
#include "metadata/array_metadata.hpp"
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "zarr/write/node_writer.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace zarrbits::conversion {

namespace {

using kind_type = hdf5::source_object::kind_type;

class appended_metadata_writer {
 public:
  appended_metadata_writer(hdf5_source& source, const append::append_target& store, bool consolidate)
      : source_(source), store_(store), consolidate_(consolidate), out_(source.run().out(), false), dimensions_(source.file()) {}

  appended_metadata run() {
    const std::string& dimension = source_.options().source.concat->dimension;
    std::vector<std::string> coordinates;
    rename_shared();
    for (std::size_t i = 0; i < source_.file().objects().size(); ++i) {
      const hdf5::source_object& o = source_.file().objects()[i];
      if (o.kind == kind_type::dimension && text::base_name(o.store_path) == dimension) note_length(o);
      if (o.kind != kind_type::dataset || !o.joined) continue;
      dataset(i);
      if (o.store_path != "/")
        (text::base_name(o.store_path) == dimension ? coordinates : result_.keys).push_back(metadata::metadata_key(o.store_path));
    }
    result_.keys.insert(result_.keys.end(), coordinates.begin(), coordinates.end());
    root();
    for (const auto& [path, node] : changed_) {
      if (path != "/" && metadata::is_group(node)) result_.keys.push_back(metadata::metadata_key(path));
    }
    for (const auto& [path, node] : changed_) {
      const std::string text = metadata::node_text(node);
      source_.run().out().put(metadata::metadata_key(path), text);
      result_.checksums[metadata::metadata_key(path)] = append::checksum_of_text(text);
    }
    result_.keys.push_back("zarr.json");
    return std::move(result_);
  }

 private:
  // The name that stands for a dimension without one, or null.
  static text::json phony_name(const text::json& node, std::size_t axis) {
    const text::json& names = metadata::dimension_names_of(node);
    const bool is_phony_name = names.is_array() && axis < names.size() && names[axis].is_string() &&
                               text::is_phony(names[axis].get_ref<const std::string&>());
    return is_phony_name ? names[axis] : text::json();
  }

  // Arrays of one length share such a name. Those that grow get another one than those that do not: a dimension has one length.
  void rename_shared() {
    std::map<std::string, std::size_t> grown;
    for (const hdf5::source_object& o : source_.file().objects()) {
      if (o.kind == kind_type::dataset && o.joined) grown[o.store_path] = o.joined->axis;
    }
    std::set<std::string> retained, used;
    for (const auto& [path, node] : store_.nodes()) {
      const auto match = grown.find(path);
      for (std::size_t d = 0; d < metadata::rank_of(node); ++d) {
        const text::json name = phony_name(node, d);
        if (name.is_null()) continue;
        used.insert(name.get<std::string>());
        if (match == grown.end() || match->second != d) retained.insert(name.get<std::string>());
      }
    }
    std::size_t next = 0;
    for (const auto& [path, axis] : grown) {
      const text::json* const node = store_.node(path);
      const text::json name = node ? phony_name(*node, axis) : text::json();
      if (name.is_null() || !retained.contains(name.get<std::string>()) || renamed_.contains(name.get<std::string>())) continue;
      std::string unique_name;
      do unique_name = std::string(text::phony_prefix) + std::to_string(next++);
      while (!used.insert(unique_name).second);
      renamed_[name.get<std::string>()] = unique_name;
    }
  }

  text::json& changed(const std::string& path) { return changed_.try_emplace(path, *store_.node(path)).first->second; }

  void dataset(std::size_t index) {
    const hdf5::source_object& o = source_.file().objects()[index];
    source_.run().set_current(o.path);
    converted_object e;
    e.path = o.path;
    e.kind = object_kind::dataset;
    if (o.store_path != o.path) e.zarr_path = o.store_path;
    text::json grid;
    const auto skip_reason = hdf5::skip_reason([&] {
      const auto plan = source_.planned(index);
      e.source_bytes = plan->data.stored_bytes;
      const work_unit_result result = source_.run().take_result(index);
      if (!result.skipped.empty()) throw hdf5::unsupported_dataset(result.skipped);
      for (const array_result& a : result.arrays) result_.chunk_bytes += a.store_bytes;
      if (plan->parts().size() != 1 || plan->parts()[0].kind != dataset_part::kind_type::array)
        throw hdf5::unsupported_dataset(reason_code::unsupported_feature, "it is not a single array");
      write_dataset_metadata(*plan, out_, dimensions_, text::json::object(), result, e);  // only for the report: what it writes
                                                                                          // is replaced
      if (e.chunks.absent > 0) list_absent(*plan);
      if (plan->data.grid.is_rectilinear()) grid = metadata::chunk_grid_json(plan->array(0)->meta);
    });
    if (skip_reason) {
      throw zarrbits::error(errc::unsupported,
                            "dataset \"" + o.path + "\" cannot be appended to \"" + store_.name() +
                                "\": " + skip_reason->sentence + "; the store is as before",
                            {store_.name(), o.path});
    }
    const std::size_t axis = o.joined->axis;
    text::json& node = changed(o.store_path);
    metadata::set_extent(node, axis, o.joined->length);
    if (const text::json name = phony_name(node, axis); !name.is_null() && renamed_.contains(name.get<std::string>()))
      metadata::set_dimension_name(node, axis, renamed_[name.get<std::string>()]);
    if (!grid.is_null()) metadata::set_chunk_grid(node, std::move(grid));
    text::json limits = store_.notes(o.store_path);
    if (limits.contains("maxshape") && limits["maxshape"].is_array() && limits["maxshape"].size() > axis &&
        limits["maxshape"][axis].is_number()) {
      limits["maxshape"][axis] = o.joined->length;
      metadata::set_note(node, "maxshape", limits["maxshape"]);
    }
    source_.close(index);
    result_.objects.push_back(std::move(e));
  }

  // Lists chunks that were not made: an old file of that name, from a longer array, must not become one.
  void list_absent(const dataset_plan& plan) {
    const hdf5::chunk_source& data = plan.data;
    const std::size_t axis = data.object.joined->axis;
    const std::size_t trailing = metadata::rank_of(*store_.node(data.object.store_path)) - data.grid.rank();
    const array::extents one(data.shards.rank(), 1);
    array::chunk_grid shards{{}, one};
    for (std::size_t d = 0; d < data.shards.rank(); ++d) shards.shape.push_back(data.shards.chunks_along(d));
    array::extents shard_index(shards.rank(), 0);
    const std::uint64_t stored = data.object.joined->stored_count(),
                        begin = data.grid.chunk_of(axis, stored) / data.shards.chunk[axis];
    shards.shape[axis] -= std::min(begin, shards.shape[axis]);
    if (array::product(shards.shape) == 0) return;
    do {
      array::extents shard = shard_index;
      shard[axis] += begin;
      if (data.grid.start(axis, shard[axis] * data.shards.chunk[axis]) >= stored)
        result_.absent.push_back(metadata::chunk_key(data.object.store_path, shard, trailing));
    } while (shards.next(shard_index));
  }

  // A dimension without values: its group notes the length.
  void note_length(const hdf5::source_object& o) {
    const std::string group = o.store_path.rfind('/') == 0 ? "/" : o.store_path.substr(0, o.store_path.rfind('/'));
    text::json dimensions = store_.notes(group);
    if (!dimensions.contains("dimensions") || !dimensions["dimensions"].is_object()) return;
    text::json& lengths = dimensions["dimensions"];
    const std::string name = text::escape_name(o.link_name);
    if (o.overrides.shape.empty() || !lengths.contains(name) || !lengths[name].is_object()) return;
    lengths[name]["length"] = o.overrides.shape[0];
    metadata::set_note(changed(group), "dimensions", lengths);
  }

  void root() {
    text::json& node = changed("/");
    const text::json notes = store_.notes("/");
    text::json list = notes.contains("sources") ? notes["sources"] : text::json::array();
    for (text::json& note : append::source_notes(source_.joined_sources(), source_.files())) list.push_back(std::move(note));
    metadata::set_note(node, "sources", std::move(list));
    consolidate();
  }

  // The root's copy of all metadata, and those that groups below have of theirs: inner ones first, for the outer ones have them.
  void consolidate() {
    for (auto group = store_.nodes().rbegin(); group != store_.nodes().rend(); ++group) {
      const auto& [path, stored] = *group;
      const bool has_copy = metadata::consolidated_metadata_of(stored).is_object();
      if (!metadata::is_group(stored) || !(has_copy || (consolidate_ && path == "/"))) continue;
      const std::string prefix = path == "/" ? "/" : path + "/";
      text::json consolidated = text::json::object();
      bool differs = path == "/";
      for (auto inner = store_.nodes().upper_bound(path); inner != store_.nodes().end(); ++inner) {
        if (!inner->first.starts_with(prefix)) continue;
        const auto updated = changed_.find(inner->first);
        differs = differs || updated != changed_.end();
        consolidated[inner->first.substr(prefix.size())] = updated == changed_.end() ? inner->second : updated->second;
      }
      if (differs) metadata::set_consolidated(changed(path), std::move(consolidated));
    }
  }

  hdf5_source& source_;
  const append::append_target& store_;
  bool consolidate_;
  zarr::node_writer out_;
  hdf5::dimension_namer dimensions_;
  std::map<std::string, text::json> changed_;
  std::map<std::string, std::string> renamed_;  // dimensions without a name
  appended_metadata result_;
};

}  // namespace

appended_metadata write_appended_metadata(hdf5_source& source, const append::append_target& store, bool consolidate) {
  return appended_metadata_writer(source, store, consolidate).run();
}

}  // namespace zarrbits::conversion
