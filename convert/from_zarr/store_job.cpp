// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/store_job.hpp"

#include "convert/from_zarr/change_chunks.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "convert/run/journal.hpp"
#include "convert/run/planned_units.hpp"
#include "io/remote_name.hpp"
#include "io/s3_access.hpp"
#include "io/work_queue.hpp"
#include "text/memory_need.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "text/shown.hpp"
#include "text/words.hpp"
#include "zarr/read/unreadable_node.hpp"
#include "zarr/write/consolidate.hpp"
#include "zarr/write/node.hpp"

#include <zarrbits/detail/convert_front_end.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace zarrbits::conversion {

namespace {

using zarr::zarr_array;
using way = array_change::way_type;

// An array, and what becomes of it.
struct array_work {
  std::unique_ptr<zarr_array> array;
  std::shared_ptr<const array_change> change;
  std::shared_ptr<change_chunks> chunks;
  std::string skipped;  // why it is not converted

  // An array whose values may not fit in the bits is one unit, since one chunk decides about all.
  std::uint64_t per_unit() const {
    if (change->packs_if_it_fits) return std::max<std::uint64_t>(1, chunks->items());
    const std::uint64_t units = change->way == way::rechunk ? 4096 : 1024;
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

class store_job {
 public:
  enum class mode { all, resume, join, finish, look };

  store_job(const convert_options& given, mode how);
  void run(bool only_share);
  convert_plan plan();
  convert_result finished(const std::string& started);
  // What this process has done: of a share, all of it.
  convert_result result_for(const std::string& started) const;
  void require_all_done();
  std::string keep();

 private:
  void open_target(mode how);
  void open_journal(mode how, bool goes_on);
  void check_journal(bool make_again);
  bool has_units(std::size_t node, const std::map<std::uint64_t, std::uint64_t>& bytes);
  source_identity identity();
  void require_uses() const;
  array_work& work_of(std::size_t node);
  void list_chunks(array_work& work, const std::string& path);
  std::vector<planned_unit> units();
  void run_array(std::size_t node, const std::vector<std::uint64_t>& numbers, io::work_queue& queue);
  void gather(array_work& work, const std::vector<std::uint64_t>& numbers, io::work_queue& queue, unit_result& lost);
  unit_result make(std::size_t node, const chunk_range& range);
  void unit_done(const unit_id& id, unit_result&& result, std::uint64_t bytes);
  void tell();
  void at_hand(const std::string& path);
  void warn_of_nodes() const;
  void warn_of_chunks(std::size_t node) const;
  std::string scratch_folder() const { return options_.scratch.empty() ? scratch_folder_for(options_.store) : options_.scratch; }
  converted_object write_node(std::size_t node);
  std::string worded(const std::string& reason) const {
    const auto& wording = front_end_of(options_).wording;
    return wording ? wording(reason) : reason;
  }

  convert_options options_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  source_nodes source_;
  std::map<std::size_t, array_work> works_;
  std::unique_ptr<zarr::sink> out_;
  std::unique_ptr<journal> journal_;
  std::map<unit_id, unit_result> results_;
  std::mutex mutex_;
  std::string at_hand_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_ = 0;
};

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// A target within the source would become a part of it.
void refuse_target_within(const convert_options& options) {
  if (io::is_s3(options.source) != io::is_s3(options.store) || options.store.empty()) return;
  const auto place = [](const std::string& name) {
    std::error_code e;
    if (io::is_s3(name)) return without_slashes(name);
    return without_slashes(std::filesystem::weakly_canonical(std::filesystem::absolute(name), e).native());
  };
  const std::string from = place(split_source(options.source).file), to = place(options.store);
  if (to == from || to.starts_with(from + "/"))
    throw error(errc::invalid_option, "\"" + options.store + "\" is the source, or in it; choose another place for the new store",
                {options.store});
}

store_job::store_job(const convert_options& given, mode how) : options_(given) {
  io::prepare_s3({options_.source}, how == mode::look ? "" : options_.store, options_.remote, options_.warning);
  source_ = read_nodes(options_, [&](const std::string& path) { at_hand(path); });
  refuse_target_within(options_);
  require_uses();
  if (how == mode::look) return;
  warn_of_nodes();
  open_target(how);
}

void store_job::require_uses() const {
  std::set<std::size_t> ranks;
  std::map<std::string, bool> patterns;
  for (const source_node& n : source_.nodes) {
    if (!n.is_array || !n.selected) continue;
    if (const auto shape = n.document.find("shape"); shape != n.document.end() && shape->is_array()) ranks.insert(shape->size());
    for (const auto& of : options_.bits_of) {
      text::selection one({of.pattern}, {});
      patterns[of.pattern] = patterns[of.pattern] || one.wants(n.path);
    }
  }
  const auto require_rank = [&](const char* option, const extents& shape) {
    if (shape.empty() || ranks.empty() || ranks.contains(shape.size())) return;
    std::string there;
    for (const std::size_t n : ranks) there += (there.empty() ? "" : n == *ranks.rbegin() ? " and " : ", ") + std::to_string(n);
    throw error(errc::no_match, std::string(option) + " has " + text::counted(shape.size(), "dimension") + ", but the arrays have " +
                                    there + "; \"zarrbits inspect\" lists their shapes");
  };
  require_rank("`chunk`", options_.chunk);
  require_rank("`shard`", options_.shard.shape);
  for (const auto& [pattern, matched] : patterns) {
    if (!matched) throw error(errc::no_match, "`bits` \"" + pattern + "\" matches no array; \"zarrbits inspect\" lists them");
  }
}

void store_job::open_target(mode how) {
  using existing = zarr::sink_options::existing;
  const bool one_file = zarr::is_one_file(options_.store);
  const bool joins = how == mode::join || (how == mode::resume && !one_file);
  out_ = zarr::make_sink(options_.store, {.target = how == mode::finish  ? existing::finish
                                              : joins              ? existing::join
                                              : options_.overwrite ? existing::replace
                                              : one_file           ? existing::refuse
                                                                   : existing::go_on,
                                    .shared = how == mode::join,
                                    .run = front_end_of(options_).run,
                                    .source = split_source(options_.source).file,
                                    .sync = options_.sync,
                                    .warning = options_.warning,
                                    .base = {},
                                    .formats = {},
                                    .memory = options_.memory,
                                    .remote = options_.remote});
  const bool begun = how == mode::all && out_->found_unfinished(), goes_on = begun || joins || how == mode::finish;
  if (goes_on) {
    if (take_plan(*out_, options_, begun)) select_nodes(source_, options_);
    options_.memory = region_memory_of(*out_, options_.memory);
  }
  if (options_.consolidate.value_or(source_.consolidated)) out_ = zarr::consolidating(std::move(out_));
  if (out_->keeps_unfinished()) open_journal(how, goes_on);
}

// The metadata of all nodes, and the states of all objects of the arrays.
source_identity store_job::identity() {
  source_identity id;
  text::sha256 sum;
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

void store_job::open_journal(mode how, bool goes_on) {
  journal_ = std::make_unique<journal>(*out_, options_, identity(),
                                       how == mode::finish ? journal::start::finish
                                       : goes_on           ? journal::start::join
                                                           : journal::start::begin);
  if (!goes_on) return;
  results_ = journal_->read(how != mode::finish);
  if (!options_.share) check_journal(how != mode::finish);
  if (options_.note && out_->found_unfinished() && !options_.share && how != mode::finish)
    options_.note("continuing the unfinished store \"" + options_.store + "\": " + text::counted(results_.size(), "unit") + " " +
                  (results_.size() == 1 ? "is" : "are") + " already made");
}

// The journal may claim more than the store has: after a crash of the machine, or if somebody changed the store.
void store_job::check_journal(bool make_again) {
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
    if (has_units(node, units)) continue;
    const std::string& path = source_.nodes[node].path;
    const std::string what = "chunks of array \"" + path + "\" are missing in \"" + options_.store +
                             "\", or do not have the size that its journal says";
    if (!make_again)
      throw error(errc::incomplete, what + "; convert again with `resume`, which writes them again", {options_.store, path});
    if (options_.warning) options_.warning(what + "; the array is converted again");
    if (!work_of(node).array->shape().empty()) out_->remove(zarr::chunk_key(path == "/" ? "" : path, {}));
    results_.erase(results_.lower_bound({node, 0}), results_.lower_bound({node + 1, 0}));
  }
}

// Objects of units that the journal does not have are made again in any case.
bool store_job::has_units(std::size_t node, const std::map<std::uint64_t, std::uint64_t>& bytes) {
  const array_work& work = work_of(node);
  if (!work.skipped.empty()) return true;
  const std::string& path = source_.nodes[node].path;
  const std::string chunks = zarr::chunk_key(path == "/" ? "" : path, {});
  std::map<std::uint64_t, std::uint64_t> stored;
  if (work.array->shape().empty()) {  // its only chunk is an object of that name
    const auto one = out_->get(chunks);
    stored[0] = one ? one->size() : 0;
  } else {
    out_->each(chunks, [&](std::string_view key, std::uint64_t size) {
      if (const auto item = work.chunks->item_of(key.substr(std::min(key.size(), chunks.size() + 1))))
        stored[*item / work.per_unit()] += size;
    });
  }
  return std::all_of(bytes.begin(), bytes.end(), [&](const auto& unit) { return stored[unit.first] == unit.second; });
}

void store_job::list_chunks(array_work& work, const std::string& path) {
  std::string lost;
  work.skipped = zarr::reason_unreadable([&] {
    try {
      work.chunks->list();
      bytes_ += work.chunks->source_bytes();
    } catch (const zarr::store_error& e) {
      lost = "the chunks of \"" + path + "\" in \"" + options_.source + "\" cannot be listed: " + e.what();
      if (!options_.keep_going)
        throw error(errc::damaged_source, lost + "; leave such arrays out with `keep_going`", {options_.source, path});
    }
  });
  if (!lost.empty()) work.skipped = lost;
}

// Reads which chunks there are, once.
array_work& store_job::work_of(std::size_t node) {
  const auto [found, is_new] = works_.try_emplace(node);
  array_work& work = found->second;
  if (!is_new) return work;
  const source_node& n = source_.nodes[node];
  at_hand(n.path);
  work.skipped = zarr::reason_unreadable([&] {
    work.array = std::make_unique<zarr_array>(n.folder);
    work.change = std::make_shared<const array_change>(plan_change(*work.array, n.document, n.path, options_, true));
    work.chunks = std::make_shared<change_chunks>(*work.array, *work.change, n.path, options_, out_.get());
  });
  if (work.skipped.empty()) list_chunks(work, n.path);
  return work;
}

std::vector<planned_unit> store_job::units() {
  std::vector<planned_unit> all;
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    if (!source_.nodes[i].is_array || !source_.nodes[i].selected) continue;
    const array_work& work = work_of(i);
    for (std::uint64_t k = 0; k < work.units(); ++k) all.push_back({{i, k}, work.skipped.empty() ? work.unit(k) : chunk_range()});
  }
  return all;
}

void store_job::tell() {
  if (options_.progress) options_.progress({at_hand_, objects_done_, source_.nodes.size(), bytes_done_, bytes_});
}

// Other threads may report units at the same time.
void store_job::at_hand(const std::string& path) {
  const std::lock_guard held(mutex_);
  at_hand_ = path;
  tell();
}

void store_job::unit_done(const unit_id& id, unit_result&& result, std::uint64_t bytes) {
  const std::lock_guard held(mutex_);
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
  bytes_done_ += bytes;
  tell();
}

// Makes one unit. If packed values do not fit, the array is one of bytes.
unit_result store_job::make(std::size_t node, const chunk_range& range) {
  const array_work& work = works_.at(node);
  const source_node& n = source_.nodes[node];
  unit_result result;
  array_result& made = result.arrays.emplace_back();
  try {
    made = work.chunks->make(range.first, range.count);
  } catch (const data_error& e) {
    if (!work.change->packs_if_it_fits)
      throw error(errc::no_match, "array \"" + n.path + "\" of \"" + options_.source + "\": " + e.what(),
                  {options_.source, n.path});
    const array_change change = plan_change(*work.array, n.document, n.path, options_, false);
    change_chunks again(*work.array, change, n.path, options_, out_.get());
    again.list();
    if (change.plan.two_passes()) {
      array_result lost;
      const std::uint64_t boxes = again.plan_gathering(std::vector<bool>(again.items(), true), scratch_folder());
      for (std::uint64_t i = 0; i < boxes; ++i) again.gather(i, lost);
      again.finish_gathering();
    }
    made = again.make(0, again.items());
    made.assumed.bits_suffice = false;
    made.unpacked = e.what();
  } catch (const compressors::damaged_chunk& e) {
    throw error(errc::unsupported, "array \"" + n.path + "\" of \"" + options_.source + "\": " + e.what(),
                {options_.source, n.path});
  } catch (const io::unreadable_range& e) {
    throw error(errc::io_failed, "the source \"" + options_.source + "\" cannot be read: " + e.what(), {options_.source, n.path});
  }
  return result;
}

// All metadata stay in memory until the end.
void store_job::warn_of_nodes() const {
  const std::string sentence = text::warning_of_nodes(options_.source, source_.nodes.size(), options_.memory);
  if (!sentence.empty() && options_.warning) options_.warning(sentence);
}

void store_job::warn_of_chunks(std::size_t node) const {
  const array_work& work = works_.at(node);
  if (!work.skipped.empty() || work.change->way == way::copy || work.chunks->items() == 0 || !options_.warning) return;
  const std::string sentence =
      text::warning_of_chunks({"array \"" + source_.nodes[node].path + "\" of \"" + options_.source + "\"",
                               work.chunks->chunk_bytes(), work.chunks->memory()},
                              options_.memory, "increase `memory`");
  if (!sentence.empty()) options_.warning(sentence);
}

// The first pass of two, for these units.
void store_job::gather(array_work& work, const std::vector<std::uint64_t>& numbers, io::work_queue& queue, unit_result& lost) {
  std::vector<bool> needed(static_cast<std::size_t>(work.chunks->items()), false);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = work.unit(number);
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i) needed[static_cast<std::size_t>(i)] = true;
  }
  const std::uint64_t boxes = work.chunks->plan_gathering(needed, scratch_folder());
  lost.arrays.resize(1);
  for (std::uint64_t i = 0; i < boxes; ++i) {
    queue.submit(work.chunks->memory(), [&, i] {
      array_result done;
      work.chunks->gather(i, done);
      const std::lock_guard held(mutex_);
      lost.arrays[0].add(done);
    });
  }
  queue.finish();
  work.chunks->finish_gathering();
}

void store_job::run_array(std::size_t node, const std::vector<std::uint64_t>& numbers, io::work_queue& queue) {
  array_work& work = work_of(node);
  if (!work.skipped.empty()) {
    unit_result skipped;
    skipped.skipped = work.skipped;
    for (const std::uint64_t number : numbers) unit_done({node, number}, unit_result(skipped), 0);
    return;
  }
  auto lost = std::make_shared<unit_result>();
  const bool two_passes = work.chunks->has_two_passes() && !numbers.empty();
  if (two_passes) gather(work, numbers, queue, *lost);
  for (const std::uint64_t number : numbers) {
    const chunk_range range = work.unit(number);
    queue.submit(work.chunks->memory(), [this, node, number, range, lost, first = number == numbers.front()] {
      unit_result made = make(node, range);
      if (first) made.add(std::move(*lost));
      unit_done({node, number}, std::move(made), range.bytes);
    });
  }
  if (two_passes) {
    queue.finish();
    work.chunks->drop_scratch();
  }
}

void store_job::run(bool only_share) {
  const std::vector<planned_unit> all = units(),
                                  own = only_share ? share_of(all, options_.share->index, options_.share->count) : all;
  if (journal_) journal_->begin(all.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i == 0 || own[i].id.dataset != own[i - 1].id.dataset) warn_of_chunks(own[i].id.dataset);
  }
  const unsigned threads = !out_->any_order() ? 1 : options_.threads ? options_.threads : io::usable_processors();
  {
    io::work_queue queue(threads, std::max<std::uint64_t>(options_.memory, least_memory) / 2);
    for (std::size_t i = 0; i < own.size();) {
      const std::size_t node = own[i].id.dataset;
      std::vector<std::uint64_t> numbers;
      for (; i < own.size() && own[i].id.dataset == node; ++i) {
        const std::lock_guard held(mutex_);
        if (!results_.contains(own[i].id)) numbers.push_back(own[i].id.number);
      }
      at_hand(source_.nodes[node].path);
      run_array(node, numbers, queue);
      const std::lock_guard held(mutex_);
      ++objects_done_;
    }
    queue.finish();
  }
  if (!journal_) return;
  journal_->flush();
  if (only_share) journal_->end();
}

std::string store_job::keep() {
  const std::uint64_t units = journal_ ? journal_->kept() : 0;
  if (units == 0) return {};
  out_->keep();
  return what_is_kept(options_, *journal_);
}

// The entry of an array or a group in the report; writes its metadata.
converted_object store_job::write_node(std::size_t node) {
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
  std::optional<array_change> plain;
  if (n.is_array) {
    const array_work& work = work_of(node);
    unit_result all = take_units(results_, node);
    if (!all.skipped.empty() || !work.skipped.empty()) {
      entry.outcome = outcome::skipped;
      entry.reason = worded(work.skipped.empty() ? all.skipped : work.skipped);
      return entry;
    }
    const array_result done = all.arrays.empty() ? array_result() : std::move(all.arrays[0]);
    document = &work.change->document;
    if (!done.assumed.bits_suffice && work.change->packs_if_it_fits) {
      plain = plan_change(*work.array, n.document, n.path, options_, false);
      document = &plain->document;
      entry.reason = "stored as bytes: " + done.unpacked;
    }
    entry.outcome = done.worst;
    entry.chunks = done.counts;
    entry.chunks.lost = done.lost.size();
    entry.source_bytes = work.chunks->source_bytes();
    entry.store_bytes = done.store_bytes;
    entry.lossy = !done.lost.empty();
    for (const auto& lost : done.lost) entry.lost_chunks.push_back(lost.first);
    if (entry.lossy) entry.reason = text::counted(done.lost.size(), "chunk") + " cannot be read: " + worded(done.lost.begin()->second);
  } else {
    entry.outcome = outcome::raw;
  }
  out_->put(zarr::metadata_key(n.path == "/" ? "" : n.path), text::python_json_text(*document, 2) + "\n");
  return entry;
}

convert_result store_job::result_for(const std::string& started) const {
  convert_result result;
  result.source = options_.source;
  result.store = options_.store;
  result.profile = options_.effective_profile();
  result.started = started;
  for (const auto& [node, work] : works_) result.source_bytes += work.chunks ? work.chunks->source_bytes() : 0;
  result.store_objects = out_->objects();
  result.store_bytes = out_->bytes();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return result;
}

convert_result store_job::finished(const std::string& started) {
  std::vector<converted_object> objects(source_.nodes.size());
  for (std::size_t i = source_.nodes.size(); i-- > 0;) objects[i] = write_node(i);  // the root last
  convert_result result = result_for(started);
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    if (objects[i].outcome == outcome::skipped) continue;
    for (const detail::attribute_remark& r : source_.nodes[i].remarks) {
      converted_object& entry = objects.emplace_back();
      entry.path = source_.nodes[i].path;
      entry.kind = object_kind::attribute;
      entry.attribute = text::shown(r.attribute);
      entry.outcome = r.left_out ? outcome::skipped : outcome::mapped;
      entry.reason = r.reason;
    }
  }
  result.objects = std::move(objects);
  if (!io::is_s3(options_.store) || out_->found_unfinished()) {  // also what other processes and earlier runs wrote
    result.store_objects = result.store_bytes = 0;
    out_->each("", [&](std::string_view key, std::uint64_t size) {
      if (zarr::in_unfinished_folder(key)) return;
      ++result.store_objects;
      result.store_bytes += size;
    });
  }
  if (const auto& call = front_end_of(options_).before_done) call(result);
  out_->finish();
  return result;
}

void store_job::require_all_done() {
  conversion::require_all_done(
      units(), [&](const unit_id& id) { return results_.contains(id); }, journal_ ? journal_->shares() : 0, options_.store);
}

convert_plan store_job::plan() {
  convert_plan all;
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    const source_node& n = source_.nodes[i];
    if (!n.selected) continue;
    planned_dataset p;
    p.path = n.path;
    if (!n.unreadable.empty()) {
      p.outcome = outcome::skipped;
      p.how = worded(n.unreadable);
      all.datasets.push_back(std::move(p));
      continue;
    }
    if (!n.is_array) {
      ++all.groups;
      continue;
    }
    const array_work& work = work_of(i);
    if (!work.skipped.empty()) {
      p.outcome = outcome::skipped;
      p.how = worded(work.skipped);
    } else {
      const array_change& c = *work.change;
      p.outcome = c.way == way::copy || c.way == way::regroup ? outcome::raw : outcome::recoded;
      p.how = c.how();
      p.codecs = text::json_text(c.document.at("codecs"));
      p.objects = work.chunks->objects() + 1;
      p.source_bytes = work.chunks->source_bytes();
      p.store_bytes = p.outcome == outcome::raw ? p.source_bytes : work.chunks->plain_bytes();
      for (std::uint64_t k = 0; k < work.units(); ++k) {
        const chunk_range range = work.unit(k);
        p.units.push_back({range.first, range.count, range.bytes});
      }
    }
    all.datasets.push_back(std::move(p));
  }
  return all;
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
  }
}

}  // namespace

void check_store_options(const convert_options& options) {
  const auto refuse = [](bool given, const char* option, const char* why) {
    if (given) throw error(errc::invalid_option, std::string(why) + "; leave out `" + option + "`");
  };
  refuse(options.concat.has_value(), "concat", "only HDF5 files are joined, and the source is a Zarr store");
  refuse(options.references.has_value(), "references",
         "only chunks of HDF5 files are referred to, and the source is a Zarr store");
  refuse(options.convention.has_value(), "convention", "the source is a Zarr store, whose names and attributes stay as they are");
  refuse(options.links.has_value(), "links", "the source is a Zarr store, which has no links");
}

convert_result convert_store(const convert_options& options, const std::string& started) {
  return with_public_errors(options, [&] {
    using mode = store_job::mode;
    store_job all(options, options.share ? mode::join : options.resume ? mode::resume : mode::all);
    if (options.share) {
      all.run(true);
      return all.result_for(started);
    }
    try {
      all.run(false);
      return all.finished(started);
    } catch (const error& e) {
      const std::string kept = fails_again(e) ? "" : all.keep();
      if (kept.empty()) throw;
      throw error(e.kind(), std::string(e.what()) + ". " + kept, e.place());
    } catch (...) {
      all.keep();
      throw;
    }
  });
}

convert_result finalize_store(const convert_options& options, const std::string& started) {
  return with_public_errors(options, [&] {
    store_job all(options, store_job::mode::finish);
    all.require_all_done();
    return all.finished(started);
  });
}

convert_plan plan_store(const convert_options& options) {
  return with_public_errors(options, [&] { return store_job(options, store_job::mode::look).plan(); });
}

}  // namespace zarrbits::conversion
