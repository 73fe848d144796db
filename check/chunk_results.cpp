// SPDX-License-Identifier: BSL-1.0
#include "check/chunk_results.hpp"

#include "text/format.hpp"

#include <algorithm>
#include <iterator>

namespace zarrbits::checking {

std::uint64_t bytes_of(const std::vector<listed_chunk>& list) {
  std::uint64_t sum = 0;
  for (const listed_chunk& chunk : list) sum += chunk.bytes;
  return sum;
}

void for_each_batch(const std::vector<listed_chunk>& list,
                    const std::function<void(std::vector<listed_chunk>, std::uint64_t, std::uint64_t)>& visit) {
  constexpr std::uint64_t max_bytes = 1U << 20;
  constexpr std::size_t max_chunks = 256;
  std::vector<listed_chunk> batch;
  std::uint64_t bytes = 0, largest = 0;
  const auto end_batch = [&] {
    if (!batch.empty()) visit(std::exchange(batch, {}), bytes, largest);
    bytes = largest = 0;
  };
  for (const listed_chunk& chunk : list) {
    batch.push_back(chunk);
    bytes += chunk.bytes;
    largest = std::max(largest, chunk.bytes);
    if (bytes >= max_bytes || batch.size() >= max_chunks) end_batch();
  }
  end_batch();
}

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

void chunk_results::report(checked_array& array, std::uint64_t missing, bool allow_missing, finding_list& findings) const {
  array.checked += checked_count_;
  array.missing += missing_count_ + missing;
  array.damaged += damaged_count_;
  array.bytes += bytes_;
  report(damaged_, finding_severity::problem, array.path, findings);
  report(unchecked_, finding_severity::unchecked, array.path, findings);
  if (!allow_missing && array.missing > 0)
    findings.add({finding_severity::problem, "missing", array.path, "", text::pluralize(array.missing, "chunk") + " missing"});
}

}  // namespace zarrbits::checking
