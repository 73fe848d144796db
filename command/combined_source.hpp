// SPDX-License-Identifier: BSL-1.0
//
// Files that have parts of several dimensions: --concat time,x,y, or --append time,x,y. They become the source as one HDF5 file
// with virtual datasets, in a folder for temporary files, or are written as such a file, or as one with copies.
//
//   combined_source combined(arguments.combination);           // before the child process, which may crash
//   combined.replace(options.source.name, options.source.concat, ...);
//   combined.choose_dimension(options);                        // of --append
//
#ifndef ZARRBITS_COMMAND_COMBINED_SOURCE_HPP
#define ZARRBITS_COMMAND_COMBINED_SOURCE_HPP

#include "command/source_list.hpp"

#include <zarrbits/combine.hpp>
#include <zarrbits/convert.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::command {

// What the options ask for, without a target; nothing if conversions do it themselves, which is not so of `is_for_file`, an HDF5
// file. Throws usage_error for what goes with one dimension alone.
std::optional<combine_options> find_combination(const concat_arguments& arguments, const std::string& source,
                                                const std::optional<concatenation>& concat, bool is_for_file = false);
combine_options combination_of(const concat_arguments& arguments, const std::string& source, const concatenation& concat);

// Throws usage_error for an option that goes with one dimension alone.
void require_single_dimension(const std::optional<combine_options>& combination, const char* option);

class combined_source {
 public:
  // Chooses the name of a folder if files are combined, unless there is one. The child makes it: whoever knows the name can
  // remove it.
  explicit combined_source(std::optional<combine_options> combination, const std::string& folder = {});
  // Throws command_error.
  static std::string new_folder();
  ~combined_source() { remove(); }
  combined_source(const combined_source&) = delete;
  combined_source& operator=(const combined_source&) = delete;

  // Combines the files, and makes them one source, which may be appended; nothing without a folder. Throws zarrbits::error. The
  // notes go to standard error unless `quiet`.
  void replace(std::string& source, std::optional<concatenation>& concat, std::optional<source_base>& base,
               std::vector<std::string>& external, const remote_access& remote, bool lock, bool quiet,
               const std::function<void(const std::string&)>& set_current);
  // After replace(), if the source is appended: along the one dimension whose coordinates are not those of the store. Throws
  // zarrbits::error if no dimension has such, or if several have.
  void choose_dimension(convert_options& options);
  // Removes the folder: for clean_up() of run_in_subprocess(), after which a signal ends the process.
  void remove() noexcept;
  bool is_used() const { return !folder_.empty(); }
  // The result of converting it, with the names of the files.
  convert_result described(convert_result result) const;

 private:
  std::optional<combine_options> combination_;
  std::string folder_;
  combine_report report_;
  std::string growing_;  // path of the coordinate variable of the dimension along which the source is appended
};

// zarrbits convert [--virtual] --concat DIMENSIONS *.nc all.nc
int write_combined_file(combine_options combination, const convert_options& options, bool quiet, const std::string& report,
                        bool as_json);

}  // namespace zarrbits::command

#endif
