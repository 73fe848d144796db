// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/array_work.hpp"

#include "convert/concat/joined_parts.hpp"
#include "convert/from_zarr/join_stores.hpp"
#include "io/scratch_file.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/memory_estimate.hpp"
#include "text/warning.hpp"
#include "zarr/read/unreadable_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

std::string scratch_folder_of(const convert_options& options) {
  return options.execution.scratch.empty() ? io::scratch_folder_for(options.target.name) : options.execution.scratch;
}

}  // namespace

array_work::array_work(converter& run, const source_node& node, std::size_t number)
    : run_(run), options_(run.options()), node_(node), number_(number) {
  skip_reason_ = zarr::reason_unreadable([&] {
    array_ = std::make_unique<source_array>(open_source_array(node_));
    change_ = std::make_unique<const zarr_array_plan>(plan_zarr_array(*array_, node_.document, node_.path, options_, true));
    chunks_ = std::make_unique<rechunker>(*array_, *change_, node_.path, options_, &run_.out());
  });
  if (skip_reason_.empty()) list_chunks();
  if (skip_reason_.empty() && options_.target.zarr_format == zarr_format::v2) {
    if (const std::string reason = v3_only_reason(); !reason.empty())
      skip_reason_ = {reason_code::zarr_v3_only, "Zarr v2 cannot have it: " + reason + "; set `zarr_format` to " +
                                                     (options_.target.is_v2_copy() ? "3" : "both or 3")};
  }
}

void array_work::list_chunks() {
  text::coded_reason problem;
  skip_reason_ = zarr::reason_unreadable([&] {
    try {
      chunks_->list();
    } catch (const zarr::store_error& e) {
      problem.code = e.reason;
      problem.sentence = "the chunks of \"" + node_.path + "\" in \"" + options_.source.name + "\" cannot be listed: " + e.what();
      if (!options_.execution.keep_going)
        throw error(errc::damaged_source, problem.sentence + "; leave such arrays out with `keep_going`",
                    {options_.source.name, node_.path});
    }
  });
  if (!problem.empty()) skip_reason_ = problem;
}

std::string array_work::v3_only_reason() const {
  const bool is_copy = options_.target.is_v2_copy();
  if ((!options_.target.references && !is_copy) || options_.target.zarr_format == zarr_format::v3) return {};
  try {
    if (is_copy) metadata::to_v2_copy(change_->document, false);
    else metadata::to_v2_array(change_->document, chunks_->has_gaps());
  } catch (const metadata::not_representable_in_v2& e) {
    return e.what();
  }
  return {};
}

// An array whose values may not fit in the bits is one unit, since one chunk decides about all.
std::uint64_t array_work::per_unit() const {
  if (change_->packs_if_it_fits) return std::max<std::uint64_t>(1, chunks_->items());
  const std::uint64_t units = change_->strategy == zarr_strategy::rechunk ? 4096 : 1024;
  return std::max<std::uint64_t>(1, (chunks_->items() + units - 1) / units);
}

std::uint64_t array_work::units() const { return skip_reason_.empty() ? (chunks_->items() + per_unit() - 1) / per_unit() : 1; }

chunk_range array_work::unit(std::uint64_t number) const {
  if (!skip_reason_.empty()) return {};
  const std::uint64_t items = chunks_->items(), first = number * per_unit();
  const std::uint64_t count = std::min(per_unit(), items - first);
  const double share = static_cast<double>(count) / static_cast<double>(items);  // a unit has an item
  return {first, count, static_cast<std::uint64_t>(static_cast<double>(chunks_->source_bytes()) * share)};
}

std::optional<std::uint64_t> array_work::unit_of(std::string_view coordinates) const {
  if (const auto item = chunks_->item_of(coordinates)) return *item / per_unit();
  return {};
}

work_unit_result array_work::make_items(const chunk_range& range) const {
  work_unit_result result;
  array_result& converted = result.arrays.emplace_back();
  try {
    converted = chunks_->make(range.first, range.count);
  } catch (const data_error& e) {
    if (!change_->packs_if_it_fits)
      throw error(errc::no_match, "array \"" + node_.path + "\" of \"" + options_.source.name + "\": " + e.what(),
                  {options_.source.name, node_.path});
    const zarr_array_plan change = plan_zarr_array(*array_, node_.document, node_.path, options_, false);
    rechunker fallback(*array_, change, node_.path, options_, &run_.out());
    fallback.list();
    if (change.plan.two_passes()) {
      array_result staged;
      const std::uint64_t boxes = fallback.plan_staging(std::vector<bool>(fallback.items(), true), scratch_folder_of(options_));
      for (std::uint64_t i = 0; i < boxes; ++i) fallback.stage(i, staged);
      fallback.finish_staging();
    }
    converted = fallback.make(0, fallback.items());
    converted.assumed.bits_suffice = false;
    converted.unpacked = e.what();
  } catch (const unrepresentable_value& e) {
    throw error(errc::not_joinable, "array \"" + node_.path + "\" cannot be joined: " + e.what(),
                {options_.source.name, node_.path});
  } catch (const compressors::corrupt_chunk& e) {
    throw error(errc::damaged_source, "array \"" + node_.path + "\" of \"" + options_.source.name + "\": " + e.what(),
                {options_.source.name, node_.path});
  } catch (const io::read_error& e) {
    throw error(errc::io_failed, "the source \"" + options_.source.name + "\" cannot be read: " + e.what(),
                {options_.source.name, node_.path});
  }
  return result;
}

// The first pass of two, for these units. Tasks may outlive this call if one of them fails.
void array_work::stage(std::span<const std::uint64_t> numbers, const std::shared_ptr<work_unit_result>& staged) {
  std::vector<bool> needed(static_cast<std::size_t>(chunks_->items()), false);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = unit(number);
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i) needed[static_cast<std::size_t>(i)] = true;
  }
  const std::uint64_t boxes = chunks_->plan_staging(needed, scratch_folder_of(options_));
  staged->arrays.resize(1);
  for (std::uint64_t i = 0; i < boxes; ++i) {
    run_.queue().submit(chunks_->memory(), [this, staged, i] {
      array_result one;
      chunks_->stage(i, one);
      const std::lock_guard lock(mutex_);
      staged->arrays[0].add(one);
    });
  }
  run_.queue().finish();
  chunks_->finish_staging();
}

void array_work::make(std::span<const std::uint64_t> numbers) {
  if (numbers.empty()) return;
  const auto staged = std::make_shared<work_unit_result>();
  const bool has_two_passes = chunks_->has_two_passes();
  if (has_two_passes) stage(numbers, staged);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = unit(number);
    run_.queue().submit(chunks_->memory(), [this, number, range, staged, is_first = number == numbers.front()] {
      work_unit_result result = make_items(range);
      if (is_first) result.add(std::move(*staged));
      run_.unit_done({number_, number}, std::move(result));
      run_.advance(range.bytes);
    });
  }
  if (!has_two_passes) return;
  run_.queue().finish();
  chunks_->drop_scratch();
}

void array_work::warn_of_chunks() const {
  if (!skip_reason_.empty() || change_->strategy == zarr_strategy::copy || chunks_->items() == 0 || !options_.execution.warning)
    return;
  const std::string sentence = text::chunk_memory_warning(
      {"array \"" + node_.path + "\" of \"" + options_.source.name + "\"", chunks_->chunk_bytes(), chunks_->memory()},
      options_.execution.memory, "increase `memory`");
  text::report_sentence(options_.execution.warning, sentence);
}

}  // namespace zarrbits::conversion
