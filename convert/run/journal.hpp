// SPDX-License-Identifier: BSL-1.0
//
// The finished work of a conversion, kept in the store until it is complete: a plan with the source and the options, and a line
// for each unit. A killed run, and the shares of several machines, resume from it.
//
#ifndef ZARRBITS_CONVERT_RUN_JOURNAL_HPP
#define ZARRBITS_CONVERT_RUN_JOURNAL_HPP

#include "convert/run/unit_result.hpp"
#include "hdf5/source_file.hpp"
#include "zarr/write/sink.hpp"

#include <zarrbits/convert.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

// For a store that somebody began: options that are not set get the values of its plan. True if there were some. Throws
// zarrbits::error if an option is set to another value or, with `same`, if an option has another value than in the plan.
bool take_plan(zarr::sink& out, convert_options& options, bool same);

// What tells a source from another one of the same name.
struct source_identity {
  std::uint64_t size = 0;
  std::string etag = {};                      // in S3
  std::int64_t seconds = 0, nanoseconds = 0;  // of the last change; 0 if that is not known
  std::string checksum = {};                  // of what costs little to read
  std::string joined = {};                    // joined_store::checksum
  std::uint64_t region_memory = 0;            // a Zarr store: the `memory` by which its regions were chosen
};
source_identity identity_of(const hdf5::source_file& file, const std::string& joined);
// That of the plan of a store that somebody began, if there is one.
std::uint64_t region_memory_of(zarr::sink& out, std::uint64_t otherwise);

class journal {
 public:
  // What to do about the plan.
  enum class start {
    begin,   // write it
    join,    // write it, or compare it with the existing one
    finish,  // compare it with the existing one
  };
  // Throws zarrbits::error if the plans differ.
  journal(zarr::sink& out, const convert_options& options, const source_identity& source, start how);
  // Writes the rest, if possible.
  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  // The work of earlier runs and other shares. A truncated line is ignored. `only_made`: without what was skipped, which another
  // option, or a file that is there now, may change.
  std::map<unit_id, unit_result> read(bool only_made);
  // Number of shares that have begun to write; 0 if none has.
  unsigned shares() const { return shares_; }

  // For who looks at the store meanwhile (find_unfinished()): what this run is to make, of all units; and that it has done so.
  void begin(std::uint64_t all_units, std::uint64_t own_units);
  void end();

  void add(const unit_id& id, const unit_result& result);
  void flush();
  // Number of units that the store's journals have, as far as this run knows. Writes the rest first, if possible.
  std::uint64_t kept() noexcept;
  // Number of all units; 0: not known.
  std::uint64_t all() const noexcept { return all_; }

 private:
  zarr::sink& out_;
  std::string key_;
  std::string waiting_;
  bool begun_ = false;
  std::uint64_t all_ = 0, kept_ = 0, units_waiting_ = 0;
  unsigned shares_ = 0;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

// Whether the same command meets this error again: nothing is worth keeping.
bool fails_again(const error& e) noexcept;

// The sentence on what a run leaves that has failed.
std::string what_is_kept(const convert_options& options, journal& done);

}  // namespace zarrbits::conversion

#endif
