// SPDX-License-Identifier: BSL-1.0
//
// The report of check() as JSON.
//
#include <zarrbits/check.hpp>
#include <zarrbits/version.hpp>

#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits {

const char* to_string(finding_severity severity) noexcept {
  switch (severity) {
    case finding_severity::problem: return "problem";
    case finding_severity::unchecked: return "unchecked";
    case finding_severity::notice: return "notice";
  }
  return "unknown";
}

std::string integrity_report::report_json() const {
  using json = nlohmann::ordered_json;
  json report = {{"version", 1}, {"checker", std::string("zarrbits ") + version()}, {"name", text::escape_name(name)}};
  if (!format.empty()) report["format"] = format;
  if (partition) report["partition"] = {{"index", partition->index}, {"count", partition->count}};
  report["sound"] = is_sound();
  report["problems"] = problems;
  report["unchecked"] = unchecked;
  report["notices"] = notices;
  report["groups"] = groups;
  if (!digest.empty()) report["digest"] = digest;
  report["seconds"] = seconds;
  report["arrays"] = json::array();
  for (const checked_array& a : arrays) {
    report["arrays"].push_back({{"path", a.path},
                                {"chunks", a.chunks},
                                {"checked", a.checked},
                                {"missing", a.missing},
                                {"damaged", a.damaged},
                                {"bytes", a.bytes}});
  }
  report["findings"] = json::array();
  for (const integrity_finding& f : findings) {
    json entry = {{"severity", to_string(f.severity)}, {"rule", f.rule}, {"path", f.path}};
    if (!f.key.empty()) entry["key"] = text::escape_name(f.key);
    entry["reason"] = f.reason;
    report["findings"].push_back(std::move(entry));
  }
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
