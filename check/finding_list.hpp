// SPDX-License-Identifier: BSL-1.0
//
// Collects findings in a report of bounded size: all are counted, the first ones of each node and rule are kept.
//
//   finding_list findings(report);
//   findings.add({finding_severity::problem, "metadata", "/a", "", "it has no shape"});
//
#ifndef ZARRBITS_CHECK_FINDING_LIST_HPP
#define ZARRBITS_CHECK_FINDING_LIST_HPP

#include <zarrbits/check.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace zarrbits::checking {

class finding_list {
 public:
  static constexpr std::size_t max_of_rule = 100, max_in_report = 100'000;

  explicit finding_list(integrity_report& report) : report_(report) {}

  void add(integrity_finding finding);
  // Counts more findings of a kind of which the first max_of_rule were added.
  void count(finding_severity severity, std::uint64_t number);
  // Forgets all of them.
  void clear();

 private:
  integrity_report& report_;
  std::map<std::pair<std::string, std::string>, std::size_t> kept_;  // by path and rule
};

}  // namespace zarrbits::checking

#endif
