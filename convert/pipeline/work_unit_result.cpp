// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/work_unit_result.hpp"

#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <stdexcept>

namespace zarrbits::conversion {

namespace {

text::json to_json(const array_result& r) {
  text::json lost_chunks = text::json::array();
  for (const auto& [index, reason] : r.lost_chunks) lost_chunks.push_back({index, text::escape_invalid_utf8(reason)});
  return {{"utf8", r.assumed.text_is_utf8},
          {"bool", r.assumed.bools_are_0_or_1},
          {"packed", r.assumed.raw_packing_fits},
          {"fits", r.assumed.bits_suffice},
          {"counts", {r.counts.raw, r.counts.rewrapped, r.counts.recoded, r.counts.absent, r.counts.lost}},
          {"worst", static_cast<int>(r.worst)},
          {"bytes", r.store_bytes},
          {"rounded", r.rounded},
          {"dangling", r.dangling},
          {"unpacked", text::escape_invalid_utf8(r.unpacked)},
          {"lost", lost_chunks}};
}

// A journal may contain anything; the JSON library would convert -1 and 1e99 to numbers too.
std::uint64_t number(const text::json& j) {
  if (!j.is_number_unsigned()) throw std::runtime_error("not a number");
  return j.get<std::uint64_t>();
}

std::vector<std::uint64_t> numbers(const text::json& list) {
  constexpr std::size_t max_rank = 32;  // of HDF5, which has fewer dimensions than Zarr
  if (!list.is_array() || list.size() > max_rank) throw std::runtime_error("not a list of extents");
  std::vector<std::uint64_t> out;
  for (const text::json& n : list) out.push_back(number(n));
  return out;
}

array_result array_result_from(const text::json& j) {
  array_result r;
  r.assumed = {j.at("utf8").get<bool>(), j.at("bool").get<bool>(), j.at("packed").get<bool>(), j.at("fits").get<bool>()};
  const auto counts = numbers(j.at("counts"));
  r.counts = {counts.at(0), counts.at(1), counts.at(2), counts.at(3), counts.at(4)};
  r.worst = static_cast<outcome>(std::min<std::uint64_t>(number(j.at("worst")), static_cast<std::uint64_t>(outcome::skipped)));
  r.store_bytes = number(j.at("bytes"));
  r.rounded = j.at("rounded").get<bool>();
  r.dangling = j.at("dangling").get<bool>();
  r.unpacked = j.at("unpacked").get<std::string>();
  for (const text::json& l : j.at("lost")) {
    const std::vector<std::uint64_t> index = numbers(l.at(0));
    r.lost_chunks[{index.begin(), index.end()}] = l.at(1).get<std::string>();
  }
  return r;
}

reason_code skip_code(const text::json& name) {
  const std::optional<reason_code> code = text::parse_reason_code(name.get_ref<const std::string&>());
  if (!code || *code == reason_code::none) throw std::runtime_error("not the code of a reason");
  return *code;
}

text::json to_json(const derived_array& m) {
  text::json j = {{"path", m.store_path}};
  if (m.meta) {
    j["shape"] = m.meta->shape;
    j["chunk"] = m.meta->chunk;
    j["type"] = m.meta->data_type;
    j["fill"] = m.meta->fill_value;
    j["codecs"] = m.meta->codecs;
    j["attributes"] = m.meta->attributes;
  }
  return j;
}

derived_array derived_array_from(const text::json& j) {
  derived_array m;
  m.store_path = j.at("path").get<std::string>();
  if (j.contains("shape")) {
    m.meta.emplace();
    m.meta->shape = numbers(j.at("shape"));
    m.meta->chunk = numbers(j.at("chunk"));
    m.meta->data_type = j.at("type");
    m.meta->fill_value = j.at("fill");
    m.meta->codecs = j.at("codecs");
    m.meta->attributes = j.at("attributes");
  }
  return m;
}

}  // namespace

void array_result::add(const array_result& o) {
  assumed.text_is_utf8 = assumed.text_is_utf8 && o.assumed.text_is_utf8;
  assumed.bools_are_0_or_1 = assumed.bools_are_0_or_1 && o.assumed.bools_are_0_or_1;
  assumed.raw_packing_fits = assumed.raw_packing_fits && o.assumed.raw_packing_fits;
  assumed.bits_suffice = assumed.bits_suffice && o.assumed.bits_suffice;
  counts.raw += o.counts.raw;
  counts.rewrapped += o.counts.rewrapped;
  counts.recoded += o.counts.recoded;
  counts.absent += o.counts.absent;
  counts.lost += o.counts.lost;
  worst = std::max(worst, o.worst);
  store_bytes += o.store_bytes;
  rounded = rounded || o.rounded;
  dangling = dangling || o.dangling;
  if (unpacked.empty()) unpacked = o.unpacked;
  lost_chunks.insert(o.lost_chunks.begin(), o.lost_chunks.end());
}

void work_unit_result::add(work_unit_result&& o) {
  if (arrays.size() < o.arrays.size()) arrays.resize(o.arrays.size());
  for (std::size_t i = 0; i < o.arrays.size(); ++i) arrays[i].add(o.arrays[i]);
  derived_arrays.insert(derived_arrays.end(), std::make_move_iterator(o.derived_arrays.begin()),
                        std::make_move_iterator(o.derived_arrays.end()));
  if (skipped.empty()) skipped = std::move(o.skipped);
}

work_unit_result take_units(std::map<work_unit_id, work_unit_result>& results, std::size_t dataset) {
  work_unit_result merged;
  const auto first = results.lower_bound({dataset, 0}), last = results.lower_bound({dataset + 1, 0});
  for (auto entry = first; entry != last; ++entry) merged.add(std::move(entry->second));
  results.erase(first, last);
  return merged;
}

std::string journal_line(const work_unit_id& id, const work_unit_result& result) {
  text::json j = {{"dataset", id.dataset}, {"unit", id.number}};
  if (!result.skipped.empty()) {
    j["skipped"] = text::escape_invalid_utf8(result.skipped.sentence);
    j["code"] = to_string(result.skipped.code);
  } else {
    j["arrays"] = text::json::array();
    for (const array_result& r : result.arrays) j["arrays"].push_back(to_json(r));
    j["made"] = text::json::array();
    for (const derived_array& m : result.derived_arrays) j["made"].push_back(to_json(m));
  }
  j["end"] = true;  // a truncated number is still a number
  return text::json_text(j) + "\n";
}

std::optional<std::pair<work_unit_id, work_unit_result>> parse_journal_line(std::string_view line) {
  try {
    const text::json j = text::parse_untrusted_json(line);
    if (!j.at("end").get<bool>()) return {};
    work_unit_id id{static_cast<std::size_t>(number(j.at("dataset"))), number(j.at("unit"))};
    work_unit_result r;
    if (j.contains("skipped")) {
      r.skipped = {skip_code(j.at("code")), j.at("skipped").get<std::string>()};
    } else {
      for (const text::json& a : j.at("arrays")) r.arrays.push_back(array_result_from(a));
      for (const text::json& m : j.at("made")) r.derived_arrays.push_back(derived_array_from(m));
    }
    return std::pair{id, std::move(r)};
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace zarrbits::conversion
