// SPDX-License-Identifier: BSL-1.0
#include "convert/run/job.hpp"

#include "convert/concat/file_order.hpp"
#include "convert/plan/plan_report.hpp"
#include "convert/run/chunk_maker.hpp"
#include "convert/run/link_policy.hpp"
#include "convert/run/option_uses.hpp"
#include "hdf5/chunk_grid.hpp"
#include "hdf5/other_files.hpp"
#include "io/s3_access.hpp"
#include "text/names.hpp"
#include "text/selection.hpp"
#include "zarr/write/consolidate.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/sink.hpp"

#include <algorithm>
#include <vector>

namespace zarrbits::conversion {

namespace {

// The room for paths of objects: the longest name that the store's place allows, without the store's own.
std::size_t room_for_paths(const std::string& store) {
  constexpr std::size_t key_of_a_chunk = 500, key_in_s3 = 1024, path = 4095;
  const std::size_t taken = store.size() + (is_s3(store) ? 100 : key_of_a_chunk), all = is_s3(store) ? key_in_s3 : path;
  return all > taken ? all - taken : 0;
}

}  // namespace

job::job(const convert_options& given, mode how, std::shared_ptr<const grown_store> grown)
    : options_(given), grown_(std::move(grown)) {
  convert_options& options = options_;
  prepare_s3(given_sources(options.source, options.concat), how == mode::look ? "" : options.store, options.endpoint,
             options.warning);
  // the source is opened, and its objects are selected, before anything is written or removed
  // if chunks are cut again, several of them need each chunk of the source: without a cache it would be decoded for each
  source_options how_opened{.chunk_cache = options.chunk.empty() ? 0 : options.memory / 4,
                            .endpoint = options.endpoint,
                            .external = options.external,
                            .lock = options.lock};
  std::vector<std::string> sources;
  if (options.concat) {
    how_opened.chunk_cache = options.memory / 32;  // per open dataset
    sources = ordered_sources(options, how_opened);
    if (options.processes == 0) options.processes = usable_processors();
    options.source = sources.front();
  }
  const source_name name = split_source(options.source);
  const auto opened = [&](bool tells_case_apart) {
    auto file = std::make_unique<source_file>(name.file, how_opened);
    file->limit_paths(room_for_paths(options.store));
    file->limit_expansion(options.allow_expansion ? UINT64_MAX : std::max<std::uint64_t>(options.memory, 64U << 20));
    file->walk(tells_case_apart, name.object, [&](const std::string& group) {
      if (options.progress) options.progress({group, 0, 0, 0, 0});
    });
    rules_ = find_convention(*file, options.convention);
    follow_links(*file, options, rules_, tells_case_apart);
    arrange(*file, rules_);
    selection wanted(options.include, options.exclude);
    file->select(wanted);
    refuse_links(*file, options);
    return file;
  };
  const auto listed = [&](bool tells_case_apart) {
    auto file = opened(tells_case_apart);
    if (options.concat) {
      const auto in_other_process = [&] {
        options.progress = nullptr;
        options.warning = nullptr;
        return opened(tells_case_apart);
      };
      joined_ = join_files(*file, in_other_process, sources, options, how_opened, tells_case_apart, grown_.get());
    }
    require_uses(*file, options);
    return file;
  };
  source_ = listed(true);
  if (source_->swmr() && options.warning && !options.share) {
    options.warning("\"" + name.file +
                    "\" is marked as open for writing (SWMR): what its writer has not flushed to the file yet is not converted");
  }
  if (options.warning && !options.share) {
    warn_of_links(*source_, options);
    const std::string hint = rules_ || options.convention ? "" : convention_hint(*source_);
    if (!hint.empty()) options.warning(hint);
  }
  if (how == mode::look) return;
  using existing = sink_options::existing;
  // of a store in one file nothing is left of a run that was cut off: it is started over
  const bool one_file = is_one_file(options.store), asked_to_join = how == mode::join || (how == mode::resume && !one_file);
  out_ = make_sink(options.store, {.target = how == mode::finish ? existing::finish
                                             : asked_to_join     ? existing::join
                                             : grown_            ? existing::grow
                                             : options.overwrite ? existing::replace
                                             : one_file          ? existing::refuse
                                                                 : existing::go_on,
                                   .shared = how == mode::join || how == mode::finish,
                                   .run = options.run,
                                   .source = name.file,
                                   .sync = options.sync,
                                   .warning = options.warning,
                                   .references = options.references,
                                   .memory = options.memory,
                                   .endpoint = is_s3(options.store) ? options.endpoint : ""});
  const bool goes_on = how == mode::all && out_->found_unfinished(), join = goes_on || asked_to_join || how == mode::finish;
  const bool taken = join && take_plan(*out_, options, goes_on);
  if (taken || !out_->tells_case_apart()) source_ = listed(out_->tells_case_apart());
  // readers of Parquet have all metadata in one file anyway, and cannot list nodes without a warning
  const bool consolidated = options.consolidate.value_or(rules_ && rules_->consolidated && !grown_);
  if (consolidated || (is_parquet_target(options.store) && !grown_)) out_ = consolidating(std::move(out_));
  if (!out_->keeps_unfinished()) return;
  journal_ = std::make_unique<journal>(*out_, options, *source_, joined_.checksum, join);
  if (!join) return;
  results_ = journal_->read();
  // a share leaves this to the process that writes the metadata: each share would check all the work of the others
  if (!options.share) check_journal(how == mode::resume || how == mode::all ? on_mismatch::make_again : on_mismatch::refuse);
  if (options.note && out_->found_unfinished() && !options.share && how != mode::finish)
    options.note("continuing the unfinished store \"" + options.store + "\": " + counted(results_.size(), "unit") + " " +
                 (results_.size() == 1 ? "is" : "are") + " already made");
}

namespace {

std::uint64_t bound_of(const convert_options& options) { return std::max<std::uint64_t>(options.memory, 16U << 20); }

// Upper limit of the memory for a chunk of this dataset, or of the array in a store that it goes on in, in whatever way; 0 if it
// has no chunks.
std::uint64_t largest_need(const source_object& o, hid_t dataset) {
  const h5::handle properties(H5Dget_create_plist(dataset)), type(H5Dget_type(dataset));
  hsize_t chunk[H5S_MAX_RANK] = {};
  const int rank = H5Pget_layout(properties) == H5D_CHUNKED ? H5Pget_chunk(properties, H5S_MAX_RANK, chunk) : -1;
  std::vector<hsize_t> factors(chunk, chunk + std::max(rank, 0));
  if (o.joined && !o.joined->chunk.empty()) factors = o.joined->chunk;
  if (factors.empty()) return 0;
  factors.insert(factors.end(), {H5Tget_size(type), chunk_maker::most_times});
  return product(factors);
}

}  // namespace

void job::prepare_queue() {
  if (queue_) return;
  unsigned threads = options_.threads ? options_.threads : usable_processors();
  if (!out_->any_order()) threads = 1;
  queue_ = std::make_unique<work_queue>(threads, bound_of(options_) / 2);
  runner_ = std::make_unique<unit_runner>(
      *out_, options_, *queue_,
      unit_runner::calls{[this](const unit_id& id, unit_result&& r) { unit_done(id, std::move(r)); },
                         [this](std::uint64_t n) {
    const std::lock_guard held(mutex_);
    bytes_done_ += n;
    tell();
                         }});
  look_ahead();
}

void job::look_ahead() {
  const bool measure = options_.progress && options_.measure_first;
  if (!measure && !options_.warning) return;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const source_object& o = source_->objects()[i];
    if (o.kind != source_object::kind_type::dataset) continue;
    h5::handle d;
    reason_to_skip([&] { d = source_->open(o); });  // reported when it is converted
    if (d && measure) bytes_ += o.joined ? o.joined->stored_bytes : H5Dget_storage_size(d);
    // a full plan takes time: only for datasets that may need a warning
    if (d && options_.warning && (!options_.chunk.empty() || largest_need(o, d) > bound_of(options_))) warn_of_chunks(i);
  }
  H5Eclear2(H5E_DEFAULT);
}

void job::warn_of_chunks(std::size_t index) {
  const source_object& o = source_->objects()[index];
  std::uint64_t need = 0, chunk = 0;
  reason_to_skip([&] {
    const auto dataset = planned(index);
    chunk = product(std::vector<hsize_t>{dataset->data.grid.chunk_elements(), dataset->data.element_size});
    for (const dataset_part& part : dataset->parts()) {
      if (part.kind != dataset_part::kind_type::array) continue;
      const array_plan plan(dataset->data, part.view, options_, {});
      need = std::max(need, chunk_maker(plan).memory());
    }
  });
  const bool grows = o.joined && o.joined->before;
  if (grows) need = std::max(need, chunk_maker::most_times * chunk);  // its last chunk is decoded and made again
  if (need <= bound_of(options_)) return;
  options_.warning((grows ? "the array of dataset \"" + o.path + "\" in the store"
                          : "dataset \"" + o.path + "\" of \"" + options_.source + "\"") +
                   " has chunks of " + human_bytes(chunk) + ", each of which may take " + human_bytes(need) +
                   " of memory, more than the " + human_bytes(bound_of(options_)) +
                   " that are allowed; they are made one at a time: make sure that there is enough, or " +
                   (grows ? "make the store again with smaller chunks" : "repack the file with smaller chunks"));
}

void count_source(const job& all, convert_result& result) {
  for (std::size_t i = 0; i < result.sources.size(); ++i) {
    result.sources[i].bytes = all.files().list().at(i).state.size;
    result.source_bytes += result.sources[i].bytes;
  }
  if (!result.sources.empty()) return;
  hsize_t size = 0;
  if (H5Fget_filesize(all.source().file(), &size) >= 0) result.source_bytes = size;
}

void job::require_unchanged() const {
  source_->require_unchanged();
  if (joined_.files) joined_.files->require_unchanged();
  else source_->require_same_in_s3();
}

void job::tell() {
  if (options_.progress) options_.progress({at_hand_, objects_done_, source_->objects().size(), bytes_done_, bytes_});
}

void job::at_hand(const std::string& path) {
  const std::lock_guard held(mutex_);
  at_hand_ = path;
  tell();
}

void job::unit_done(const unit_id& id, unit_result&& result) {
  source_->require_unchanged();  // from here on the journal is trusted
  const std::lock_guard held(mutex_);
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
}

std::shared_ptr<dataset_plan> job::opened(std::size_t index) {
  if (const auto found = kept_.find(index); found != kept_.end()) return found->second;
  auto dataset = std::make_shared<dataset_plan>(*source_, source_->objects()[index], options_);
  // an open dataset costs libhdf5's chunk cache of 1 MiB (more if another chunk shape needs it), and the files that it consists
  // of
  const bool keep = options_.chunk.empty() && dataset->data.layout != H5D_VIRTUAL && !dataset->data.external &&
                    dataset->data.object.place.file == 0;
  if (keep && kept_.size() < (bound_of(options_) / 8) >> 20) kept_.emplace(index, dataset);
  return dataset;
}

std::shared_ptr<dataset_plan> job::planned(std::size_t index) {
  auto dataset = opened(index);
  try {
    dataset->prepare();
  } catch (...) {
    close(index);
    throw;
  }
  return dataset;
}

std::vector<planned_unit> job::units() {
  std::vector<planned_unit> all;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const source_object& o = source_->objects()[i];
    if (o.kind != source_object::kind_type::dataset) continue;
    at_hand(o.path);
    const auto why = reason_to_skip([&] {
      const auto dataset = planned(i);
      for (std::uint64_t k = 0; k < dataset->units(); ++k) all.push_back({{i, k}, dataset->unit(k)});
    });
    if (why && (all.empty() || all.back().id.dataset != i)) all.push_back({{i, 0}, {}});
    H5Eclear2(H5E_DEFAULT);
  }
  return all;
}

void job::run() {
  prepare_queue();
  if (journal_) {
    // of many datasets the number of units is not worth the time that it takes to plan each of them
    constexpr std::size_t few = 256;
    const std::uint64_t all = source_->objects().size() <= few ? units().size() : 0;
    journal_->begin(all, all);
  }
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    if (source_->objects()[i].kind == source_object::kind_type::dataset) run_dataset(i, nullptr);
  }
  runner_->finish();
  if (journal_) journal_->flush();
}

void job::run(std::span<const planned_unit> units) {
  prepare_queue();
  for (std::size_t i = 0; i < units.size();) {
    const std::size_t index = units[i].id.dataset;
    std::vector<std::uint64_t> numbers;
    for (; i < units.size() && units[i].id.dataset == index; ++i) numbers.push_back(units[i].id.number);
    run_dataset(index, &numbers);
  }
  runner_->finish();
  if (journal_) journal_->flush();
}

void job::run_share() {
  const std::vector<planned_unit> all = units(), own = share_of(all, options_.share->index, options_.share->count);
  journal_->begin(all.size(), own.size());
  run(own);
  journal_->end();
}

void job::run_dataset(std::size_t index, const std::vector<std::uint64_t>* numbers) {
  const source_object& o = source_->objects()[index];
  at_hand(o.path);
  const auto known = [&](std::uint64_t number) {
    const std::lock_guard held(mutex_);
    return results_.contains({index, number});
  };
  std::shared_ptr<dataset_plan> dataset;
  const auto why = reason_to_skip([&] {
    const h5::lock one_thread;
    dataset = planned(index);
    H5Eclear2(H5E_DEFAULT);
  });
  if (why) {
    unit_result skipped;
    skipped.skipped = *why;
    if (!known(0)) unit_done({index, 0}, std::move(skipped));
  } else {
    const std::uint64_t n = numbers ? numbers->size() : dataset->units();
    for (std::uint64_t k = 0; k < n; ++k) {
      const unit_id id{index, numbers ? (*numbers)[k] : k};
      if (!known(id.number)) runner_->run(dataset, id);
    }
  }
  const std::lock_guard held(mutex_);
  ++objects_done_;
}

std::string job::keep() {
  queue_.reset();  // its threads may be about to complete units
  const std::uint64_t units = journal_ ? journal_->kept() : 0;
  if (units == 0) return {};
  try {
    require_unchanged();
  } catch (const zarrbits::error&) {
    return {};  // what another file has been made from this one is of no use
  }
  out_->keep();
  return "What is done is kept in \"" + options_.store + "\" (" +
         (journal_->all() > 0 ? std::to_string(units) + " of " + counted(journal_->all(), "unit") : counted(units, "unit")) +
         "); run the same command " + (options_.overwrite ? "without `overwrite` " : "again ") + "to continue";
}

unit_result job::take(std::size_t dataset) {
  unit_result all;
  const auto first = results_.lower_bound({dataset, 0}), last = results_.lower_bound({dataset + 1, 0});
  for (auto at = first; at != last; ++at) all.add(std::move(at->second));
  results_.erase(first, last);
  return all;
}

convert_plan job::plan() {
  convert_plan all;
  all.convention = convention();
  all.links = count_links(*source_);
  add_lost_links(*source_, all);
  for (const source_object& o : source_->objects()) {
    if (o.kind == source_object::kind_type::group) ++all.groups;
    if (o.kind != source_object::kind_type::dataset) continue;
    at_hand(o.path);
    planned_dataset p;
    p.path = o.path;
    const auto why = reason_to_skip([&] {
      dataset_plan dataset(*source_, o, options_);
      p.source_bytes = dataset.data.stored_bytes;
      if (const std::string reason = unsupported_reason(dataset.data.type); !reason.empty())
        throw skip_dataset("its datatype is not supported: " + reason);
      dataset.prepare();
      const std::string missing = dataset.data.layout == H5D_CHUNKED ? dataset.data.filters.missing(dataset.data.type) : "";
      if (!missing.empty()) throw skip_dataset("it needs HDF5 filter " + missing + ", which is not installed");
      describe(p, dataset, options_);
    });
    H5Eclear2(H5E_DEFAULT);
    if (why) {
      p = {.path = o.path,
           .outcome = outcome::skipped,
           .how = worded(*why),
           .codecs = {},
           .source_bytes = p.source_bytes,
           .units = {}};
    }
    all.datasets.push_back(std::move(p));
  }
  list_other_files(source_->others(), all.other_files, all.refused_files);
  all.sources = joined_.sources;
  require_unchanged();
  for (auto& refused : all.refused_files) refused.reason = worded(refused.reason);
  return all;
}

}  // namespace zarrbits::conversion
