// SPDX-License-Identifier: BSL-1.0
#include "check/chunk_results.hpp"

#include <iterator>

namespace zarrbits::checking {

void chunk_results::add_failure(std::uint64_t number, std::string key, read_failure failure, std::uint64_t chunks) {
  const std::lock_guard lock(mutex_);
  const bool is_damaged = failure.severity == finding_severity::problem;
  failed_chunks& list = is_damaged ? damaged_ : unchecked_;
  ++list.count;
  if (is_damaged) damaged_count_ += chunks;
  list.first.emplace(number, failed_chunk{std::move(key), std::move(failure.reason)});
  if (list.first.size() > finding_list::max_of_rule) list.first.erase(std::prev(list.first.end()));
}

void chunk_results::add_checked(std::uint64_t chunks, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  checked_count_ += chunks;
  bytes_ += bytes;
}

void chunk_results::add_missing(std::uint64_t chunks) {
  const std::lock_guard lock(mutex_);
  missing_count_ += chunks;
}

void chunk_results::report(const failed_chunks& failed, finding_severity severity, const std::string& path,
                           finding_list& findings) {
  for (const auto& [number, chunk] : failed.first) findings.add({severity, "chunk", path, chunk.key, chunk.reason});
  findings.count(severity, failed.count - failed.first.size());
}

void chunk_results::report(checked_array& array, finding_list& findings) const {
  array.checked += checked_count_;
  array.missing += missing_count_;
  array.damaged += damaged_count_;
  array.bytes += bytes_;
  report(damaged_, finding_severity::problem, array.path, findings);
  report(unchecked_, finding_severity::unchecked, array.path, findings);
}

}  // namespace zarrbits::checking
