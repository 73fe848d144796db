// SPDX-License-Identifier: BSL-1.0
//
// A dry run: what a conversion would do.
//
#ifndef ZARRBITS_CONVERT_PLAN_PLAN_REPORT_HPP
#define ZARRBITS_CONVERT_PLAN_PLAN_REPORT_HPP

#include "convert/plan/dataset_plan.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// Fills in everything for a prepared dataset except its path and its bytes in the source.
void describe(planned_dataset& p, const dataset_plan& dataset, const convert_options& options);

}  // namespace zarrbits::conversion

#endif
