// SPDX-License-Identifier: BSL-1.0
//
// Compares the journal of earlier runs with the chunks in the store.
//
#include "convert/run/hdf5_conversion.hpp"
#include "metadata/chunk_key_encoding.hpp"

#include "text/node_names.hpp"

#include <algorithm>
#include <vector>

namespace zarrbits::conversion {

// The journal may claim more than the store has: after a crash of the machine, or if the store was changed.
void hdf5_conversion::check_journal(on_mismatch action) {
  std::vector<std::size_t> wrong;
  for (auto entry = results_.begin(); entry != results_.end();) {
    const std::size_t index = entry->first.dataset;
    std::map<std::uint64_t, std::uint64_t> bytes;  // bytes of each unit's chunks
    bool skipped = false;
    for (; entry != results_.end() && entry->first.dataset == index; ++entry) {
      skipped = skipped || !entry->second.skipped.empty();
      std::uint64_t& sum = bytes[entry->first.number];
      for (const array_result& a : entry->second.arrays) sum += a.store_bytes;
    }
    if (index < source_->objects().size() && !skipped && !matches_journal(index, bytes)) wrong.push_back(index);
  }
  for (const std::size_t index : wrong) {
    const hdf5::source_object& o = source_->objects()[index];
    const std::string problem = "chunks of dataset \"" + o.path + "\" are missing in \"" + options_.store +
                                "\", or do not have the size that its journal says";
    if (action == on_mismatch::refuse)
      throw zarrbits::error(errc::incomplete, problem + "; convert again with `resume`, which writes them again",
                            {options_.store, o.path});
    if (options_.warning) options_.warning(problem + "; the dataset is converted again");
    if (index > 0) out_->remove(std::string_view(o.store_path).substr(1));
    results_.erase(results_.lower_bound({index, 0}), results_.lower_bound({index + 1, 0}));
  }
}

bool hdf5_conversion::matches_journal(std::size_t index, const std::map<std::uint64_t, std::uint64_t>& bytes) {
  const std::string node = source_->objects()[index].store_path.substr(1);
  std::uint64_t journalled = 0, stored = 0;
  for (const auto& unit : bytes) journalled += unit.second;
  out_->for_each(node, [&](std::string_view key, std::uint64_t size) { stored += text::is_node_key(key) ? 0 : size; });
  if (stored == journalled) return true;
  // some of them may be of units that the journal does not have
  bool divisible = false;
  std::map<std::uint64_t, std::uint64_t> unit_bytes;
  const auto skip_reason = hdf5::skip_reason([&] {
    const auto dataset = planned(index);
    divisible = dataset->divisible();
    if (!divisible) return;
    const std::string chunks = node.empty() ? "c/" : node + "/c/";
    out_->for_each(node, [&](std::string_view key, std::uint64_t size) {
      if (!key.starts_with(chunks)) return;
      if (const auto unit = dataset->unit_of(key.substr(chunks.size()))) unit_bytes[*unit] += size;
    });
  });
  H5Eclear2(H5E_DEFAULT);
  return !skip_reason && divisible &&
         std::all_of(bytes.begin(), bytes.end(), [&](const auto& unit) { return unit_bytes[unit.first] == unit.second; });
}

}  // namespace zarrbits::conversion
