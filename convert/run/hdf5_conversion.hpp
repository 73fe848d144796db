// SPDX-License-Identifier: BSL-1.0
//
// A conversion in its three steps: find the units, make their chunks (here or on many machines, in any order), write the
// metadata.
//
#ifndef ZARRBITS_CONVERT_RUN_HDF5_CONVERSION_HPP
#define ZARRBITS_CONVERT_RUN_HDF5_CONVERSION_HPP

#include "conventions/convention_rules.hpp"
#include "convert/concat/join_files.hpp"
#include "convert/plan/dataset_plan.hpp"
#include "convert/run/journal.hpp"
#include "convert/run/partition.hpp"
#include "convert/run/work_unit_result.hpp"
#include "convert/run/work_unit_runner.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/detail/convert_front_end.hpp>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class hdf5_conversion {
 public:
  enum class mode {
    full,      // from the first unit to the metadata; without out().finish() the store is removed, unless an earlier run began
               // it, or keep_partial_store()
    resume,    // makes the missing units, as the only process; finished units stay
    worker,    // the same, while other processes may do so too
    finalize,  // the same, but there must be an unfinished store
    dry_run,   // writes nothing: there is no store
  };
  // Opens the source and the store. `grown`: the store whose arrays grow; only new chunks are written then. Throws
  // zarrbits::error.
  hdf5_conversion(const convert_options& requested, mode run_mode, std::shared_ptr<const append::append_target> grown = nullptr);

  hdf5::source_file& source() { return *source_; }
  const hdf5::source_file& source() const { return *source_; }
  zarr::store_writer& out() { return *out_; }
  // The files that are joined; none if the source is one file.
  const std::vector<joined_source>& joined_sources() const { return joined_.sources; }
  const hdf5::source_files& files() const { return *joined_.files; }
  // Throws zarrbits::error if a file has changed.
  void require_unchanged() const;
  const convert_options& options() const { return options_; }
  // The convention that the store follows; null: none.
  const conventions::convention_rules* rules() const { return rules_; }
  zarrbits::convention convention() const { return rules_ ? rules_->kind : zarrbits::convention::none; }

  // All units, in order. Opens every dataset.
  std::vector<planned_unit> units();
  // The plan of each dataset.
  convert_plan plan(const plan_options& further);

  // A dataset, planned. Later calls return the same one if it is still open: as many stay open until close() as the memory
  // allows. Throws unsupported_dataset, hdf5::failure. Only one thread may call it.
  std::shared_ptr<dataset_plan> planned(std::size_t index);
  // Like planned(), before dataset_plan::prepare(); its attributes can be read even if that throws.
  std::shared_ptr<dataset_plan> opened(std::size_t index);
  void close(std::size_t index) { open_datasets_.erase(index); }

  // Makes all units, or these, except those in the journal.
  void run();
  void run(std::span<const planned_unit> units);
  // Makes the units of options().share.
  void run_partition();

  // All units are made, here or elsewhere; the metadata follow.
  void units_done();

  // This run has failed: leaves the completed work to a later run, if any of it is of use. A sentence on it; empty if nothing
  // stays.
  std::string keep_partial_store();

  bool has_result(const work_unit_id& id) const { return results_.contains(id); }
  unsigned partition_count() const { return journal_ ? journal_->partition_count() : 0; }
  // Merges all units of a dataset, and releases them.
  work_unit_result take_result(std::size_t dataset);

  // A reason in the caller's words: convert_options::wording.
  std::string worded(const std::string& reason) const {
    const auto& wording = front_end_of(options_).wording;
    return wording ? wording(reason) : reason;
  }

  void set_current(const std::string& path);
  void object_done() { ++objects_done_; }

 private:
  void order_sources();
  std::unique_ptr<hdf5::source_file> open_source(bool tells_case_apart);
  std::unique_ptr<hdf5::source_file> read_source(bool tells_case_apart);
  void warn_of_source() const;
  bool attaches(mode run_mode) const;
  void open_store(mode run_mode);
  void open_journal(mode run_mode, bool goes_on);
  enum class on_mismatch { refuse, reconvert };
  void check_journal(on_mismatch action);
  bool matches_journal(std::size_t dataset, const std::map<std::uint64_t, std::uint64_t>& bytes);
  void prepare_queue();
  void run_dataset(std::size_t index, const std::vector<std::uint64_t>* numbers);
  void finish_units();
  void unit_done(const work_unit_id& id, work_unit_result&& result);
  void report_progress();
  void preflight();
  void warn_of_chunks(const hdf5::source_object& o, const dataset_plan& dataset) const;
  void estimate(std::size_t index, const std::shared_ptr<dataset_plan>& dataset, std::uint64_t sample_bytes, planned_dataset& p);
  std::optional<std::uint64_t> count_metadata();
  std::optional<double> estimate_seconds(const convert_plan& plan);

  convert_options options_;  // including those of the plan
  hdf5::source_options source_options_;
  std::vector<std::string> sources_;  // of several files: all, in their order
  source_name name_;                  // the source or, of several files, the first
  std::unique_ptr<hdf5::source_file> source_;
  std::shared_ptr<const append::append_target> grown_;
  joined_store joined_;
  std::vector<std::string> coordinates_;  // variables of what `include` selects, and that it does not
  const conventions::convention_rules* rules_ = nullptr;
  std::unique_ptr<zarr::store_writer> out_;
  std::unique_ptr<journal> journal_;
  std::map<work_unit_id, work_unit_result> results_;
  std::map<std::size_t, std::shared_ptr<dataset_plan>> open_datasets_;
  std::mutex mutex_;
  std::string current_path_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_resumed_ = 0, bytes_ = 0;
  std::unique_ptr<work_unit_runner> runner_;
  std::unique_ptr<io::thread_pool> queue_;  // declared last: its threads must end before the things that they use
};

// The sizes of the source or, with `result.sources`, of each of its files.
void count_source(const hdf5_conversion& converter, convert_result& result);

}  // namespace zarrbits::conversion

#endif
