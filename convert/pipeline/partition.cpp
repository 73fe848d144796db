// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/partition.hpp"

#include "array/work_partition.hpp"
#include "text/format.hpp"

#include <zarrbits/error.hpp>

#include <cstdint>
#include <set>

namespace zarrbits::conversion {

std::uint64_t bytes_of(const std::vector<planned_unit>& units) {
  std::uint64_t bytes = 0;
  for (const planned_unit& u : units) bytes += u.range.bytes;
  return bytes;
}

std::vector<unsigned> assign_partitions(const std::vector<planned_unit>& units, unsigned count) {
  const auto work = [](const planned_unit& u) {
    return static_cast<double>(u.range.bytes + (u.range.count + 1) * array::work_per_object);
  };
  double total = 0, preceding = 0;
  for (const planned_unit& u : units) total += work(u);
  std::vector<unsigned> shares;
  for (const planned_unit& u : units) shares.push_back(array::partition_of(preceding, work(u), total, count));
  return shares;
}

std::vector<planned_unit> units_of_partition(const std::vector<planned_unit>& units, unsigned index, unsigned count) {
  const std::vector<unsigned> shares = assign_partitions(units, count);
  std::vector<planned_unit> own_units;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (shares[i] == index) own_units.push_back(units[i]);
  }
  return own_units;
}

void require_all_done(const std::vector<planned_unit>& units, const std::function<bool(const work_unit_id&)>& is_done,
                      unsigned shares, const std::string& store) {
  const std::vector<unsigned> share_of_unit = assign_partitions(units, std::max(1U, shares));
  std::uint64_t missing = 0;
  std::set<unsigned> of;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (is_done(units[i].id)) continue;
    ++missing;
    of.insert(share_of_unit[i]);
  }
  if (missing == 0) return;
  std::string partitions;
  for (const unsigned share : of) partitions += (partitions.empty() ? "" : ", ") + std::to_string(share);
  partitions = shares > 0 ? ", of partition " + partitions + " of " + std::to_string(shares) : "";
  throw zarrbits::error(errc::incomplete,
                        std::to_string(missing) + " of " + text::pluralize(units.size(), "unit") + " are missing in \"" + store +
                            "\"" + partitions + "; run these partitions again, or convert all that is missing with `resume`",
                        {store});
}

}  // namespace zarrbits::conversion
