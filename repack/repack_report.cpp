// SPDX-License-Identifier: BSL-1.0
//
// The reports of repack() and check_layout() as JSON.
//
#include <zarrbits/repack.hpp>
#include <zarrbits/version.hpp>

#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace zarrbits {

namespace {

using json = nlohmann::ordered_json;

json findings_json(const std::vector<layout_finding>& findings) {
  json list = json::array();
  for (const layout_finding& f : findings) {
    list.push_back(
        {{"path", f.path}, {"rule", f.rule}, {"value", f.value}, {"wanted", f.wanted}, {"met", f.met}, {"required", f.required}});
  }
  return list;
}

}  // namespace

bool conforms(const std::vector<layout_finding>& findings) noexcept {
  return std::all_of(findings.begin(), findings.end(), [](const layout_finding& f) { return f.met || !f.required; });
}

bool layout_report::conforms() const noexcept { return zarrbits::conforms(findings); }

std::string layout_report::report_json() const {
  json report = {{"version", 1},
                 {"checker", std::string("zarrbits ") + version()},
                 {"source", text::escape_name(source)},
                 {"layout", to_string(layout)}};
  report["conforms"] = conforms();
  report["findings"] = findings_json(findings);
  return text::json_text(report, 1) + "\n";
}

std::string repack_report::report_json() const {
  json list = json::array();
  for (const repacked_dataset& d : datasets) {
    json e = {{"path", d.path}, {"outcome", d.recoded ? "recoded" : "copied"}};
    if (!d.reason.empty()) e["reason"] = d.reason;
    if (!d.source_chunk.empty()) e["source_chunk"] = d.source_chunk;
    if (!d.chunk.empty()) e["chunk"] = d.chunk;
    if (!d.source_filters.empty()) e["source_filters"] = d.source_filters;
    if (!d.filters.empty()) e["filters"] = d.filters;
    e["chunks"] = d.chunks;
    e["source_bytes"] = d.source_bytes;
    e["bytes"] = d.bytes;
    list.push_back(std::move(e));
  }
  json report = {{"version", 1},
                 {"repacker", std::string("zarrbits ") + version()},
                 {"source", text::escape_name(source)},
                 {"target", text::escape_name(target)},
                 {"layout", to_string(layout)}};
  report["unchanged"] = unchanged;
  report["objects"] = objects;
  report["dangling_references"] = dangling_references;
  report["source_bytes"] = source_bytes;
  report["bytes"] = bytes;
  report["metadata_bytes"] = metadata_bytes;
  report["seconds"] = seconds;
  report["findings"] = findings_json(findings);
  report["datasets"] = std::move(list);
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
