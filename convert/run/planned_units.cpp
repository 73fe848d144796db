// SPDX-License-Identifier: BSL-1.0
#include "convert/run/planned_units.hpp"

#include "text/words.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstdint>
#include <set>

namespace zarrbits::conversion {

std::vector<unsigned> shares_of(const std::vector<planned_unit>& units, unsigned count) {
  // to open a dataset and to make an object costs about as much as to copy this many bytes
  const auto work = [](const planned_unit& u) { return static_cast<double>(u.range.bytes + (u.range.count + 1) * 65536); };
  double all = 0, before = 0;
  for (const planned_unit& u : units) all += work(u);
  std::vector<unsigned> shares;
  for (const planned_unit& u : units) {
    const double middle = before + work(u) / 2;
    before += work(u);
    shares.push_back(std::min(count - 1, static_cast<unsigned>(middle / all * count)));
  }
  return shares;
}

std::vector<planned_unit> share_of(const std::vector<planned_unit>& units, unsigned index, unsigned count) {
  const std::vector<unsigned> shares = shares_of(units, count);
  std::vector<planned_unit> mine;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (shares[i] == index) mine.push_back(units[i]);
  }
  return mine;
}

void require_all_done(const std::vector<planned_unit>& units, const std::function<bool(const unit_id&)>& done, unsigned shares,
                      const std::string& store) {
  const std::vector<unsigned> share_of_unit = shares_of(units, std::max(1U, shares));
  std::uint64_t missing = 0;
  std::set<unsigned> of;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (done(units[i].id)) continue;
    ++missing;
    of.insert(share_of_unit[i]);
  }
  if (missing == 0) return;
  std::string whose;
  for (const unsigned share : of) whose += (whose.empty() ? "" : ", ") + std::to_string(share);
  whose = shares > 0 ? ", of partition " + whose + " of " + std::to_string(shares) : "";
  throw zarrbits::error(errc::incomplete,
                        std::to_string(missing) + " of " + text::counted(units.size(), "unit") + " are missing in \"" + store + "\"" +
                            whose + "; run these partitions again, or convert all that is missing with `resume`",
                        {store});
}

}  // namespace zarrbits::conversion
