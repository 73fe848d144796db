// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/zarr_conversion.hpp"

#include "codecs/codec_chain.hpp"
#include "convert/concat/file_order.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/from_zarr/join_stores.hpp"
#include "convert/from_zarr/rechunker.hpp"
#include "convert/from_zarr/source_array.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "convert/run/chunk_measurement.hpp"
#include "convert/run/journal.hpp"
#include "convert/run/partition.hpp"
#include "convert/run/target_options.hpp"
#include "io/remote_url.hpp"
#include "io/scratch_file.hpp"
#include "io/thread_pool.hpp"
#include "metadata/array_metadata.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "remote/s3_access.hpp"
#include "text/coordinates.hpp"
#include "text/format.hpp"
#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "text/warning.hpp"
#include "zarr/read/unreadable_node.hpp"
#include "zarr/write/consolidate.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/v2_writer.hpp"

#include <zarrbits/detail/convert_front_end.hpp>
#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

namespace zarrbits::conversion {

namespace {

using zarr_strategy = zarr_array_plan::strategy_type;

// An array, and what becomes of it.
struct array_work {
  std::unique_ptr<source_array> array;
  std::shared_ptr<const zarr_array_plan> change;
  std::shared_ptr<rechunker> chunks;
  std::string skipped;  // why it is not converted

  // An array whose values may not fit in the bits is one unit, since one chunk decides about all.
  std::uint64_t per_unit() const {
    if (change->packs_if_it_fits) return std::max<std::uint64_t>(1, chunks->items());
    const std::uint64_t units = change->strategy == zarr_strategy::rechunk ? 4096 : 1024;
    return std::max<std::uint64_t>(1, (chunks->items() + units - 1) / units);
  }
  std::uint64_t units() const { return skipped.empty() ? (chunks->items() + per_unit() - 1) / per_unit() : 1; }
  chunk_range unit(std::uint64_t number) const {
    const std::uint64_t items = chunks->items(), first = number * per_unit();
    const std::uint64_t count = std::min(per_unit(), items - first);
    const double share = static_cast<double>(count) / static_cast<double>(items);  // a unit has an item
    return {first, count, static_cast<std::uint64_t>(static_cast<double>(chunks->source_bytes()) * share)};
  }
};

class zarr_conversion {
 public:
  enum class mode { full, resume, worker, finalize, dry_run };

  zarr_conversion(const convert_options& requested, mode run_mode);
  void run(bool only_share);
  std::vector<planned_unit> units();
  std::vector<convert_worker::unit> missing();
  // Makes these units, except those in the journal.
  void run(const std::vector<planned_unit>& own_units);
  convert_plan plan();
  convert_result finalized(const std::string& started);
  // What this process has done: of a share, all of it.
  convert_result result_for(const std::string& started) const;
  void require_all_done();
  std::string keep_partial_store();

 private:
  void open_target(mode run_mode);
  std::string v3_only_reason(const array_work& work) const;
  void open_journal(mode run_mode, bool goes_on);
  void check_journal(bool make_again);
  bool matches_journal(std::size_t node, const std::map<std::uint64_t, std::uint64_t>& bytes);
  source_identity identity();
  void require_applicable_options() const;
  array_work& work_of(std::size_t node);
  void list_chunks(array_work& work, const std::string& path);
  void run_array(std::size_t node, const std::vector<std::uint64_t>& numbers, io::thread_pool& queue);
  void stage(array_work& work, const std::vector<std::uint64_t>& numbers, io::thread_pool& queue,
             work_unit_result& staging_result);
  work_unit_result make(std::size_t node, const chunk_range& range);
  std::optional<std::uint64_t> estimate(std::size_t node);
  void unit_done(const work_unit_id& id, work_unit_result&& result, std::uint64_t bytes);
  void report_progress();
  void set_current(const std::string& path);
  void warn_of_nodes() const;
  void warn_of_chunks(std::size_t node) const;
  std::string scratch_folder() const {
    return options_.scratch.empty() ? io::scratch_folder_for(options_.store) : options_.scratch;
  }
  converted_object write_node(std::size_t node);
  std::vector<joined_source> sources_with_bytes() const;
  std::string worded(const std::string& reason) const {
    const auto& wording = front_end_of(options_).wording;
    return wording ? wording(reason) : reason;
  }

  convert_options options_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  source_nodes source_;
  std::map<std::size_t, array_work> works_;
  std::unique_ptr<zarr::store_writer> out_;
  std::unique_ptr<journal> journal_;
  std::map<work_unit_id, work_unit_result> results_;
  std::mutex mutex_;
  std::string current_path_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_resumed_ = 0, bytes_ = 0;
};

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// A target within the source would become a part of it.
void refuse_target_within(const convert_options& options, const std::string& source_name) {
  if (io::is_object_store(source_name) != io::is_object_store(options.store) || options.store.empty()) return;
  const auto place = [](const std::string& name) {
    std::error_code e;
    if (io::is_object_store(name)) return name;
    return without_slashes(std::filesystem::weakly_canonical(std::filesystem::absolute(name), e).native());
  };
  const std::string source = place(split_source(source_name).file), target = place(options.store);
  if (io::may_be_within(target, source))
    throw error(errc::invalid_option, "\"" + options.store + "\" is the source, or in it; choose another place for the new store",
                {options.store});
}

zarr_conversion::zarr_conversion(const convert_options& requested, mode run_mode) : options_(requested) {
  remote::init_s3(given_sources(options_.source, options_.concat), run_mode == mode::dry_run ? "" : options_.store,
                  options_.remote, options_.warning);
  if (options_.concat) order_stores(options_);
  source_ = read_nodes(options_, [&](const std::string& path) { set_current(path); });
  for (const std::string& name : given_sources(options_.source, options_.concat)) refuse_target_within(options_, name);
  require_applicable_options();
  warn_of_nodes();
  if (!options_.share)
    text::report_sentence(options_.note, text::coordinates_note(source_.coordinates, options_.with_coordinates));
  if (run_mode == mode::dry_run) return;
  open_target(run_mode);
}

void zarr_conversion::require_applicable_options() const {
  std::set<std::size_t> ranks;
  std::map<std::string, bool> patterns;
  dimension_chunks_check chunks(options_.chunk_along);
  for (const source_node& n : source_.nodes) {
    if (!n.is_array || !n.selected) continue;
    if (const text::json& shape = metadata::shape_of(n.document); shape.is_array()) ranks.insert(shape.size());
    chunks.add(n.path, metadata::dimension_names_in(n.document));
    for (const auto& of : options_.bits_of) {
      text::selection one({of.pattern}, {});
      patterns[of.pattern] = patterns[of.pattern] || one.matches(n.path);
    }
  }
  const auto require_rank = [&](const char* option, const array::extents& shape) {
    if (shape.empty() || ranks.empty() || ranks.contains(shape.size())) return;
    std::string rank_list;
    for (const std::size_t n : ranks)
      rank_list += (rank_list.empty() ? "" : n == *ranks.rbegin() ? " and " : ", ") + std::to_string(n);
    throw error(errc::no_match, std::string(option) + " has " + text::pluralize(shape.size(), "dimension") +
                                    ", but the arrays have " + rank_list + "; \"zarrbits inspect\" lists their shapes");
  };
  require_rank("`chunk`", options_.chunk);
  require_rank("`shard`", options_.shard.shape);
  chunks.require_all_matched();
  for (const auto& [pattern, matched] : patterns) {
    if (!matched) throw error(errc::no_match, "`bits` \"" + pattern + "\" matches no array; \"zarrbits inspect\" lists them");
  }
}

void zarr_conversion::open_target(mode run_mode) {
  using existing = zarr::store_writer_options::if_exists;
  const bool one_file = zarr::is_one_file(options_.store);
  const bool joins = run_mode == mode::worker || (run_mode == mode::resume && !one_file);
  zarr::store_writer_options target = target_options(options_, split_source(options_.source).file);
  target.target = run_mode == mode::finalize                         ? existing::finalize
                  : joins                                            ? existing::attach
                  : options_.overwrite                               ? existing::replace
                  : one_file || zarr::has_partitions(options_.store) ? existing::refuse
                                                                     : existing::resume;
  target.shared = run_mode == mode::worker;
  out_ = zarr::make_store_writer(options_.store, target);
  const bool begun = run_mode == mode::full && out_->found_unfinished(), goes_on = begun || joins || run_mode == mode::finalize;
  if (goes_on) {
    if (load_plan(*out_, options_, begun)) {
      if (options_.concat) source_ = read_nodes(options_, [&](const std::string& path) { set_current(path); });
      else select_nodes(source_, options_);
    }
    options_.memory = region_memory_of(*out_, options_.memory);
  }
  const bool consolidated = options_.consolidate.value_or(source_.consolidated);
  if (options_.is_v2_copy()) out_ = zarr::make_v2_writer(std::move(out_), consolidated);
  else if (consolidated) out_ = zarr::make_consolidating_writer(std::move(out_));
  if (out_->can_resume()) open_journal(run_mode, goes_on);
}

// The metadata of all nodes, and the states of all objects of the arrays.
source_identity zarr_conversion::identity() {
  source_identity id;
  text::sha256 sum;
  if (!source_.checksum.empty()) sum.add_field(source_.checksum);
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    const source_node& n = source_.nodes[i];
    sum.add_field(n.path);
    sum.add_field(text::json_text(n.document));
    if (!n.is_array || !n.selected) continue;
    const array_work& work = work_of(i);
    if (!work.skipped.empty()) continue;
    work.chunks->add_identity(sum);
    id.size += work.chunks->source_bytes();
  }
  id.checksum = sum.hex();
  id.region_memory = options_.memory;
  return id;
}

void zarr_conversion::open_journal(mode run_mode, bool goes_on) {
  journal_ = std::make_unique<journal>(*out_, options_, identity(),
                                       run_mode == mode::finalize ? journal::start::finalize
                                       : goes_on                  ? journal::start::attach
                                                                  : journal::start::begin);
  if (!goes_on) return;
  results_ = journal_->read(run_mode != mode::finalize);
  if (!options_.share) check_journal(run_mode != mode::finalize);
  if (options_.note && out_->found_unfinished() && !options_.share && run_mode != mode::finalize)
    options_.note("continuing the unfinished store \"" + options_.store + "\": " + text::pluralize(results_.size(), "unit") +
                  " " + (results_.size() == 1 ? "is" : "are") + " already made");
}

// The journal may claim more than the store has: after a crash of the machine, or if the store was changed.
void zarr_conversion::check_journal(bool make_again) {
  std::map<std::size_t, std::map<std::uint64_t, std::uint64_t>> journalled;  // of each array: bytes of each unit's objects
  std::erase_if(results_, [&](const auto& r) {
    return r.first.dataset >= source_.nodes.size() || !source_.nodes[r.first.dataset].is_array ||
           !source_.nodes[r.first.dataset].selected;
  });
  for (const auto& [id, result] : results_) {
    std::uint64_t& sum = journalled[id.dataset][id.number];
    for (const array_result& a : result.arrays) sum += a.store_bytes;
  }
  for (const auto& [node, units] : journalled) {
    if (matches_journal(node, units)) continue;
    const std::string& path = source_.nodes[node].path;
    const std::string problem = "chunks of array \"" + path + "\" are missing in \"" + options_.store +
                                "\", or do not have the size that its journal says";
    if (!make_again)
      throw error(errc::incomplete, problem + "; convert again with `resume`, which writes them again", {options_.store, path});
    if (options_.warning) options_.warning(problem + "; the array is converted again");
    if (path != "/") out_->remove(path.substr(1));
    results_.erase(results_.lower_bound({node, 0}), results_.lower_bound({node + 1, 0}));
  }
}

// Objects of units that the journal does not have are rewritten in any case.
bool zarr_conversion::matches_journal(std::size_t node, const std::map<std::uint64_t, std::uint64_t>& bytes) {
  const array_work& work = work_of(node);
  if (!work.skipped.empty()) return true;
  const std::string& path = source_.nodes[node].path;
  const std::string chunks = metadata::chunk_key(path == "/" ? "" : path, {});
  std::map<std::uint64_t, std::uint64_t> stored;
  out_->for_each(path.substr(1), [&](std::string_view key, std::uint64_t size) {
    if (!key.starts_with(chunks)) return;
    if (work.array->shape().empty()) stored[0] = size;  // its only chunk
    else if (const auto item = work.chunks->item_of(key.substr(std::min(key.size(), chunks.size() + 1))))
      stored[*item / work.per_unit()] += size;
  });
  return std::all_of(bytes.begin(), bytes.end(), [&](const auto& unit) { return stored[unit.first] == unit.second; });
}

void zarr_conversion::list_chunks(array_work& work, const std::string& path) {
  std::string problem;
  work.skipped = zarr::reason_unreadable([&] {
    try {
      work.chunks->list();
    } catch (const zarr::store_error& e) {
      problem = "the chunks of \"" + path + "\" in \"" + options_.source + "\" cannot be listed: " + e.what();
      if (!options_.keep_going)
        throw error(errc::damaged_source, problem + "; leave such arrays out with `keep_going`", {options_.source, path});
    }
  });
  if (!problem.empty()) work.skipped = problem;
}

// Reads which chunks there are, once.
array_work& zarr_conversion::work_of(std::size_t node) {
  const auto [entry, is_new] = works_.try_emplace(node);
  array_work& work = entry->second;
  if (!is_new) return work;
  const source_node& n = source_.nodes[node];
  set_current(n.path);
  work.skipped = zarr::reason_unreadable([&] {
    work.array = std::make_unique<source_array>(open_source_array(n));
    work.change = std::make_shared<const zarr_array_plan>(plan_zarr_array(*work.array, n.document, n.path, options_, true));
    work.chunks = std::make_shared<rechunker>(*work.array, *work.change, n.path, options_, out_.get());
  });
  if (work.skipped.empty()) list_chunks(work, n.path);
  if (work.skipped.empty() && options_.format == zarr_format::v2) {
    if (const std::string reason = v3_only_reason(work); !reason.empty())
      work.skipped = "Zarr v2 cannot have it: " + reason + "; set `format` to " + (options_.is_v2_copy() ? "3" : "both or 3");
  }
  return work;
}

// References have the metadata of Zarr v2, too: why they do not have those of this array; empty if they do. Also of a copy.
std::string zarr_conversion::v3_only_reason(const array_work& work) const {
  const bool is_copy = options_.is_v2_copy();
  if ((!options_.references && !is_copy) || options_.format == zarr_format::v3) return {};
  try {
    if (is_copy) metadata::to_v2_copy(work.change->document, false);
    else metadata::to_v2_array(work.change->document, work.chunks->has_gaps());
  } catch (const metadata::not_representable_in_v2& e) {
    return e.what();
  }
  return {};
}

std::vector<planned_unit> zarr_conversion::units() {
  std::vector<planned_unit> result;
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    if (!source_.nodes[i].is_array || !source_.nodes[i].selected) continue;
    const array_work& work = work_of(i);
    for (std::uint64_t k = 0; k < work.units(); ++k)
      result.push_back({{i, k}, work.skipped.empty() ? work.unit(k) : chunk_range()});
  }
  return result;
}

void zarr_conversion::report_progress() {
  if (options_.progress)
    options_.progress({current_path_, objects_done_, source_.nodes.size(), bytes_done_, bytes_, bytes_resumed_});
}

// Other threads may report units at the same time.
void zarr_conversion::set_current(const std::string& path) {
  const std::lock_guard lock(mutex_);
  current_path_ = path;
  report_progress();
}

void zarr_conversion::unit_done(const work_unit_id& id, work_unit_result&& result, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  out_->end_unit({id.dataset, id.number});
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
  bytes_done_ += bytes;
  report_progress();
}

// Makes one unit. If packed values do not fit, the array is one of bytes.
work_unit_result zarr_conversion::make(std::size_t node, const chunk_range& range) {
  const array_work& work = works_.at(node);
  const source_node& n = source_.nodes[node];
  work_unit_result result;
  array_result& converted = result.arrays.emplace_back();
  try {
    converted = work.chunks->make(range.first, range.count);
  } catch (const data_error& e) {
    if (!work.change->packs_if_it_fits)
      throw error(errc::no_match, "array \"" + n.path + "\" of \"" + options_.source + "\": " + e.what(),
                  {options_.source, n.path});
    const zarr_array_plan change = plan_zarr_array(*work.array, n.document, n.path, options_, false);
    rechunker fallback(*work.array, change, n.path, options_, out_.get());
    fallback.list();
    if (change.plan.two_passes()) {
      array_result staging_result;
      const std::uint64_t boxes = fallback.plan_staging(std::vector<bool>(fallback.items(), true), scratch_folder());
      for (std::uint64_t i = 0; i < boxes; ++i) fallback.stage(i, staging_result);
      fallback.finish_staging();
    }
    converted = fallback.make(0, fallback.items());
    converted.assumed.bits_suffice = false;
    converted.unpacked = e.what();
  } catch (const unrepresentable_value& e) {
    throw error(errc::not_joinable, "array \"" + n.path + "\" cannot be joined: " + e.what(), {options_.source, n.path});
  } catch (const compressors::corrupt_chunk& e) {
    throw error(errc::damaged_source, "array \"" + n.path + "\" of \"" + options_.source + "\": " + e.what(),
                {options_.source, n.path});
  } catch (const io::read_error& e) {
    throw error(errc::io_failed, "the source \"" + options_.source + "\" cannot be read: " + e.what(), {options_.source, n.path});
  }
  return result;
}

// All metadata stay in memory until the end.
void zarr_conversion::warn_of_nodes() const {
  const std::string sentence = text::node_memory_warning(options_.source, source_.nodes.size(), options_.memory);
  text::report_sentence(options_.warning, sentence);
}

void zarr_conversion::warn_of_chunks(std::size_t node) const {
  const array_work& work = works_.at(node);
  if (!work.skipped.empty() || work.change->strategy == zarr_strategy::copy || work.chunks->items() == 0 || !options_.warning)
    return;
  const std::string sentence =
      text::chunk_memory_warning({"array \"" + source_.nodes[node].path + "\" of \"" + options_.source + "\"",
                                  work.chunks->chunk_bytes(), work.chunks->memory()},
                                 options_.memory, "increase `memory`");
  text::report_sentence(options_.warning, sentence);
}

// The first pass of two, for these units.
void zarr_conversion::stage(array_work& work, const std::vector<std::uint64_t>& numbers, io::thread_pool& queue,
                            work_unit_result& staging_result) {
  std::vector<bool> needed(static_cast<std::size_t>(work.chunks->items()), false);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = work.unit(number);
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i) needed[static_cast<std::size_t>(i)] = true;
  }
  const std::uint64_t boxes = work.chunks->plan_staging(needed, scratch_folder());
  staging_result.arrays.resize(1);
  for (std::uint64_t i = 0; i < boxes; ++i) {
    queue.submit(work.chunks->memory(), [&, i] {
      array_result staged;
      work.chunks->stage(i, staged);
      const std::lock_guard lock(mutex_);
      staging_result.arrays[0].add(staged);
    });
  }
  queue.finish();
  work.chunks->finish_staging();
}

void zarr_conversion::run_array(std::size_t node, const std::vector<std::uint64_t>& numbers, io::thread_pool& queue) {
  array_work& work = work_of(node);
  if (!work.skipped.empty()) {
    work_unit_result skipped;
    skipped.skipped = work.skipped;
    for (const std::uint64_t number : numbers) unit_done({node, number}, work_unit_result(skipped), 0);
    return;
  }
  auto staging_result = std::make_shared<work_unit_result>();
  const bool two_passes = work.chunks->has_two_passes() && !numbers.empty();
  if (two_passes) stage(work, numbers, queue, *staging_result);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = work.unit(number);
    queue.submit(work.chunks->memory(), [this, node, number, range, staging_result, first = number == numbers.front()] {
      work_unit_result result = make(node, range);
      if (first) result.add(std::move(*staging_result));
      unit_done({node, number}, std::move(result), range.bytes);
    });
  }
  if (two_passes) {
    queue.finish();
    work.chunks->drop_scratch();
  }
}

void zarr_conversion::run(bool only_share) {
  const std::vector<planned_unit> all_units = units(),
                                  own_units = only_share
                                                  ? units_of_partition(all_units, options_.share->index, options_.share->count)
                                                  : all_units;
  if (journal_) journal_->begin(all_units.size(), own_units.size());
  run(own_units);
  if (journal_ && only_share) journal_->end();
}

void zarr_conversion::run(const std::vector<planned_unit>& own_units) {
  bytes_ = bytes_of(own_units);
  for (std::size_t i = 0; i < own_units.size(); ++i) {
    if (i == 0 || own_units[i].id.dataset != own_units[i - 1].id.dataset) warn_of_chunks(own_units[i].id.dataset);
  }
  const unsigned threads = !out_->is_order_independent() ? 1 : options_.threads ? options_.threads : detail::usable_processors();
  {
    io::thread_pool queue(threads, std::max<std::uint64_t>(options_.memory, min_memory) / 2);
    for (std::size_t i = 0; i < own_units.size();) {
      const std::size_t node = own_units[i].id.dataset;
      std::vector<std::uint64_t> numbers;
      for (; i < own_units.size() && own_units[i].id.dataset == node; ++i) {
        const std::lock_guard lock(mutex_);
        if (results_.contains(own_units[i].id)) {
          bytes_done_ += own_units[i].range.bytes;
          bytes_resumed_ += own_units[i].range.bytes;
        } else {
          numbers.push_back(own_units[i].id.number);
        }
      }
      set_current(source_.nodes[node].path);
      run_array(node, numbers, queue);
      const std::lock_guard lock(mutex_);
      ++objects_done_;
    }
    queue.finish();
  }
  if (journal_) journal_->flush();
}

std::vector<convert_worker::unit> zarr_conversion::missing() {
  std::vector<convert_worker::unit> result;
  for (const planned_unit& u : units()) {
    if (!results_.contains(u.id)) result.push_back({u.id.dataset, u.id.number, source_.nodes[u.id.dataset].path});
  }
  return result;
}

std::string zarr_conversion::keep_partial_store() {
  const std::uint64_t units = journal_ ? journal_->kept_units() : 0;
  if (units == 0) return {};
  out_->keep_unfinished();
  return kept_work_message(options_, *journal_);
}

// The entry of an array or a group in the report; writes its metadata.
converted_object zarr_conversion::write_node(std::size_t node) {
  const source_node& n = source_.nodes[node];
  converted_object entry;
  entry.path = n.path;
  entry.kind = n.is_array ? object_kind::dataset : object_kind::group;
  entry.selected = n.selected;
  if (!n.selected) {
    entry.outcome = outcome::skipped;
    entry.reason = "not selected";
    return entry;
  }
  if (!n.unreadable.empty()) {
    entry.kind = object_kind::dataset;
    entry.outcome = outcome::skipped;
    entry.reason = worded(n.unreadable);
    return entry;
  }
  const text::json* document = &n.document;
  std::optional<zarr_array_plan> plain;
  if (n.is_array) {
    const array_work& work = work_of(node);
    work_unit_result merged = take_units(results_, node);
    if (!merged.skipped.empty() || !work.skipped.empty()) {
      entry.outcome = outcome::skipped;
      entry.reason = worded(work.skipped.empty() ? merged.skipped : work.skipped);
      return entry;
    }
    const array_result result = merged.arrays.empty() ? array_result() : std::move(merged.arrays[0]);
    document = &work.change->document;
    if (!result.assumed.bits_suffice && work.change->packs_if_it_fits) {
      plain = plan_zarr_array(*work.array, n.document, n.path, options_, false);
      document = &plain->document;
      entry.reason = "stored as bytes: " + result.unpacked;
    }
    entry.outcome = result.worst;
    entry.chunks = result.counts;
    entry.chunks.lost = result.lost_chunks.size();
    entry.source_bytes = work.chunks->source_bytes();
    entry.store_bytes = result.store_bytes;
    entry.lossy = !result.lost_chunks.empty();
    for (const auto& lost_chunk : result.lost_chunks) entry.lost_chunks.push_back(lost_chunk.first);
    if (entry.lossy)
      entry.reason =
          text::pluralize(result.lost_chunks.size(), "chunk") + " cannot be read: " + worded(result.lost_chunks.begin()->second);
    if (const std::string reason = v3_only_reason(work); !reason.empty())
      entry.reason += (entry.reason.empty() ? "only for readers of Zarr v3: " : "; only for readers of Zarr v3: ") + reason;
  } else {
    entry.outcome = outcome::raw;
  }
  out_->put(metadata::metadata_key(n.path == "/" ? "" : n.path), metadata::node_text(*document));
  return entry;
}

convert_result zarr_conversion::result_for(const std::string& started) const {
  convert_result result;
  result.source = options_.source;
  result.store = options_.store;
  result.profile = options_.effective_profile();
  result.started = started;
  for (const auto& [node, work] : works_) result.source_bytes += work.chunks ? work.chunks->source_bytes() : 0;
  result.store_objects = out_->objects();
  result.store_bytes = out_->bytes();
  result.referenced_objects = out_->referenced_objects();
  result.referenced_bytes = out_->referenced_bytes();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return result;
}

convert_result zarr_conversion::finalized(const std::string& started) {
  std::vector<zarr::unit_key> units;
  for (const auto& [id, result] : results_) units.emplace_back(id.dataset, id.number);
  out_->end_units(units, target_options(options_, split_source(options_.source).file));
  std::vector<converted_object> objects(source_.nodes.size());
  for (std::size_t i = source_.nodes.size(); i-- > 0;) objects[i] = write_node(i);  // the root last
  convert_result result = result_for(started);
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    if (objects[i].outcome == outcome::skipped) continue;
    for (const detail::attribute_remark& r : source_.nodes[i].remarks) {
      converted_object& entry = objects.emplace_back();
      entry.path = source_.nodes[i].path;
      entry.kind = object_kind::attribute;
      entry.attribute = text::escape_name(r.attribute);
      entry.outcome = r.left_out ? outcome::skipped : outcome::mapped;
      entry.reason = r.reason;
    }
  }
  result.objects = std::move(objects);
  result.sources = sources_with_bytes();
  const bool is_references = zarr::is_reference_target(options_.store);
  if (!is_references &&
      (!io::is_object_store(options_.store) || out_->found_unfinished())) {  // also what other processes and earlier runs wrote
    result.store_objects = result.store_bytes = 0;
    out_->for_each("", [&](std::string_view key, std::uint64_t size) {
      if (zarr::in_unfinished_folder(key)) return;
      ++result.store_objects;
      result.store_bytes += size;
    });
  }
  if (const auto& call = front_end_of(options_).before_done) call(result);
  for (const zarr::store_folder& root : source_.roots) root.require_unchanged();
  out_->finish();
  if (is_references) std::tie(result.store_objects, result.store_bytes) = zarr::count_reference_files(options_.store);
  return result;
}

// Joined stores, each with the bytes of its metadata, and of its chunks in the arrays that are joined.
std::vector<joined_source> zarr_conversion::sources_with_bytes() const {
  std::vector<joined_source> sources = source_.sources;
  for (const auto& [node, work] : works_) {
    const auto& joined = source_.nodes[node].joined;
    if (!joined || !work.chunks) continue;
    const std::vector<std::uint64_t>& bytes = work.chunks->bytes_of_parts();
    for (std::size_t part = 0; part < bytes.size(); ++part) sources.at(source_of_part(*joined, part)).bytes += bytes[part];
  }
  return sources;
}

void zarr_conversion::require_all_done() {
  conversion::require_all_done(
      units(), [&](const work_unit_id& id) { return results_.contains(id); }, journal_ ? journal_->partition_count() : 0,
      options_.store);
}

// About the bytes of a re-encoded array, by a sample of its objects or regions, which are made and go nowhere. Empty if its
// values may be on a server or cannot be read, and if more than the sample would be read for it.
std::optional<std::uint64_t> zarr_conversion::estimate(std::size_t node) {
  constexpr std::uint64_t sample_bytes = 4U << 20, max_samples = 256, max_item_bytes = 64U << 20;
  const array_work& work = works_.at(node);
  const std::uint64_t items = work.chunks->items();
  if (items == 0) return 0;
  for (const std::string& name : given_sources(options_.source, options_.concat)) {
    const std::string source = split_source(name).file;
    if (io::is_remote(source) || zarr::is_reference_target(source)) return {};
  }
  if (work.chunks->has_two_passes() || work.change->packs_if_it_fits || work.chunks->memory() > max_item_bytes) return {};
  const std::uint64_t item_bytes = std::max<std::uint64_t>(1, work.chunks->memory()),
                      count = std::min(items, std::clamp<std::uint64_t>(sample_bytes / item_bytes, 1, max_samples));
  work_unit_result sample;
  try {
    for (std::uint64_t i = 0; i < count; ++i) sample.add(make(node, {items / count * i + items / count / 2, 1, 0}));
  } catch (const std::exception&) {  // convert says what cannot be read
    return {};
  }
  const double bytes = static_cast<double>(sample.arrays.at(0).store_bytes) * static_cast<double>(items);
  results_[{node, 0}] = std::move(sample);
  return static_cast<std::uint64_t>(bytes / static_cast<double>(count));
}

convert_plan zarr_conversion::plan() {
  convert_plan result;
  out_ = make_counting_writer();
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    const source_node& n = source_.nodes[i];
    if (!n.selected) continue;
    planned_dataset p;
    p.path = n.path;
    if (!n.unreadable.empty()) {
      p.outcome = outcome::skipped;
      p.how = worded(n.unreadable);
      result.datasets.push_back(std::move(p));
      continue;
    }
    if (!n.is_array) {
      ++result.groups;
      continue;
    }
    const array_work& work = work_of(i);
    warn_of_chunks(i);
    if (!work.skipped.empty()) {
      p.outcome = outcome::skipped;
      p.how = worded(work.skipped);
    } else {
      const zarr_array_plan& c = *work.change;
      p.outcome = c.strategy == zarr_strategy::copy || c.strategy == zarr_strategy::reshard ? outcome::raw : outcome::recoded;
      const bool referred = options_.references && p.outcome == outcome::raw;
      p.how = referred ? "referred to" : c.description();
      if (c.strategy == zarr_strategy::rechunk) p.how += "; chunks of " + array::joined_text(c.chunk);
      p.codecs = text::json_text(metadata::codecs_of(c.document));
      p.chunk_shape = c.chunk;
      p.objects = work.chunks->objects() + 1;
      p.source_bytes = work.chunks->source_bytes();
      p.store_bytes = referred ? 0 : p.outcome == outcome::raw ? p.source_bytes : work.chunks->plain_bytes();
      p.estimated_bytes = p.outcome == outcome::raw ? p.store_bytes : estimate(i);
      if (p.estimated_bytes) p.estimated_bytes = std::min(*p.estimated_bytes, p.store_bytes);
      if (const std::string reason = v3_only_reason(work); !reason.empty()) p.how += "; only for readers of Zarr v3: " + reason;
      for (std::uint64_t k = 0; k < work.units(); ++k) {
        const chunk_range range = work.unit(k);
        p.units.push_back({range.first, range.count, range.bytes});
      }
    }
    result.datasets.push_back(std::move(p));
  }
  const std::uint64_t chunk_bytes = out_->bytes();
  for (std::size_t i = source_.nodes.size(); i-- > 0;) (void)write_node(i);
  result.estimated_bytes = out_->bytes() - chunk_bytes;
  for (const planned_dataset& p : result.datasets) {
    if (p.outcome == outcome::skipped || !result.estimated_bytes) continue;
    if (p.estimated_bytes) *result.estimated_bytes += *p.estimated_bytes;
    else result.estimated_bytes.reset();
  }
  result.sources = sources_with_bytes();
  return result;
}

template <class Run>
auto with_public_errors(const convert_options& options, Run&& run) {
  const std::string source = split_source(options.source).file;
  try {
    return run();
  } catch (const error&) {
    throw;
  } catch (const zarr::store_error& e) {
    throw error(e.code == errc::damaged_store ? errc::damaged_source : e.code, e.what(), {source});
  } catch (const zarr::not_supported& e) {
    throw error(errc::unsupported, "\"" + source + "\" cannot be read: this reader does not support " + e.what(), {source});
  } catch (const text::json::exception& e) {
    throw error(errc::damaged_source, "the metadata of \"" + source + "\" are invalid: " + e.what(), {source});
  } catch (const unrepresentable_value& e) {
    throw error(errc::not_joinable, std::string("the stores cannot be joined: ") + e.what(), {source});
  }
}

class conversion_worker final : public zarr_worker {
 public:
  explicit conversion_worker(const convert_options& options) : options_(options) {
    with_public_errors(options_, [&] {
      work_ = std::make_unique<zarr_conversion>(options_, zarr_conversion::mode::worker);
      for (const planned_unit& u : work_->units()) units_.emplace(u.id, u);
    });
  }

  std::vector<convert_worker::unit> missing() override {
    return with_public_errors(options_, [&] { return work_->missing(); });
  }

  void make(const convert_worker::unit& u) override {
    with_public_errors(options_, [&] {
      const auto entry = units_.find({u.dataset, u.number});
      if (entry == units_.end())
        throw error(errc::invalid_option, "there is no unit " + std::to_string(u.number) + " of \"" + u.path + "\"");
      work_->run({entry->second});
    });
  }

 private:
  convert_options options_;
  std::unique_ptr<zarr_conversion> work_;
  std::map<work_unit_id, planned_unit> units_;
};

}  // namespace

void check_store_options(const convert_options& options) {
  const auto refuse = [](bool is_given, const char* option, const char* reason) {
    if (is_given) throw error(errc::invalid_option, std::string(reason) + "; leave out `" + option + "`");
  };
  if (options.concat) {
    for (const std::string& name : options.concat->sources) {
      if (!zarr::is_read_as_store(name, true))
        throw error(errc::invalid_option,
                    "Zarr stores are joined with Zarr stores, and files with files: \"" + options.source +
                        "\" is a store, and \"" + name + "\" is not; make a store of it first",
                    {name});
    }
    refuse(options.concat->append, "append", "HDF5 files are appended to a store, and the source is a Zarr store");
    refuse(options.concat->is_new, "is_new", "a new dimension is for HDF5 files, and the source is a Zarr store");
  }
  if (options.references) {
    constexpr const char* stay = "references point to the chunks of the source, which stay as they are";
    refuse(options.compress.has_value(), "compress", stay);
    refuse(options.sets_chunks(), "chunk", stay);
    refuse(options.codec != array_codec::automatic, "codec", stay);
    refuse(options.profile.value_or(profile::native) == profile::recode, "profile", stay);
  }
  refuse(options.convention.has_value(), "convention", "the source is a Zarr store, whose names and attributes stay as they are");
  refuse(options.links.has_value(), "links", "the source is a Zarr store, which has no links");
}

convert_result convert_store(const convert_options& options, const std::string& started) {
  return with_public_errors(options, [&] {
    using mode = zarr_conversion::mode;
    zarr_conversion converter(options, options.share ? mode::worker : options.resume ? mode::resume : mode::full);
    if (options.share) {
      converter.run(true);
      return converter.result_for(started);
    }
    try {
      converter.run(false);
      return converter.finalized(started);
    } catch (const error& e) {
      const std::string kept_message = is_permanent(e) ? "" : converter.keep_partial_store();
      if (kept_message.empty()) throw;
      throw error(e.kind(), std::string(e.what()) + ". " + kept_message, e.place());
    } catch (...) {
      converter.keep_partial_store();
      throw;
    }
  });
}

std::unique_ptr<zarr_worker> join_conversion(const convert_options& options) {
  return std::make_unique<conversion_worker>(options);
}

convert_result finalize_store(const convert_options& options, const std::string& started) {
  return with_public_errors(options, [&] {
    zarr_conversion converter(options, zarr_conversion::mode::finalize);
    converter.require_all_done();
    return converter.finalized(started);
  });
}

convert_plan plan_store(const convert_options& options) {
  return with_public_errors(options, [&] { return zarr_conversion(options, zarr_conversion::mode::dry_run).plan(); });
}

}  // namespace zarrbits::conversion
