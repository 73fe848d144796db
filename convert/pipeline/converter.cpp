// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/converter.hpp"

#include "convert/pipeline/counting_writer.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/pipeline/target_options.hpp"
#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "text/node_names.hpp"
#include "zarr/write/consolidate.hpp"
#include "zarr/write/v2_writer.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

namespace zarrbits::conversion {

converter::converter(const convert_options& requested, mode run_mode, const source_factory& make_source,
                     const start_time& started)
    : options_(requested), mode_(run_mode), started_(started) {
  remote::init_s3(given_sources(options_.source.name, options_.source.concat),
                  run_mode == mode::dry_run ? "" : options_.target.name, options_.remote, options_.execution.warning);
  source_ = make_source(*this, options_);
  // the plan says which objects are selected, without which files may not be joined
  if (run_mode == mode::finalize) {
    open_store();
    load_plan(*out_, options_, false);
  }
  // the source is opened, and its objects are selected, before anything is written or removed
  source_->open(!out_ || out_->is_case_sensitive());
  source_->report_warnings();
  if (run_mode == mode::dry_run) return;
  if (!out_) open_store();
  const bool begun = run_mode == mode::full && out_->found_unfinished(),
             goes_on = begun || attaches() || run_mode == mode::finalize;
  const bool has_plan = goes_on && load_plan(*out_, options_, begun);
  if (has_plan || !out_->is_case_sensitive()) source_->open(out_->is_case_sensitive());
  wrap_writer();
  if (out_->can_resume()) open_journal(goes_on);
}

// True if the run takes part in what others began. Of a store in one file nothing is left of a run that was cut off: it is
// started over.
bool converter::attaches() const {
  return mode_ == mode::worker || (mode_ == mode::resume && !zarr::is_one_file(options_.target.name));
}

void converter::open_store() {
  using existing = zarr::store_writer_options::if_exists;
  zarr::store_writer_options target = target_options(options_);
  target.target = mode_ == mode::finalize                                                                 ? existing::finalize
                  : attaches()                                                                            ? existing::attach
                  : grows()                                                                               ? existing::append
                  : options_.target.existing == existing_store::overwrite                                 ? existing::replace
                  : zarr::is_one_file(options_.target.name) || zarr::has_partitions(options_.target.name) ? existing::refuse
                                                                                                          : existing::resume;
  target.shared = mode_ == mode::worker;
  out_ = zarr::make_store_writer(options_.target.name, target);
}

void converter::wrap_writer() {
  // readers of Parquet have all metadata in one file anyway, and cannot list nodes without a warning
  const bool consolidated = options_.target.consolidate.value_or(!grows() && source_->is_consolidated());
  if (options_.target.is_v2_copy()) out_ = zarr::make_v2_writer(std::move(out_), consolidated);
  else if (consolidated || (io::kind_of_target(options_.target.name) == io::store_kind::parquet && !grows()))
    out_ = zarr::make_consolidating_writer(std::move(out_));
}

// Begins the journal or, if the run resumes a store, takes over the work in it.
void converter::open_journal(bool goes_on) {
  if (goes_on) options_.execution.memory = region_memory_of(*out_, options_.execution.memory);
  journal_ = std::make_unique<journal>(*out_, options_, source_->identity(),
                                       mode_ == mode::finalize ? journal::start::finalize
                                       : goes_on               ? journal::start::attach
                                                               : journal::start::begin);
  if (!goes_on) return;
  results_ = journal_->read(mode_ != mode::finalize);
  std::erase_if(results_, [&](const auto& entry) {
    return entry.first.dataset >= source_->size() || !source_->has_chunks(entry.first.dataset);
  });
  // a share leaves this to the process that writes the metadata: each share would check all the work of the others
  if (!options_.execution.partition)
    check_journal(mode_ == mode::resume || mode_ == mode::full ? on_mismatch::reconvert : on_mismatch::refuse);
  if (options_.execution.note && out_->found_unfinished() && !options_.execution.partition && mode_ != mode::finalize)
    options_.execution.note("continuing the unfinished store \"" + options_.target.name +
                            "\": " + text::pluralize(results_.size(), "unit") + " " + (results_.size() == 1 ? "is" : "are") +
                            " already made");
}

// The journal may claim more than the store has: after a crash of the machine, or if the store was changed.
void converter::check_journal(on_mismatch action) {
  std::vector<std::size_t> wrong;
  for (auto entry = results_.begin(); entry != results_.end();) {
    const std::size_t object = entry->first.dataset;
    std::map<std::uint64_t, std::uint64_t> bytes;  // bytes of each unit's chunks
    bool skipped = false;
    for (; entry != results_.end() && entry->first.dataset == object; ++entry) {
      skipped = skipped || !entry->second.skipped.empty();
      std::uint64_t& sum = bytes[entry->first.number];
      for (const array_result& a : entry->second.arrays) sum += a.store_bytes;
    }
    if (!skipped && !matches_journal(object, bytes)) wrong.push_back(object);
  }
  for (const std::size_t object : wrong) {
    const std::string &path = source_->path(object), &store_path = source_->store_path(object);
    const std::string problem = "chunks of \"" + path + "\" are missing in \"" + options_.target.name +
                                "\", or do not have the size that its journal says";
    if (action == on_mismatch::refuse)
      throw zarrbits::error(errc::incomplete, problem + "; convert again with `resume`, which writes them again",
                            {options_.target.name, path});
    if (options_.execution.warning) options_.execution.warning(problem + "; all of it is converted again");
    if (store_path != "/") out_->remove(std::string_view(store_path).substr(1));
    results_.erase(results_.lower_bound({object, 0}), results_.lower_bound({object + 1, 0}));
  }
}

// Chunks of units that the journal does not have may be there, and are made again. Of an object with one unit, or one that cannot
// be planned here, all chunks count, of one array or of several.
bool converter::matches_journal(std::size_t object, const std::map<std::uint64_t, std::uint64_t>& bytes) {
  const std::shared_ptr<object_work> work = source_->work(object);
  const std::string node = source_->store_path(object).substr(1);
  const std::string chunks = metadata::chunk_key(node.empty() ? "" : "/" + node, {}) + "/";
  std::uint64_t journalled = 0, total = 0;
  for (const auto& unit : bytes) journalled += unit.second;
  std::map<std::uint64_t, std::uint64_t> stored;
  out_->for_each(node, [&](std::string_view key, std::uint64_t size) {
    if (work->units() == 1) {
      if (!text::is_node_key(key) && !zarr::in_unfinished_folder(key)) total += size;
    } else if (key.starts_with(chunks)) {
      if (const auto unit = work->unit_of(key.substr(chunks.size()))) stored[*unit] += size;
    }
  });
  if (work->units() == 1) return total == journalled;
  return std::all_of(bytes.begin(), bytes.end(), [&](const auto& unit) { return stored[unit.first] == unit.second; });
}

void converter::report_progress() {
  if (options_.execution.progress)
    options_.execution.progress({current_path_, objects_done_, source_->size(), bytes_done_, bytes_, bytes_resumed_});
}

void converter::set_current(const std::string& path) {
  const std::lock_guard lock(mutex_);
  current_path_ = path;
  report_progress();
}

void converter::advance(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_done_ += bytes;
  report_progress();
}

void converter::unit_done(const work_unit_id& id, work_unit_result&& result) {
  source_->require_unchanged(conversion_source::change_check::unit_done);  // from here on the journal is trusted
  const std::lock_guard lock(mutex_);
  out_->end_unit({id.dataset, id.number});
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
}

bool converter::has_result(const work_unit_id& id) {
  const std::lock_guard lock(mutex_);
  return results_.contains(id);
}

std::vector<planned_unit> converter::units() {
  std::vector<planned_unit> result;
  for (std::size_t i = 0; i < source_->size(); ++i) {
    if (!source_->has_chunks(i)) continue;
    set_current(source_->path(i));
    const std::shared_ptr<object_work> work = source_->work(i);
    for (std::uint64_t k = 0; k < work->units(); ++k) result.push_back({{i, k}, work->unit(k)});
  }
  return result;
}

std::vector<convert_worker::unit> converter::missing_units() {
  std::vector<convert_worker::unit> result;
  for (const planned_unit& u : units()) {
    if (!has_result(u.id)) result.push_back({u.id.dataset, u.id.number, source_->path(u.id.dataset)});
  }
  return result;
}

void converter::begin_units() {
  if (queue_) return;
  unsigned threads = options_.execution.threads ? options_.execution.threads : detail::usable_processors();
  if (!out_->is_order_independent()) threads = 1;
  // chunks on a server are downloaded while their batches wait; but a log of units has one unit after the other
  const bool waits = out_->is_order_independent() || !out_->can_resume();
  const std::size_t read_ahead = waits && source_->downloads_ahead() ? 2 * std::size_t{options_.remote.connections} : 0;
  queue_ = std::make_unique<io::thread_pool>(threads, std::max(options_.execution.memory, min_memory) / 2, read_ahead);
  bytes_ = source_->begin_units(options_.execution.progress && options_.execution.measure_first);
}

void converter::run() {
  begin_units();
  if (journal_) {
    const std::uint64_t unit_count = source_->counts_units_quickly() ? units().size() : 0;
    journal_->begin(unit_count, unit_count);
  }
  for (std::size_t i = 0; i < source_->size(); ++i) {
    if (source_->has_chunks(i)) run_object(i, nullptr);
  }
  finish_units();
}

void converter::run(std::span<const work_unit_id> units) {
  begin_units();
  for (std::size_t i = 0; i < units.size();) {
    const std::size_t object = units[i].dataset;
    if (object >= source_->size() || !source_->has_chunks(object))
      throw error(errc::invalid_option, "there is no object " + std::to_string(object) + " with units");
    std::vector<std::uint64_t> numbers;
    for (; i < units.size() && units[i].dataset == object; ++i) numbers.push_back(units[i].number);
    run_object(object, &numbers);
  }
  finish_units();
}

void converter::run_partition() {
  const std::vector<planned_unit> all_units = units(),
                                  own_units = units_of_partition(all_units, options_.execution.partition->index,
                                                                 options_.execution.partition->count);
  journal_->begin(all_units.size(), own_units.size());
  begin_units();
  if (bytes_ > 0) bytes_ = bytes_of(own_units);
  std::vector<work_unit_id> ids;
  for (const planned_unit& u : own_units) ids.push_back(u.id);
  run(ids);
  journal_->end();
}

void converter::run_object(std::size_t object, const std::vector<std::uint64_t>* numbers) {
  set_current(source_->path(object));
  const std::shared_ptr<object_work> work = source_->work(object);
  std::vector<std::uint64_t> missing;
  const std::uint64_t count = numbers ? numbers->size() : work->units();
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t number = numbers ? (*numbers)[k] : k;
    if (number >= work->units())
      throw error(errc::invalid_option, "there is no unit " + std::to_string(number) + " of \"" + source_->path(object) + "\"");
    if (!has_result({object, number})) {
      missing.push_back(number);
      continue;
    }
    const std::lock_guard lock(mutex_);
    bytes_done_ += work->unit(number).bytes;
    bytes_resumed_ += work->unit(number).bytes;
  }
  if (work->skip_reason().empty()) {
    work->make(missing);
  } else if (!missing.empty()) {
    work_unit_result skipped;
    skipped.skipped = work->skip_reason();
    unit_done({object, 0}, std::move(skipped));
  }
  const std::lock_guard lock(mutex_);
  ++objects_done_;
}

void converter::finish_units() {
  source_->finish_units();
  if (bytes_ > 0) {  // the bytes of resumed units, and of a share, are estimates
    const std::lock_guard lock(mutex_);
    bytes_done_ = bytes_;
    report_progress();
  }
  if (journal_) journal_->flush();
}

void converter::require_all_done() {
  conversion::require_all_done(
      units(), [&](const work_unit_id& id) { return has_result(id); }, journal_ ? journal_->partition_count() : 0,
      options_.target.name);
}

convert_result converter::result(bool is_complete) {
  convert_result result;
  result.source = options_.source.name;
  result.store = options_.target.name;
  result.profile = options_.effective_profile();
  result.started = started_.text();
  if (is_complete) result.sources = source_->joined_sources();
  source_->describe(result, is_complete);
  result.store_objects = out_->objects();
  result.store_bytes = out_->bytes();
  result.referenced_objects = out_->referenced_objects();
  result.referenced_bytes = out_->referenced_bytes();
  // also what other processes and earlier runs wrote; a rewritten object counts once
  const io::store_kind kind = io::kind_of_target(options_.target.name);
  if (is_complete && !grows() && !io::is_references(kind) && (kind != io::store_kind::object_store || out_->found_unfinished())) {
    result.store_objects = result.store_bytes = 0;
    out_->for_each("", [&](std::string_view key, std::uint64_t size) {
      if (zarr::in_unfinished_folder(key)) return;
      ++result.store_objects;
      result.store_bytes += size;
    });
  }
  result.seconds = started_.seconds();
  return result;
}

convert_result converter::finish() {
  std::vector<zarr::unit_key> units;
  for (const auto& [id, unit] : results_) units.emplace_back(id.dataset, id.number);
  out_->end_units(units, target_options(options_));
  std::vector<converted_object> objects = source_->write_metadata();
  convert_result complete = result(true);
  complete.objects = std::move(objects);
  if (const auto& call = options_.execution.before_done) call(complete);
  source_->require_unchanged(conversion_source::change_check::complete);
  out_->finish();
  if (io::is_references(io::kind_of_target(options_.target.name)))  // which are written at the very end
    std::tie(complete.store_objects, complete.store_bytes) = zarr::count_reference_files(options_.target.name);
  return complete;
}

std::string converter::keep_partial_store() {
  queue_.reset();  // its threads may be about to complete units
  const std::uint64_t units = journal_ ? journal_->kept_units() : 0;
  if (units == 0) return {};
  try {
    source_->require_unchanged(conversion_source::change_check::complete);
  } catch (const std::exception&) {
    return {};  // what another file has been made from this one is of no use
  }
  out_->keep_unfinished();
  return kept_work_message(options_, *journal_);
}

// The bytes of all metadata, which are written for nobody. Reads all attributes. Empty if they are on a server, or cannot be
// read.
std::optional<std::uint64_t> converter::count_metadata() {
  if (grows() || options_.target.references || !source_->has_local_metadata()) return {};
  const std::uint64_t chunk_bytes = out_->bytes();  // of samples
  try {
    (void)source_->write_metadata();
  } catch (const std::exception&) {  // convert says what cannot be converted
    return {};
  }
  return out_->bytes() - chunk_bytes;
}

convert_plan converter::plan(const plan_options& further) {
  convert_plan result;
  out_ = make_counting_writer();
  wrap_writer();
  source_->plan(result, further);
  result.estimated_bytes = count_metadata();
  for (const planned_dataset& p : result.datasets) {
    if (p.outcome == outcome::skipped || !result.estimated_bytes) continue;
    if (p.estimated_bytes) *result.estimated_bytes += *p.estimated_bytes;
    else result.estimated_bytes.reset();
  }
  result.sources = source_->joined_sources();
  return result;
}

}  // namespace zarrbits::conversion
