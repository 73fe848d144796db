// SPDX-License-Identifier: BSL-1.0
//
// The report of an export as JSON.
//
#include <zarrbits/export.hpp>
#include <zarrbits/version.hpp>

#include "convert/concat/join_files.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace zarrbits {

bool export_report::has_losses() const noexcept {
  if (std::any_of(sources.begin(), sources.end(), [](const joined_source& s) { return s.left_out; })) return true;
  return std::any_of(objects.begin(), objects.end(),
                     [](const exported_object& o) { return o.outcome == outcome::skipped || !o.lost_chunks.empty(); });
}

std::string export_report::report_json() const {
  using json = nlohmann::ordered_json;
  json list = json::array();
  std::map<std::string, std::uint64_t> counts;
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped})
    counts[to_string(o)] = 0;
  for (const exported_object& o : objects) {
    json e = {{"path", o.path}, {"kind", to_string(o.kind)}};
    if (o.kind == object_kind::attribute) e["attribute"] = o.attribute;
    e["outcome"] = to_string(o.outcome);
    ++counts[to_string(o.outcome)];
    if (!o.reason.empty()) e.update({{"code", to_string(o.code)}, {"reason", o.reason}});
    if (!o.store_path.empty()) e["store_path"] = o.store_path;
    if (o.kind == object_kind::dataset && o.outcome != outcome::skipped) {
      if (!o.filters.empty()) e["filters"] = o.filters;
      e["chunks"] = o.chunks;
      e["store_bytes"] = o.store_bytes;
      e["file_bytes"] = o.file_bytes;
    }
    if (!o.lost_chunks.empty()) e["lost_chunks"] = o.lost_chunks;
    list.push_back(std::move(e));
  }
  json report = {{"version", 1},
                 {"exporter", std::string("zarrbits ") + version()},
                 {"store", text::escape_name(store)},
                 {"target", text::escape_name(target)},
                 {"netcdf", netcdf}};
  if (!sources.empty()) conversion::add_sources(report, sources);
  report["file_bytes"] = file_bytes;
  report["seconds"] = seconds;
  report["counts"] = json::object();
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped})
    report["counts"][to_string(o)] = counts[to_string(o)];
  report["objects"] = std::move(list);
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
