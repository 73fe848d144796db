// SPDX-License-Identifier: BSL-1.0
#include "check/store_check.hpp"

#include "check/array_chunks.hpp"
#include "check/leftovers.hpp"
#include "check/read_failure.hpp"
#include "io/remote_url.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace zarrbits::checking {

namespace {

using nlohmann::json;

constexpr int max_depth = 500;  // a link may lead to a folder above it

// The arrays of a group that share a dimension have to agree on its length, for xarray and netCDF.
class group_dimensions {
 public:
  void add(const std::string& path, const json& names, const std::vector<std::uint64_t>& shape, finding_list& findings) {
    std::set<std::string> own;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!names[d].is_string() || names[d] == "") continue;
      const std::string name = names[d].get<std::string>();
      if (!own.insert(name).second)
        findings.add({finding_severity::notice, "dimensions", path, "",
                      "two of its dimensions are called \"" + name + "\", which xarray does not open"});
      const auto [entry, is_new] = lengths_.try_emplace(name, shape[d], path);
      const auto& [length, first_path] = entry->second;
      if (!is_new && length != shape[d])
        findings.add({finding_severity::notice, "dimensions", path, "",
                      "its dimension \"" + name + "\" has the length " + std::to_string(shape[d]) + ", that of \"" + first_path +
                          "\" has " + std::to_string(length)});
    }
  }

 private:
  std::map<std::string, std::pair<std::uint64_t, std::string>> lengths_;  // and the array that has it first
};

class store_check {
 public:
  store_check(const zarr::store_folder& top, bool has_both_formats, const integrity_options& options, finding_list& findings,
              integrity_report& report)
      : top_(top), has_both_formats_(has_both_formats), options_(options), findings_(findings), report_(report) {}

  void run() {
    group_dimensions dimensions;
    visit(top_, top_.path().empty() ? "/" : "/" + top_.path(), 0, dimensions);
    if (!reports_metadata(options_)) findings_.clear();
    random_numbers random(options_.seed);
    for (array_chunks& array : arrays_) array.sample(options_.metadata_only ? 1 : options_.sample, random);
    if (options_.partition) {
      chunk_partition own(*options_.partition, arrays_);
      for (array_chunks& array : arrays_) array.select(own);
    }
    if (!options_.metadata_only) read_chunks();
    for (array_chunks& array : arrays_) report_.arrays.push_back(array.report(options_, findings_));
    std::sort(report_.arrays.begin(), report_.arrays.end(),
              [](const checked_array& a, const checked_array& b) { return a.path < b.path; });
  }

 private:
  void add(finding_severity severity, const char* rule, const std::string& path, std::string key, std::string reason) {
    findings_.add({severity, rule, path, std::move(key), std::move(reason)});
  }
  template <class F>
  bool succeeds(const char* rule, const std::string& path, F&& run) {
    const auto failure = read_failure_of(run);
    if (failure) add(failure->severity, rule, path, "", failure->reason);
    return !failure;
  }

  void visit(const zarr::store_folder& folder, const std::string& path, int depth, group_dimensions& dimensions) {
    if (options_.progress) options_.progress({path, 0, 0});
    json document;
    metadata::node_kind kind = metadata::node_kind::none;
    succeeds("metadata", path, [&] {
      document = zarr::read_node(folder);
      kind = zarr::as_store_errors([&] { return metadata::require_kind(document); });
    });
    check_members(folder, path, document);
    if (kind == metadata::node_kind::array) return check_array(folder, path, document, dimensions);
    ++report_.groups;
    if (kind == metadata::node_kind::group) check_group(folder, path, document);
    // the content of a group whose metadata cannot be read is checked, too, but an array's chunks would not be known as such
    group_dimensions own_dimensions;
    std::vector<zarr::store_folder> children;
    succeeds("metadata", path, [&] { list_group(folder, path, kind == metadata::node_kind::group, children); });
    std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
    for (const zarr::store_folder& child : children) {
      const std::string child_path = text::join_path(path, child.leaf_name());
      if (depth < max_depth) visit(child, child_path, depth + 1, own_dimensions);
      else add(finding_severity::unchecked, "metadata", child_path, "", "it is too deep: does a link lead to a folder above it?");
    }
  }

  void check_members(const zarr::store_folder& folder, const std::string& path, const json& document) {
    if (!document.is_object()) return;
    if (const json& attributes = metadata::attributes_of(document); !attributes.is_null() && !attributes.is_object())
      add(finding_severity::problem, "metadata", path, "", "its attributes are not a JSON object");
    if (has_both_formats_ || folder.is_v2()) return;
    succeeds("metadata", path, [&] {
      if (const std::string v2 = zarr::v2_metadata_key(folder); !v2.empty())
        add(finding_severity::notice, "metadata", path, v2, "metadata of Zarr v2 beside those of v3, which some readers prefer");
    });
  }

  void check_group(const zarr::store_folder& folder, const std::string& path, const json& document) {
    if (folder.is_bare())
      add(finding_severity::problem, "metadata", path, "", "it is a group without metadata, which most readers do not find");
    for (const std::string& name : metadata::unknown_members(document))
      add(finding_severity::problem, "metadata", path, "",
          "it has the unknown key \"" + name + "\", which readers must understand");
    succeeds("consolidated", path, [&] {
      for (const std::string& node : zarr::differing_consolidated(folder))
        add(finding_severity::problem, "consolidated", path, node,
            "the consolidated metadata do not say what those of the node say");
    });
  }

  // Finds the nodes in a group, and what belongs to none.
  void list_group(const zarr::store_folder& folder, const std::string& path, bool is_readable,
                  std::vector<zarr::store_folder>& children) {
    folder.list([&](const zarr::store_entry& e) {
      if (const std::string leftover = leftover_reason(e.name); !leftover.empty()) {
        add(finding_severity::problem, "leftover", path, e.name, leftover);
      } else if (e.is_folder) {
        if (auto child = folder.node(e)) children.push_back(std::move(*child));
        else if (is_readable) report_stray_keys(folder / e.name, path, e.name + "/", 0);
      } else if (is_readable && e.name != "zarr.json" && !metadata::is_v2_metadata_key(e.name)) {
        report_stray(path, e.name, e);
      }
      return true;
    });
  }

  void report_stray(const std::string& path, const std::string& key, const zarr::store_entry& entry) {
    add(finding_severity::problem, "key", path, key,
        entry.is_readable ? "it belongs to no array or group" : "it is neither a file nor a folder that can be read");
  }

  void report_stray_keys(const zarr::store_folder& folder, const std::string& path, const std::string& prefix, int depth) {
    folder.list([&](const zarr::store_entry& e) {
      if (!e.is_folder) report_stray(path, prefix + e.name, e);
      else if (depth < max_depth && !e.is_link) report_stray_keys(folder / e.name, path, prefix + e.name + "/", depth + 1);
      return true;
    });
  }

  void check_array(const zarr::store_folder& folder, const std::string& path, const json& document,
                   group_dimensions& dimensions) {
    const json& names = metadata::dimension_names_of(document);
    const std::size_t rank = metadata::rank_of(document);
    bool has_names = names.is_array() && names.size() == rank;
    if (!names.is_null() && !has_names) {
      add(finding_severity::problem, "dimensions", path, "",
          "it has " + std::to_string(rank) + " dimensions, and its names of dimensions are " + text::sorted_json_text(names));
    }
    for (std::size_t d = 0; has_names && d < rank; ++d) {
      if (names[d].is_string() || names[d].is_null()) continue;
      add(finding_severity::problem, "dimensions", path, "", "the name of its dimension " + std::to_string(d) + " is not a text");
      has_names = false;
    }
    succeeds("metadata", path, [&] {
      array_chunks& array = arrays_.emplace_back(path, folder);
      if (has_names) dimensions.add(path, names, array.array().shape(), findings_);
    });
    if (arrays_.empty() || arrays_.back().path() != path) {
      report_.arrays.push_back({.path = path});
      return;
    }
    succeeds("metadata", path, [&] {
      array_chunks& array = arrays_.back();
      array.list(findings_, max_objects() - objects_);
      objects_ += array.listed();
    });
  }

  std::uint64_t max_objects() const { return options_.memory / 4 / 16; }

  void read_chunks() {
    // a server's chunks are waited for, and not computed
    const unsigned usual = std::max(detail::usable_processors(), io::is_object_store(options_.name) ? 8U : 1U);
    std::uint64_t total = 0, done = 0;
    for (const array_chunks& array : arrays_) total += array.bytes();
    io::thread_pool pool(options_.threads ? options_.threads : usual, options_.memory / 2);
    for (array_chunks& array : arrays_) {
      array.submit(pool, options_.memory, [&](std::uint64_t bytes) {
        done += bytes;
        if (options_.progress) options_.progress({array.path(), done, total});
      });
    }
    pool.finish();
  }

  const zarr::store_folder& top_;
  const bool has_both_formats_;
  const integrity_options& options_;
  finding_list& findings_;
  integrity_report& report_;
  std::list<array_chunks> arrays_;
  std::uint64_t objects_ = 0;
};

}  // namespace

void check_store(const zarr::store_folder& top, bool has_both_formats, const integrity_options& options, finding_list& findings,
                 integrity_report& report) {
  report.format = top.is_v2() ? "Zarr v2" : "Zarr v3";
  store_check(top, has_both_formats, options, findings, report).run();
}

}  // namespace zarrbits::checking
