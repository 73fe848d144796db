// SPDX-License-Identifier: BSL-1.0
//
// The finished work of a conversion, kept in the store until it is complete: a plan with the source and the options, and a line
// for each unit. A killed run, and the shares of several machines, resume from it.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_JOURNAL_HPP
#define ZARRBITS_CONVERT_PIPELINE_JOURNAL_HPP

#include "convert/pipeline/conversion_source.hpp"
#include "convert/pipeline/work_unit_result.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

// For an unfinished store: options that are not set get the values of its plan. True if there were some. Throws
// zarrbits::error if an option is set to another value or, with `strict`, if an option has another value than in the plan.
bool load_plan(zarr::store_writer& out, convert_options& options, bool strict);

// source_identity::region_memory in the plan of an unfinished store; `otherwise` if absent, or 0.
std::uint64_t region_memory_of(zarr::store_writer& out, std::uint64_t otherwise);

class journal {
 public:
  // What to do about the plan.
  enum class start {
    begin,     // write it
    attach,    // write it, or compare it with the existing one
    finalize,  // compare it with the existing one
  };
  // Throws zarrbits::error if the plans differ.
  journal(zarr::store_writer& out, const convert_options& options, const source_identity& source, start start_mode);
  // Writes the rest, if possible.
  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  // The work of earlier runs and other shares. A truncated line is ignored. `only_made`: without what was skipped, which another
  // option, or a file that is there now, may change.
  std::map<work_unit_id, work_unit_result> read(bool only_made);
  // Number of shares that have begun to write; 0 if none has.
  unsigned partition_count() const { return partition_count_; }

  // For who looks at the store meanwhile (find_unfinished()): what this run is to make, of all units; and that it has done so.
  void begin(std::uint64_t all_units, std::uint64_t own_units);
  void end();

  void add(const work_unit_id& id, const work_unit_result& result);
  void flush();
  // Number of units that the store's journals have, as far as this run knows. Writes the rest first, if possible.
  std::uint64_t kept_units() noexcept;
  // Number of all units; 0: not known.
  std::uint64_t total_units() const noexcept { return total_units_; }

 private:
  zarr::store_writer& out_;
  std::string key_;
  std::string waiting_;
  bool begun_ = false;
  std::uint64_t total_units_ = 0, kept_units_ = 0, units_waiting_ = 0;
  unsigned partition_count_ = 0;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

// Whether the same command meets this error again: nothing is worth keeping.
bool is_permanent(const error& e) noexcept;

// The sentence on what a run leaves that has failed.
std::string kept_work_message(const convert_options& options, journal& finished);

}  // namespace zarrbits::conversion

#endif
