// SPDX-License-Identifier: BSL-1.0
//
// A unit while its chunks are made: their results, and the wrong assumptions of its plan. Several threads call it, in any order.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_WORK_UNIT_STATE_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_WORK_UNIT_STATE_HPP

#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/dataset_plan.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

class work_unit_state {
 public:
  using position = std::pair<std::size_t, array::extents>;  // part and chunk

  work_unit_state(std::shared_ptr<const dataset_plan> plan, const work_unit_id& identifier, const chunk_range& chunks);

  const std::shared_ptr<const dataset_plan> dataset;
  const work_unit_id id;
  const chunk_range range;

  // The dataset cannot be converted: its other chunks are not needed. If there are several reasons, that of the first chunk is
  // reported.
  void skip(const position& location, const text::coded_reason& reason);
  // Makes the part again, without this assumption.
  void drop_assumption(const position& location, const wrong_assumption& wrong);
  bool stopped() const { return stop_; }
  bool stopped(std::size_t part);
  // The assumptions under which the part is made, and whether it has to be made (again). Call between rounds.
  const assumptions& assumed(std::size_t part) const { return assumed_[part]; }
  bool to_do(std::size_t part) const { return to_do_[part]; }

  void add(std::size_t part, const array_result& part_result);
  // For a part that a single thread makes.
  array_result& result_of(std::size_t part) { return result_.arrays[part]; }
  std::vector<derived_array>& derived_arrays() { return result_.derived_arrays; }

  // Counts open users: batches in progress, and their producer. True for the last one to close.
  void open() { ++open_; }
  bool close() { return --open_ == 0; }

  // Call after the last close: begins another round if an assumption was wrong. False if all is done.
  bool begin_again();
  work_unit_result take();

 private:
  std::mutex mutex_;
  work_unit_result result_;
  std::vector<assumptions> assumed_;  // for each part
  std::vector<bool> to_do_;
  std::vector<char> wrong_;                                          // parts whose assumptions are wrong
  std::map<std::size_t, std::pair<position, std::string>> reasons_;  // said of a part: the first chunk that was found
  std::optional<std::pair<position, text::coded_reason>> skipped_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> open_ = 0;
};

}  // namespace zarrbits::conversion

#endif
