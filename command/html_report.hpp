// SPDX-License-Identifier: BSL-1.0
//
// A report as one HTML page, which needs nothing else: no script, no style sheet, no image.
//
//   write(html_report(result.report_json()));
//
#ifndef ZARRBITS_COMMAND_HTML_REPORT_HPP
#define ZARRBITS_COMMAND_HTML_REPORT_HPP

#include <string>
#include <string_view>

namespace zarrbits::command {

// `report`: the JSON object that convert, finalize, verify or plan writes. What was lost comes first.
std::string html_report(std::string_view report);

}  // namespace zarrbits::command

#endif
