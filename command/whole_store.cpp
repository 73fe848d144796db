// SPDX-License-Identifier: BSL-1.0
#include "command/whole_store.hpp"

#include <zarrbits/verify.hpp>

namespace zarrbits::command {

std::optional<std::size_t> compare_whole_store(const convert_options& options,
                                               const std::function<void(const std::string&)>& at) {
  const verify_options comparison{.source = options.source,
                                  .concat = options.concat,
                                  .store = options.store,
                                  .remote = options.remote,
                                  .include = options.include,
                                  .exclude = options.exclude,
                                  .external = options.external,
                                  .lock = options.lock,
                                  .progress = at,
                                  .warning = {}};
  if (!is_whole_store(comparison)) return {};
  const std::string what = "\"" + options.store + "\" is complete, but ",
                    remedy = "; choose another name, or replace it with `overwrite`";
  verify_result found;
  try {
    found = verify(comparison);
  } catch (const zarrbits::error& e) {
    throw zarrbits::error(errc::different, what + "cannot be compared with the source: " + e.what(), {options.store});
  }
  for (const finding& f : found.findings) {
    if (f.outcome > verdict::unreadable)
      throw zarrbits::error(errc::different, what + "was not made from this source: \"" + f.path + "\" " + f.reason + remedy,
                            {options.store, f.path});
  }
  if (!found.only_in_store.empty())
    throw zarrbits::error(
        errc::different,
        what + "was not made from this source: \"" + found.only_in_store.front() + "\" is only in the store" + remedy,
        {options.store, found.only_in_store.front()});
  return found.findings.size();
}

}  // namespace zarrbits::command
