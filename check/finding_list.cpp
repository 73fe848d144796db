// SPDX-License-Identifier: BSL-1.0
#include "check/finding_list.hpp"

namespace zarrbits::checking {

void finding_list::count(finding_severity severity, std::uint64_t number) {
  switch (severity) {
    case finding_severity::problem: report_.problems += number; break;
    case finding_severity::unchecked: report_.unchecked += number; break;
    case finding_severity::notice: report_.notices += number; break;
  }
}

void finding_list::add(integrity_finding finding) {
  count(finding.severity, 1);
  if (report_.findings.size() >= max_in_report || ++kept_[{finding.path, finding.rule}] > max_of_rule) return;
  report_.findings.push_back(std::move(finding));
}

void finding_list::clear() {
  report_.findings.clear();
  report_.problems = report_.unchecked = report_.notices = 0;
  kept_.clear();
}

}  // namespace zarrbits::checking
