// SPDX-License-Identifier: BSL-1.0
//
// A conversion in its three steps: find the units, make their chunks (here or on many machines, in any order), write the
// metadata.
//
#ifndef ZARRBITS_CONVERT_RUN_JOB_HPP
#define ZARRBITS_CONVERT_RUN_JOB_HPP

#include "convert/concat/join_files.hpp"
#include "convert/convention/convention_rules.hpp"
#include "convert/plan/dataset_plan.hpp"
#include "convert/run/journal.hpp"
#include "convert/run/planned_units.hpp"
#include "convert/run/unit_result.hpp"
#include "convert/run/unit_runner.hpp"
#include "convert/store/sink.hpp"

#include <zarrbits/convert.hpp>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class job {
 public:
  enum class mode {
    all,     // from the first unit to the metadata; without finish() nothing is left
    resume,  // makes what is missing, as the only process; what is done stays
    join,    // the same, and other processes may do so at the same time
    look,    // writes nothing: there is no store
  };
  // Opens the source and the store. `grown`: the store that the arrays are to follow in; what is written is new chunks alone.
  // Throws convert_error.
  job(const convert_options& given, mode how, std::shared_ptr<const grown_store> grown = nullptr);

  source_file& source() { return *source_; }
  sink& out() { return *out_; }
  // Of several files that are joined; none where the source is one.
  const std::vector<joined_source>& joined_sources() const { return joined_.sources; }
  const joined_files& files() const { return *joined_.files; }
  // Throws convert_error where a file is not as it was.
  void require_unchanged() const;
  const convert_options& options() const { return options_; }
  // The convention that the store follows; null: none.
  const convention_rules* rules() const { return rules_; }
  zarrbits::convention convention() const { return rules_ ? rules_->which : zarrbits::convention::none; }

  // All units, in order. Opens every dataset.
  std::vector<planned_unit> units();
  // What is to become of each dataset.
  convert_plan plan();

  // A dataset, planned. What is asked for again is the same one, if it has been kept: as many stay open as the memory has room
  // for, until close(). Throws skip_dataset, h5::failure. By one thread.
  std::shared_ptr<dataset_plan> planned(std::size_t index);
  // The same before dataset_plan::prepare(), of which the attributes can be told where that throws.
  std::shared_ptr<dataset_plan> opened(std::size_t index);
  void close(std::size_t index) { kept_.erase(index); }

  // Makes what the journal lacks of all units, or of these.
  void run();
  void run(std::span<const planned_unit> units);

  bool done(const unit_id& id) const { return results_.contains(id); }
  unsigned shares() const { return journal_ ? journal_->shares() : 0; }
  // All units of a dataset as one. Nothing of what was asked is kept.
  unit_result take(std::size_t dataset);

  // A reason as the caller words it: convert_options::wording.
  std::string worded(const std::string& reason) const { return options_.wording ? options_.wording(reason) : reason; }

  void at_hand(const std::string& path);
  void object_done() { ++objects_done_; }

 private:
  void doubt_journal(mode how);
  bool is_as_journalled(std::size_t dataset, const std::map<std::uint64_t, std::uint64_t>& bytes);
  void prepare_queue();
  void run_dataset(std::size_t index, const std::vector<std::uint64_t>* numbers);
  void unit_done(const unit_id& id, unit_result&& result);
  void tell();
  void look_ahead();
  void warn_of_chunks(std::size_t index);

  convert_options options_;  // with those of the plan
  std::unique_ptr<source_file> source_;
  std::shared_ptr<const grown_store> grown_;
  joined_store joined_;
  const convention_rules* rules_ = nullptr;
  std::unique_ptr<sink> out_;
  std::unique_ptr<journal> journal_;
  std::map<unit_id, unit_result> results_;
  std::map<std::size_t, std::shared_ptr<dataset_plan>> kept_;
  std::mutex mutex_;
  std::string at_hand_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_ = 0;
  std::unique_ptr<work_queue> queue_;  // its threads end before what they use
  std::unique_ptr<unit_runner> runner_;
};

}  // namespace zarrbits::conversion

#endif
