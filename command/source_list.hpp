// SPDX-License-Identifier: BSL-1.0
//
// The names of several sources on the command line.
//
//   const auto names = expand_sources({"a.nc", "data/*.nc", "s3://bucket/*.nc", "@list.txt"}, {});
//
#ifndef ZARRBITS_COMMAND_SOURCE_LIST_HPP
#define ZARRBITS_COMMAND_SOURCE_LIST_HPP

#include <zarrbits/convert.hpp>

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace zarrbits::command {

// "@list.txt" is a file with a name on each line. A name with wildcards, if no file has exactly that name, means all files that
// match it, ordered by name with numbers as numbers. `remote`: how a server is reached. Throws usage_error if no file matches,
// zarrbits::error.
std::vector<std::string> expand_sources(const std::vector<std::string>& names, const remote_access& remote);

// Adds --concat and its companions; for all commands that take several sources.
struct concat_arguments {
  std::vector<std::string> extra_names;  // names after the first two
  std::string dimension, append, fresh, places, order, different;
  bool overlap = false;

  // Beyond what conversions join themselves: several dimensions, or places from a list.
  bool combines() const {
    return (dimension + append).find(',') != std::string::npos || (!dimension.empty() && !fresh.empty()) || !places.empty();
  }
};
// `of_stores`: those by which Zarr stores are joined.
void add_concat_options(CLI::App& app, concat_arguments& arguments, bool may_append, bool of_stores = false);
// Evaluates them: the last name is the store, which may be left out if `store_may_be_missing`. Nothing without --concat. Throws
// usage_error, zarrbits::error.
std::optional<concatenation> take_sources(concat_arguments& arguments, std::string& source, std::string& store,
                                          const remote_access& remote, bool store_may_be_missing);

}  // namespace zarrbits::command

#endif
