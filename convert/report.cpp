// SPDX-License-Identifier: BSL-1.0
//
// The report of a conversion as JSON.
//
#include <zarrbits/convert.hpp>
#include <zarrbits/version.hpp>

#include "convert/concat/join_files.hpp"
#include "convert/plan/plan_report.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace zarrbits {

const char* to_string(object_kind k) noexcept {
  static const char* const names[] = {"group", "dataset", "datatype", "attribute", "link", "user_block"};
  return names[static_cast<std::size_t>(k)];
}

const char* to_string(link_kind k) noexcept {
  static const char* const names[] = {"hard", "soft", "external", "user", "broken"};
  return names[static_cast<std::size_t>(k)];
}

const char* to_string(outcome o) noexcept {
  constexpr const char* names[] = {"raw", "rewrapped", "recoded", "mapped", "skipped"};
  return names[static_cast<std::size_t>(o)];
}

const char* to_string(profile p) noexcept {
  constexpr const char* names[] = {"portable", "native", "recode"};
  return names[static_cast<std::size_t>(p)];
}

const char* to_string(grid_type g) noexcept {
  constexpr const char* names[] = {"regular", "rectilinear"};
  return names[static_cast<std::size_t>(g)];
}

const char* to_string(convention c) noexcept {
  constexpr const char* names[] = {"none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables"};
  return names[static_cast<std::size_t>(c)];
}

bool convert_result::has_losses() const noexcept {
  if (std::any_of(sources.begin(), sources.end(), [](const joined_source& s) { return s.left_out; })) return true;
  for (const converted_object& o : objects) {
    if (o.lossy || (o.outcome == outcome::skipped && o.selected)) return true;
  }
  return false;
}

std::string convert_result::report_json() const {
  using json = nlohmann::ordered_json;
  json list = json::array();
  std::map<std::string, std::uint64_t> counts;
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped})
    counts[to_string(o)] = 0;
  std::uint64_t lossy = 0;
  for (const converted_object& o : objects) {
    json e = {{"path", o.path}, {"kind", to_string(o.kind)}};
    if (o.kind == object_kind::attribute) e["attribute"] = o.attribute;
    if (o.link) e["link"] = to_string(*o.link);
    if (!o.target.empty()) e["target"] = o.target;
    e["outcome"] = to_string(o.outcome);
    if (!o.selected) e["selected"] = false;
    if (o.lossy) e["lossy"] = true;
    if (!o.reason.empty()) e.update({{"code", to_string(o.code)}, {"reason", o.reason}});
    if (!o.zarr_path.empty() && o.zarr_path != o.path) e["zarr_path"] = o.zarr_path;
    if (!o.zarr_name.empty() && o.zarr_name != o.attribute) e["zarr_name"] = o.zarr_name;
    if (o.kind == object_kind::dataset && o.outcome != outcome::skipped) {
      const chunk_counts& c = o.chunks;
      json chunks = json::object();
      if (c.raw) chunks["raw"] = c.raw;
      if (c.rewrapped) chunks["rewrapped"] = c.rewrapped;
      if (c.recoded) chunks["recoded"] = c.recoded;
      if (c.absent) chunks["absent"] = c.absent;
      if (c.lost) chunks["lost"] = c.lost;
      if (!chunks.empty()) e["chunks"] = chunks;
      if (!o.lost_chunks.empty()) e["lost_chunks"] = o.lost_chunks;
      e["source_bytes"] = o.source_bytes;
      e["store_bytes"] = o.store_bytes;
    }
    ++counts[to_string(o.outcome)];
    if (o.lossy) ++lossy;
    list.push_back(std::move(e));
  }
  json summary = json::object();
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped}) {
    summary[to_string(o)] = counts[to_string(o)];
  }
  summary["lossy"] = lossy;
  json report = {{"version", 1},
                 {"converter", std::string("zarrbits ") + version()},
                 {"source", text::escape_name(source)},
                 {"store", text::escape_name(store)},
                 {"profile", to_string(profile)},
                 {"convention", to_string(convention)},
                 {"links", {{"copied", links.copied}, {"kept", links.kept}, {"lost", links.lost}}}};
  if (!started.empty()) report["started"] = started;
  report["seconds"] = seconds;
  report["source_bytes"] = source_bytes;
  report["files"] = store_objects;
  report["bytes"] = store_bytes;
  if (referenced_objects > 0) report["referred"] = {{"objects", referenced_objects}, {"bytes", referenced_bytes}};
  report["objects"] = std::move(list);
  report["summary"] = std::move(summary);
  conversion::add_other_files(report, other_files, refused_files);
  if (sources.empty()) report["sources"] = json::array({{{"file", text::escape_name(source)}, {"bytes", source_bytes}}});
  else conversion::add_sources(report, sources);
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
