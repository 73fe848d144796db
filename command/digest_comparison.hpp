// SPDX-License-Identifier: BSL-1.0
//
// --digest of convert, export and repack: the digests of the source and of what was written, read again.
//
#ifndef ZARRBITS_COMMAND_DIGEST_COMPARISON_HPP
#define ZARRBITS_COMMAND_DIGEST_COMPARISON_HPP

#include <zarrbits/digest.hpp>

#include "text/json_text.hpp"

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::command {

struct digest_comparison {
  digest_options source, target;
  std::vector<std::string> lost = {};  // paths in a store of arrays that the report names: these, and all below, may differ
  bool may_change_types = false;       // netCDF does not have all types: an array of another type is not compared
  std::string remedy = "compare both with zarrbits verify before you use it";  // if an array differs
  bool has_note = false;                                                       // the target gets a note of its digest
};

// What digest() calls a store that convert calls `store`.
std::string name_to_digest(const std::string& store);

// To read `name` as convert, export or repack did, with the options of its execution.
template <class Options>
digest_options options_to_digest(const std::string& name, const remote_access& remote, const Options& execution) {
  digest_options result;
  result.source = name;
  result.remote = remote;
  result.threads = execution.threads;
  result.memory = execution.memory;
  return result;
}

// Reads both, and notes the digest in the target. Returns the report's key "digest". Throws error if an array of the source has
// another digest in the target.
text::json compare_digests(const digest_comparison& comparison, bool quiet,
                           const std::function<void(const std::string&)>& set_current);
std::string report_with_digests(const std::string& report, text::json digests);

}  // namespace zarrbits::command

#endif
