// SPDX-License-Identifier: BSL-1.0
//
// A conversion to a Zarr store in its three steps, whatever its source is: find the units, make their chunks (here or on many
// machines, in any order), write the metadata.
//
//   converter run(options, converter::mode::full, make_source);
//   run.run();
//   convert_result result = run.finish();
//
#ifndef ZARRBITS_CONVERT_PIPELINE_CONVERTER_HPP
#define ZARRBITS_CONVERT_PIPELINE_CONVERTER_HPP

#include "convert/pipeline/conversion_source.hpp"
#include "convert/pipeline/journal.hpp"
#include "convert/pipeline/partition.hpp"
#include "convert/pipeline/start_time.hpp"
#include "convert/pipeline/work_unit_result.hpp"
#include "io/thread_pool.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class converter {
 public:
  enum class mode {
    full,      // from the first unit to the metadata; without finish() the store is removed, unless an earlier run began it, or
               // keep_partial_store()
    resume,    // makes the missing units, as the only process; finished units stay
    worker,    // the same, while other processes may do so too
    finalize,  // the same, but there must be an unfinished store
    dry_run,   // writes nothing: there is no store
  };
  // Makes the source of a converter, which then outlives it. It may complete the options.
  using source_factory = std::function<std::unique_ptr<conversion_source>(converter& run, convert_options& options)>;

  // Opens the source and the store. Throws zarrbits::error.
  converter(const convert_options& requested, mode run_mode, const source_factory& make_source, const start_time& started = {});

  const convert_options& options() const { return options_; }
  conversion_source& source() { return *source_; }
  zarr::store_writer& out() { return *out_; }

  // All units, in order. Plans every object.
  std::vector<planned_unit> units();
  std::vector<convert_worker::unit> missing_units();
  // Makes all units, or these, except those in the journal.
  void run();
  void run(std::span<const work_unit_id> units);
  // Makes the units of options().share.
  void run_partition();
  // Throws zarrbits::error if units are missing, here and elsewhere.
  void require_all_done();
  // Writes the metadata: the store is complete.
  convert_result finish();
  // What this run has done so far.
  convert_result result(bool is_complete);
  // A dry run.
  convert_plan plan(const plan_options& further);

  // This run has failed: leaves the completed work to a later run, if any of it is of use. A sentence on it; empty if nothing
  // stays.
  std::string keep_partial_store();

  // For the source.

  io::thread_pool& queue() { return *queue_; }
  // A reason in the caller's words: convert_execution::wording.
  std::string worded(const std::string& reason) const {
    const auto& wording = options_.execution.wording;
    return wording ? wording(reason) : reason;
  }
  void set_current(const std::string& path);
  void object_done() { ++objects_done_; }
  // Thread-safe. `bytes`: of the source.
  void unit_done(const work_unit_id& id, work_unit_result&& result);
  void advance(std::uint64_t bytes);
  // Merges all units of an object, and releases them.
  work_unit_result take_result(std::size_t object) { return take_units(results_, object); }
  // A sample in place of a unit, for the metadata of a dry run.
  void set_sample(std::size_t object, work_unit_result&& result) { results_[{object, 0}] = std::move(result); }

 private:
  bool attaches() const;
  bool grows() const { return options_.source.concat && options_.source.concat->append; }
  void open_store();
  void wrap_writer();
  void open_journal(bool goes_on);
  enum class on_mismatch { refuse, reconvert };
  void check_journal(on_mismatch action);
  bool matches_journal(std::size_t object, const std::map<std::uint64_t, std::uint64_t>& bytes);
  bool has_result(const work_unit_id& id);
  void begin_units();
  void run_object(std::size_t object, const std::vector<std::uint64_t>* numbers);
  void finish_units();
  void report_progress();
  std::optional<std::uint64_t> count_metadata();

  convert_options options_;  // including those of the plan
  mode mode_;
  start_time started_;
  std::unique_ptr<conversion_source> source_;
  std::unique_ptr<zarr::store_writer> out_;
  std::unique_ptr<journal> journal_;
  std::map<work_unit_id, work_unit_result> results_;
  std::mutex mutex_;
  std::string current_path_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_resumed_ = 0, bytes_ = 0;
  std::unique_ptr<io::thread_pool> queue_;  // declared last: its threads must end before the things that they use
};

}  // namespace zarrbits::conversion

#endif
