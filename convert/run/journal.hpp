// SPDX-License-Identifier: BSL-1.0
//
// What is done of a conversion, kept in the store until it is whole: a plan, which says of what source and with which options,
// and a line for each unit. A run that was killed, and the shares of several machines, are resumed from there.
//
#ifndef ZARRBITS_CONVERT_RUN_JOURNAL_HPP
#define ZARRBITS_CONVERT_RUN_JOURNAL_HPP

#include "convert/hdf5/source_file.hpp"
#include "convert/run/unit_result.hpp"
#include "convert/store/sink.hpp"

#include <zarrbits/convert.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

// Of a store that somebody began: options that are not set become those of its plan. True where there were some. Throws
// convert_error where the plan has others than are set.
bool take_plan(sink& out, convert_options& options);

class journal {
 public:
  // Writes the plan, or, with `join`, compares it with the one that is there. `joined`: joined_store::checksum. Throws
  // convert_error where they differ.
  journal(sink& out, const convert_options& options, const source_file& file, const std::string& joined, bool join);
  // What was not written yet is, as far as possible.
  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  // What earlier runs and other shares have done. A line that was cut off counts for nothing.
  std::map<unit_id, unit_result> read();
  // Number of shares that have begun to write; 0 where none did.
  unsigned shares() const { return shares_; }

  void add(const unit_id& id, const unit_result& result);
  void flush();

 private:
  sink& out_;
  std::string key_;
  std::string waiting_;
  bool begun_ = false;
  unsigned shares_ = 0;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

}  // namespace zarrbits::conversion

#endif
