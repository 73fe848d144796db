// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/work_unit_state.hpp"

namespace zarrbits::conversion {

work_unit_state::work_unit_state(std::shared_ptr<const dataset_plan> plan, const work_unit_id& identifier,
                                 const chunk_range& chunks)
    : dataset(std::move(plan)), id(identifier), range(chunks) {
  const std::size_t parts = dataset->parts().size();
  result_.arrays.resize(parts);
  assumed_.resize(parts);
  to_do_.assign(parts, true);
  wrong_.assign(parts, 0);
}

void work_unit_state::skip(const position& location, const text::coded_reason& reason) {
  const std::lock_guard lock(mutex_);
  if (!skipped_ || location < skipped_->first) skipped_.emplace(location, reason);
  stop_ = true;
}

void work_unit_state::drop_assumption(const position& location, const wrong_assumption& wrong) {
  const std::lock_guard lock(mutex_);
  const std::size_t part = location.first;
  assumed_[part].*wrong.assumption = false;
  wrong_[part] = 1;
  if (wrong.reason.empty()) return;
  const auto entry = reasons_.find(part);
  if (entry == reasons_.end() || location < entry->second.first)
    reasons_.insert_or_assign(part, std::pair{location, wrong.reason});
}

bool work_unit_state::stopped(std::size_t part) {
  if (stop_) return true;
  const std::lock_guard lock(mutex_);
  return wrong_[part] != 0;
}

void work_unit_state::add(std::size_t part, const array_result& part_result) {
  const std::lock_guard lock(mutex_);
  result_.arrays[part].add(part_result);
}

bool work_unit_state::begin_again() {
  bool is_repeated = false;
  for (std::size_t part = 0; part < wrong_.size(); ++part) {
    to_do_[part] = wrong_[part] != 0;
    if (!wrong_[part]) continue;
    is_repeated = true;
    wrong_[part] = 0;
    result_.arrays[part] = {};
  }
  return is_repeated && !stop_;
}

work_unit_result work_unit_state::take() {
  if (skipped_) {
    result_ = {};
    result_.skipped = skipped_->second;
  } else {
    for (std::size_t part = 0; part < assumed_.size(); ++part) result_.arrays[part].assumed = assumed_[part];
    for (const auto& [part, entry] : reasons_) result_.arrays[part].unpacked = entry.second;
  }
  return std::move(result_);
}

}  // namespace zarrbits::conversion
