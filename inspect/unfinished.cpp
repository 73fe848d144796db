// SPDX-License-Identifier: BSL-1.0
//
// How far a conversion is, by the plan and the journals in the store. Any program may have written these.
//
#include "inspect/tree_readers.hpp"
#include "text/json_text.hpp"
#include "text/reserved_names.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::inspection {

namespace {

using text::json;

constexpr std::uint64_t max_read_bytes = 256U << 20;  // bytes of one object
constexpr unsigned max_shares = 1'000'000;            // as the command allows

std::string text_of(const zarr::store_folder& folder, const std::string& name) {
  const auto object = folder.open(name);
  if (!object) return {};
  const auto bytes = zarr::read_object(*object, max_read_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::uint64_t> number_in(const json& j, const char* key) {
  if (!j.is_object() || !j.contains(key) || !j[key].is_number_unsigned()) return {};
  return j[key].get<std::uint64_t>();
}

std::optional<double> time_in(const json& j, const char* key) {
  if (!j.is_object() || !j.contains(key) || !j[key].is_number()) return {};
  return j[key].get<double>();
}

// The index and number of shares in "journal-3-of-8"; {0, 0} of a journal of no share.
std::pair<unsigned, unsigned> share_in(const std::string& name) {
  const char* const dash = name.c_str() + std::string_view("journal").size();
  char* end = nullptr;
  if (*dash != '-' || !std::isdigit(static_cast<unsigned char>(dash[1]))) return {0, 0};
  const unsigned long index = std::strtoul(dash + 1, &end, 10);
  constexpr std::string_view of = "-of-";
  if (!std::string_view(end).starts_with(of)) return {0, 0};
  const unsigned long count = std::strtoul(end + of.size(), nullptr, 10);
  if (count == 0 || count > max_shares || index >= count) return {0, 0};
  return {static_cast<unsigned>(index), static_cast<unsigned>(count)};
}

struct run {
  double began = 0, last = 0;
  std::uint64_t completed = 0, total = 0, assigned = 0;
};

// The journals of one share, or of a conversion that is not made in shares.
struct progress_of_share {
  std::set<std::pair<std::uint64_t, std::uint64_t>> units;  // dataset and unit
  std::uint64_t bytes = 0;
  run latest;
  bool ended = false;

  void add(const std::string& text) {
    run current;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const json j = text::parse_untrusted_json(line);
      if (!j.is_object()) continue;
      if (const auto began = time_in(j, "began")) {
        keep(current);
        current = {*began, *began, 0, number_in(j, "units").value_or(0), number_in(j, "own").value_or(0)};
        ended = false;
      } else if (const auto timestamp = time_in(j, "at")) {
        current.last = std::max(current.last, *timestamp);
      } else if (j.contains("ended")) {
        ended = true;
      } else if (const auto dataset = number_in(j, "dataset"), unit = number_in(j, "unit"); dataset && unit) {
        if (!units.emplace(*dataset, *unit).second) continue;
        ++current.completed;
        if (!j.contains("arrays") || !j["arrays"].is_array()) continue;
        for (const json& a : j["arrays"]) bytes += number_in(a, "bytes").value_or(0);
      }
    }
    keep(current);
  }

  std::optional<double> seconds_left() const {
    const double seconds = latest.last - latest.began;
    if (ended || latest.completed == 0 || latest.assigned < units.size() || !(seconds > 0)) return {};
    return seconds / static_cast<double>(latest.completed) * static_cast<double>(latest.assigned - units.size());
  }

 private:
  // Where objects cannot grow, each has a piece of a run, and their order is not known.
  void keep(const run& r) {
    if (r.began > latest.began) latest = r;
    else if (r.began == 0) latest.last = std::max(latest.last, r.last), latest.completed += r.completed;
  }
};

}  // namespace

std::optional<unfinished_store> read_unfinished(const zarr::store_folder& root) {
  const zarr::store_folder folder = root / text::unfinished_folder;
  const std::string plan_text = text_of(folder, "plan");
  if (!text::is_zarrbits_plan(plan_text)) return {};
  const json plan = text::parse_untrusted_json(plan_text);
  unfinished_store result;
  result.version = text::text_member(plan, "zarrbits");
  result.source = text::text_member(plan, "source");
  if (plan.contains("command") && plan["command"].is_array()) {
    for (const json& word : plan["command"]) {
      if (word.is_string()) result.command.push_back(word.get<std::string>());
    }
  }
  std::set<std::string> names;
  folder.list([&](const zarr::store_entry& e) {
    if (!e.is_folder && e.name.starts_with("journal")) names.insert(e.name);
    return true;
  });
  std::map<unsigned, progress_of_share> shares;
  std::set<std::pair<std::uint64_t, std::uint64_t>> units;
  progress_of_share unpartitioned;
  for (const std::string& name : names) {
    const auto [index, count] = share_in(name);
    result.share_count = std::max(result.share_count, count);
    (count > 0 ? shares[index] : unpartitioned).add(text_of(folder, name));
  }
  double last = 0;
  std::optional<double> remaining = unpartitioned.seconds_left();
  const auto gather = [&](const progress_of_share& p) {
    units.insert(p.units.begin(), p.units.end());
    result.bytes_done += p.bytes;
    result.units = std::max(result.units, p.latest.total);
    last = std::max(last, p.latest.last);
  };
  gather(unpartitioned);
  for (const auto& [index, p] : shares) {
    gather(p);
    result.shares.push_back({index, p.units.size(), p.latest.assigned, p.ended});
    if (const auto share_remaining = p.seconds_left()) remaining = std::max(remaining.value_or(0), *share_remaining);
  }
  result.units_done = units.size();
  result.units = result.units < result.units_done ? 0 : result.units;
  for (unsigned i = 0; i < result.share_count && result.missing.size() < 1000; ++i) {
    if (!shares.contains(i)) result.missing.push_back(i);
  }
  result.seconds_left = remaining;
  if (last > 0) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    result.seconds_ago = std::max(0.0, now.count() - last);
  }
  return result;
}

}  // namespace zarrbits::inspection
