// SPDX-License-Identifier: BSL-1.0
#include "command/complete_store.hpp"

#include <zarrbits/verify.hpp>

namespace zarrbits::command {

std::optional<std::size_t> compare_complete_store(const convert_options& options,
                                                  const std::function<void(const std::string&)>& set_current) {
  const verify_options comparison{.source = options.source.name,
                                  .concat = options.source.concat,
                                  .store = options.target.name,
                                  .remote = options.remote,
                                  .include = options.selection.include,
                                  .exclude = options.selection.exclude,
                                  .external = options.source.external,
                                  .lock = options.source.lock,
                                  .progress = [&](const verify_progress& p) { set_current(std::string(p.path)); },
                                  .warning = {}};
  if (!is_whole_store(comparison)) return {};
  const std::string prefix = "\"" + options.target.name + "\" is complete, but ",
                    remedy = "; choose another name, or replace it with `overwrite`";
  verify_result result;
  try {
    result = verify(comparison);
  } catch (const zarrbits::error& e) {
    throw zarrbits::error(errc::different, prefix + "cannot be compared with the source: " + e.what(), {options.target.name});
  }
  for (const finding& f : result.findings) {
    if (f.outcome > verdict::unreadable)
      throw zarrbits::error(errc::different, prefix + "was not made from this source: \"" + f.path + "\" " + f.reason + remedy,
                            {options.target.name, f.path});
  }
  if (!result.only_in_store.empty())
    throw zarrbits::error(
        errc::different,
        prefix + "was not made from this source: \"" + result.only_in_store.front() + "\" is only in the store" + remedy,
        {options.target.name, result.only_in_store.front()});
  return result.findings.size();
}

}  // namespace zarrbits::command
