// SPDX-License-Identifier: BSL-1.0
//
// report_filters() and suggest_bits() of zarrbits/inspect.hpp, which throw the exceptions of the code that reads.
//
#ifndef ZARRBITS_INSPECT_FILE_REPORTS_HPP
#define ZARRBITS_INSPECT_FILE_REPORTS_HPP

#include <zarrbits/inspect.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace zarrbits::inspection {

filter_report collect_filters(const file_options& options,
                              const std::function<void(const std::string&, std::uint64_t)>& progress);
suggested_bits collect_bits(const file_options& options, const std::function<void(const suggest_progress&)>& progress);

}  // namespace zarrbits::inspection

#endif
