// SPDX-License-Identifier: BSL-1.0
//
// Compares the journal of earlier runs with the chunks in the store.
//
#include "convert/run/job.hpp"

#include "text/node_names.hpp"
#include "zarr/write/node.hpp"

#include <algorithm>
#include <vector>

namespace zarrbits::conversion {

// The journal may claim more than the store has: after a crash of the machine, or if somebody changed the store.
void job::check_journal(on_mismatch then) {
  std::vector<std::size_t> wrong;
  for (auto at = results_.begin(); at != results_.end();) {
    const std::size_t index = at->first.dataset;
    std::map<std::uint64_t, std::uint64_t> bytes;  // bytes of each unit's chunks
    bool skipped = false;
    for (; at != results_.end() && at->first.dataset == index; ++at) {
      skipped = skipped || !at->second.skipped.empty();
      std::uint64_t& sum = bytes[at->first.number];
      for (const array_result& a : at->second.arrays) sum += a.store_bytes;
    }
    if (index < source_->objects().size() && !skipped && !is_as_journalled(index, bytes)) wrong.push_back(index);
  }
  for (const std::size_t index : wrong) {
    const hdf5::source_object& o = source_->objects()[index];
    const std::string what = "chunks of dataset \"" + o.path + "\" are missing in \"" + options_.store +
                             "\", or do not have the size that its journal says";
    if (then == on_mismatch::refuse)
      throw zarrbits::error(errc::incomplete, what + "; convert again with `resume`, which writes them again",
                            {options_.store, o.path});
    if (options_.warning) options_.warning(what + "; the dataset is converted again");
    if (index > 0) out_->remove(std::string_view(o.store_path).substr(1));
    results_.erase(results_.lower_bound({index, 0}), results_.lower_bound({index + 1, 0}));
  }
}

bool job::is_as_journalled(std::size_t index, const std::map<std::uint64_t, std::uint64_t>& bytes) {
  const std::string node = source_->objects()[index].store_path.substr(1);
  std::uint64_t journalled = 0, there = 0;
  for (const auto& unit : bytes) journalled += unit.second;
  out_->each(node, [&](std::string_view key, std::uint64_t size) { there += text::is_node_key(key) ? 0 : size; });
  if (there == journalled) return true;
  // some of them may be of units that the journal does not have
  bool divisible = false;
  std::map<std::uint64_t, std::uint64_t> found;
  const auto why = hdf5::reason_to_skip([&] {
    const auto dataset = planned(index);
    divisible = dataset->divisible();
    if (!divisible) return;
    const std::size_t above = node.empty() ? 2 : node.size() + 3;  // "a/b/c/"
    out_->each(node.empty() ? "c" : node + "/c", [&](std::string_view key, std::uint64_t size) {
      if (const auto unit = dataset->unit_of(key.substr(std::min(above, key.size())))) found[*unit] += size;
    });
  });
  H5Eclear2(H5E_DEFAULT);
  return !why && divisible &&
         std::all_of(bytes.begin(), bytes.end(), [&](const auto& unit) { return found[unit.first] == unit.second; });
}

}  // namespace zarrbits::conversion
