// SPDX-License-Identifier: BSL-1.0
#include "convert/run/unit_state.hpp"

namespace zarrbits::conversion {

unit_state::unit_state(std::shared_ptr<const dataset_plan> plan, const unit_id& which) : dataset(std::move(plan)), id(which) {
  const std::size_t parts = dataset->parts().size();
  result_.arrays.resize(parts);
  assumed_.resize(parts);
  to_do_.assign(parts, true);
  wrong_.assign(parts, 0);
}

void unit_state::skip(const position& where, const std::string& why) {
  const std::lock_guard held(mutex_);
  if (!skipped_ || where < skipped_->first) skipped_.emplace(where, why);
  stop_ = true;
}

void unit_state::drop_assumption(const position& where, const wrong_assumption& wrong) {
  const std::lock_guard held(mutex_);
  const std::size_t part = where.first;
  assumed_[part].*wrong.which = false;
  wrong_[part] = 1;
  if (wrong.why.empty()) return;
  const auto said = why_.find(part);
  if (said == why_.end() || where < said->second.first) why_.insert_or_assign(part, std::pair{where, wrong.why});
}

bool unit_state::stopped(std::size_t part) {
  if (stop_) return true;
  const std::lock_guard held(mutex_);
  return wrong_[part] != 0;
}

void unit_state::add(std::size_t part, const array_result& made) {
  const std::lock_guard held(mutex_);
  result_.arrays[part].add(made);
}

bool unit_state::begin_again() {
  bool again = false;
  for (std::size_t part = 0; part < wrong_.size(); ++part) {
    to_do_[part] = wrong_[part] != 0;
    if (!wrong_[part]) continue;
    again = true;
    wrong_[part] = 0;
    result_.arrays[part] = {};
  }
  return again && !stop_;
}

unit_result unit_state::take() {
  if (skipped_) {
    result_ = {};
    result_.skipped = skipped_->second;
  } else {
    for (std::size_t part = 0; part < assumed_.size(); ++part) result_.arrays[part].assumed = assumed_[part];
    for (const auto& [part, said] : why_) result_.arrays[part].unpacked = said.second;
  }
  return std::move(result_);
}

}  // namespace zarrbits::conversion
