// SPDX-License-Identifier: BSL-1.0
#include "convert/run/job.hpp"

#include "convert/concat/file_order.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/plan/plan_report.hpp"
#include "convert/run/chunk_maker.hpp"
#include "convert/run/compression_sample.hpp"
#include "convert/run/link_policy.hpp"
#include "convert/run/option_uses.hpp"
#include "hdf5/chunk_grid.hpp"
#include "hdf5/other_files.hpp"
#include "io/remote_name.hpp"
#include "io/s3_access.hpp"
#include "text/memory_need.hpp"
#include "text/node_names.hpp"
#include "text/selection.hpp"
#include "text/shown.hpp"
#include "text/words.hpp"
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
  const std::size_t taken = store.size() + (io::is_s3(store) ? 100 : key_of_a_chunk), all = io::is_s3(store) ? key_in_s3 : path;
  return all > taken ? all - taken : 0;
}

}  // namespace

job::job(const convert_options& given, mode how, std::shared_ptr<const append::grown_store> grown)
    : options_(given), grown_(std::move(grown)) {
  io::prepare_s3(given_sources(options_.source, options_.concat), how == mode::look ? "" : options_.store, options_.remote,
             options_.warning);
  order_sources();
  // the plan says which objects are selected, without which files may not be joined
  if (how == mode::finish) {
    open_store(how);
    take_plan(*out_, options_, false);
  }
  // the source is opened, and its objects are selected, before anything is written or removed
  source_ = read_source(!out_ || out_->tells_case_apart());
  warn_of_source();
  if (how == mode::look) return;
  if (!out_) open_store(how);
  const bool begun = how == mode::all && out_->found_unfinished(), goes_on = begun || joins(how) || how == mode::finish;
  const bool taken = goes_on && take_plan(*out_, options_, begun);
  if (taken || !out_->tells_case_apart()) source_ = read_source(out_->tells_case_apart());
  // readers of Parquet have all metadata in one file anyway, and cannot list nodes without a warning
  const bool consolidated = options_.consolidate.value_or(rules_ && rules_->consolidated && !grown_);
  if (consolidated || (zarr::is_parquet_target(options_.store) && !grown_)) out_ = zarr::consolidating(std::move(out_));
  if (out_->keeps_unfinished()) open_journal(how, goes_on);
}

// Decides how the source is opened or, of several files, in which order; the first one then is the source.
void job::order_sources() {
  // if chunks are cut again, several of them need each chunk of the source: without a cache it would be decoded for each
  how_opened_ = {.chunk_cache = options_.chunk.empty() ? 0 : options_.memory / 4,
                 .remote = options_.remote,
                 .cache = options_.memory / 4,
                 .external = options_.external,
                 .lock = options_.lock};
  if (options_.concat) {
    how_opened_.chunk_cache = options_.memory / 32;  // per open dataset
    sources_ = ordered_sources(options_, how_opened_);
    if (options_.processes == 0) options_.processes = io::usable_processors();
    options_.source = sources_.front();
  }
  name_ = split_source(options_.source);
}

// Opens the (first) source, with the objects that are wanted of it, as the convention arranges them.
std::unique_ptr<hdf5::source_file> job::open_source(bool tells_case_apart) {
  auto file = std::make_unique<hdf5::source_file>(name_.file, how_opened_);
  file->limit_paths(room_for_paths(options_.store));
  file->limit_expansion(options_.allow_expansion ? UINT64_MAX : std::max<std::uint64_t>(options_.memory, 64U << 20));
  file->walk(tells_case_apart, name_.object, [&](const std::string& group) {
    if (options_.progress) options_.progress({group, 0, 0, 0, 0});
  });
  rules_ = conventions::find_convention(*file, options_.convention);
  follow_links(*file, options_, rules_, tells_case_apart);
  conventions::arrange(*file, rules_);
  text::selection wanted(options_.include, options_.exclude);
  file->select(wanted);
  refuse_links(*file, options_);
  return file;
}

// The same, joined with the other files, if there are any.
std::unique_ptr<hdf5::source_file> job::read_source(bool tells_case_apart) {
  auto file = open_source(tells_case_apart);
  if (options_.concat) {
    const auto in_other_process = [&] {  // which must not talk to the caller
      options_.progress = nullptr;
      options_.warning = nullptr;
      return open_source(tells_case_apart);
    };
    joined_ = join_files(*file, in_other_process, sources_, options_, how_opened_, tells_case_apart, grown_.get());
  }
  require_uses(*file, options_);
  return file;
}

void job::warn_of_source() const {
  if (!options_.warning || options_.share) return;
  if (source_->swmr())
    options_.warning("\"" + name_.file +
                     "\" is marked as open for writing (SWMR): what its writer has not brought to the file yet is not converted");
  warn_of_links(*source_, options_);
  const std::string hint = rules_ || options_.convention ? "" : conventions::convention_hint(*source_);
  if (!hint.empty()) options_.warning(hint);
}

// True if the run takes part in what others began. Of a store in one file nothing is left of a run that was cut off: it is
// started over.
bool job::joins(mode how) const { return how == mode::join || (how == mode::resume && !zarr::is_one_file(options_.store)); }

void job::open_store(mode how) {
  using existing = zarr::sink_options::existing;
  zarr::sink_options options = options_of_store();
  options.target = how == mode::finish                                                     ? existing::finish
                   : joins(how)                                                            ? existing::join
                   : grown_                                                                ? existing::grow
                   : options_.overwrite                                                    ? existing::replace
                   : zarr::is_one_file(options_.store) || zarr::is_begun_in_partitions(options_.store) ? existing::refuse
                                                                                           : existing::go_on;
  options.shared = how == mode::join;
  out_ = zarr::make_sink(options_.store, options);
}

zarr::sink_options job::options_of_store() const {
  return {.run = front_end_of(options_).run,
          .source = name_.file,
          .sync = options_.sync,
          .warning = options_.warning,
          .references = options_.references,
          .base = options_.base,
          .formats = {.v2 = options_.format != zarr_format::v3, .v3 = options_.format != zarr_format::v2},
          .memory = options_.memory,
          .remote = options_.remote};
}

void job::units_done() {
  std::vector<zarr::unit_key> units;
  for (const auto& [id, result] : results_) units.emplace_back(id.dataset, id.number);
  out_->units_done(units, options_of_store());
}

// Begins the journal or, if the run goes on with a store, takes over what is in it.
void job::open_journal(mode how, bool goes_on) {
  journal_ = std::make_unique<journal>(*out_, options_, identity_of(*source_, joined_.checksum),
                                       how == mode::finish ? journal::start::finish
                                       : goes_on           ? journal::start::join
                                                           : journal::start::begin);
  if (!goes_on) return;
  results_ = journal_->read(how != mode::finish);
  // a share leaves this to the process that writes the metadata: each share would check all the work of the others
  if (!options_.share) check_journal(how == mode::resume || how == mode::all ? on_mismatch::make_again : on_mismatch::refuse);
  if (options_.note && out_->found_unfinished() && !options_.share && how != mode::finish)
    options_.note("continuing the unfinished store \"" + options_.store + "\": " + text::counted(results_.size(), "unit") + " " +
                  (results_.size() == 1 ? "is" : "are") + " already made");
}

namespace {

std::uint64_t bound_of(const convert_options& options) { return std::max<std::uint64_t>(options.memory, 16U << 20); }

// Upper limit of the memory for a chunk of this dataset, or of the array in a store that it goes on in, in whatever way; 0 if it
// has no chunks.
std::uint64_t largest_need(const hdf5::source_object& o, hid_t dataset) {
  const hdf5::handle properties(H5Dget_create_plist(dataset)), type(H5Dget_type(dataset));
  hsize_t chunk[H5S_MAX_RANK] = {};
  const int rank = H5Pget_layout(properties) == H5D_CHUNKED ? H5Pget_chunk(properties, H5S_MAX_RANK, chunk) : -1;
  std::vector<hsize_t> factors(chunk, chunk + std::max(rank, 0));
  if (o.joined && !o.joined->chunk.empty()) factors = o.joined->chunk;
  if (factors.empty()) return 0;
  factors.insert(factors.end(), {H5Tget_size(type), chunk_maker::most_times});
  return hdf5::product(factors);
}

}  // namespace

void job::prepare_queue() {
  if (queue_) return;
  unsigned threads = options_.threads ? options_.threads : io::usable_processors();
  if (!out_->any_order()) threads = 1;
  // chunks on a server are downloaded while their batches wait; but a log of units has one unit after the other
  const bool waits = out_->any_order() || !out_->keeps_unfinished();
  const std::size_t ahead =
      waits && io::any_remote(given_sources(options_.source, options_.concat)) ? 2 * std::size_t{options_.remote.connections} : 0;
  queue_ = std::make_unique<io::work_queue>(threads, bound_of(options_) / 2, ahead);
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
  const bool measure = options_.progress && front_end_of(options_).measure_first;
  if (!measure && !options_.warning) return;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const hdf5::source_object& o = source_->objects()[i];
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    hdf5::handle d;
    hdf5::reason_to_skip([&] { d = source_->open(o); });  // reported when it is converted
    if (d && measure) bytes_ += o.joined ? o.joined->stored_bytes : H5Dget_storage_size(d);
    // a full plan takes time: only for datasets that may need a warning
    if (d && options_.warning && (!options_.chunk.empty() || largest_need(o, d) > bound_of(options_))) warn_of_chunks(i);
  }
  H5Eclear2(H5E_DEFAULT);
}

void job::warn_of_chunks(std::size_t index) {
  const hdf5::source_object& o = source_->objects()[index];
  std::uint64_t need = 0, chunk = 0;
  hdf5::reason_to_skip([&] {
    const auto dataset = planned(index);
    chunk = hdf5::product(std::vector<hsize_t>{dataset->data.grid.chunk_elements(), dataset->data.element_size});
    for (std::size_t part = 0; part < dataset->parts().size(); ++part) {
      if (dataset->parts()[part].kind == dataset_part::kind_type::array)
        need = std::max(need, chunk_maker(*dataset->array(part)).memory());
    }
  });
  const bool grows = in_store(o);
  if (grows) need = std::max(need, chunk_maker::most_times * chunk);  // its last chunk is decoded and made again
  const std::string what = grows ? "the array of dataset \"" + o.path + "\" in the store"
                                 : "dataset \"" + o.path + "\" of \"" + options_.source + "\"";
  const std::string sentence =
      text::warning_of_chunks({what, chunk, need}, bound_of(options_),
                              grows ? "make the store again with smaller chunks" : "repack the file with smaller chunks");
  if (!sentence.empty()) options_.warning(sentence);
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
  else source_->require_same_on_server();
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
  out_->unit_made({id.dataset, id.number});
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
    const hdf5::source_object& o = source_->objects()[i];
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    at_hand(o.path);
    const auto why = hdf5::reason_to_skip([&] {
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
    if (source_->objects()[i].kind == hdf5::source_object::kind_type::dataset) run_dataset(i, nullptr);
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
  const hdf5::source_object& o = source_->objects()[index];
  at_hand(o.path);
  const auto known = [&](std::uint64_t number) {
    const std::lock_guard held(mutex_);
    return results_.contains({index, number});
  };
  std::shared_ptr<dataset_plan> dataset;
  const auto why = hdf5::reason_to_skip([&] {
    const hdf5::lock one_thread;
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
  return what_is_kept(options_, *journal_);
}

unit_result job::take(std::size_t dataset) { return take_units(results_, dataset); }

namespace {

// Times that the array cannot have, such as hours in whole days, end a run, and so a plan. The values of a dimension are read for
// their order in any case; those of other variables are not read for a plan.
void require_counterparts(const hdf5::chunk_source& data, const convert_options& options) {
  constexpr hsize_t most = 1U << 20;  // at once
  const hdf5::source_object& o = data.object;
  if (!o.joined || !options.concat || data.dims.size() != 1 || text::leaf_of(o.store_path) != options.concat->dimension) return;
  for (const joined_part& part : o.joined->list) {
    for (hsize_t done = 0; part.change && done < part.count; done += most) {
      const hsize_t n = std::min(most, part.count - done);
      compressors::buffer values(static_cast<std::size_t>(n) * data.type.size);
      data.read_block(data.type.memory, data.type.size, {part.first + done}, {n}, {n}, values);
    }
  }
}

}  // namespace

convert_plan job::plan() {
  convert_plan all;
  all.convention = convention();
  all.links = count_links(*source_);
  add_lost_links(*source_, all);
  for (const hdf5::source_object& o : source_->objects()) {
    if (o.kind == hdf5::source_object::kind_type::group) ++all.groups;
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    at_hand(o.path);
    planned_dataset p;
    p.path = o.path;
    const auto why = hdf5::reason_to_skip([&] {
      dataset_plan dataset(*source_, o, options_);
      p.source_bytes = dataset.data.stored_bytes;
      if (const std::string reason = hdf5::unsupported_reason(dataset.data.type); !reason.empty())
        throw hdf5::skip_dataset("its datatype is not supported: " + reason);
      dataset.prepare();
      if (!dataset.data.beside->missing_raw.empty() && hdf5::product(dataset.data.dims) > 0)
        throw hdf5::skip_dataset("its external file \"" + text::shown(dataset.data.beside->missing_raw) + "\" cannot be opened");
      const std::string missing = dataset.data.layout == H5D_CHUNKED ? dataset.data.filters.missing(dataset.data.type) : "";
      if (!missing.empty()) throw hdf5::skip_dataset("it needs HDF5 filter " + missing + ", which is not installed");
      require_counterparts(dataset.data, options_);
      describe(p, dataset, options_);
      p.compressed = sample_compression(dataset, p.store_bytes);
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
