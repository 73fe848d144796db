// SPDX-License-Identifier: BSL-1.0
#include "convert/run/hdf5_conversion.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/file_order.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/plan/plan_report.hpp"
#include "convert/run/chunk_measurement.hpp"
#include "convert/run/chunk_transcoder.hpp"
#include "convert/run/compression_estimate.hpp"
#include "convert/run/final_metadata.hpp"
#include "convert/run/link_policy.hpp"
#include "convert/run/option_checks.hpp"
#include "convert/run/target_options.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"
#include "remote/s3_access.hpp"
#include "text/coordinates.hpp"
#include "text/format.hpp"
#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/selection.hpp"
#include "text/warning.hpp"
#include "zarr/write/consolidate.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/store_writer.hpp"
#include "zarr/write/v2_writer.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <vector>

namespace zarrbits::conversion {

namespace {

// The capacity for paths of objects: the longest name that the store's place allows, without the store's own.
std::size_t path_capacity(const std::string& store) {
  constexpr std::size_t key_of_a_chunk = 500, key_in_s3 = 1024, path = 4095;
  const std::size_t reserved = store.size() + (io::is_object_store(store) ? 100 : key_of_a_chunk),
                    limit = io::is_object_store(store) ? key_in_s3 : path;
  return limit > reserved ? limit - reserved : 0;
}

// The coordinate variables of what `include` selects, and that neither it nor `exclude` has.
std::vector<std::string> find_coordinates(const hdf5::source_file& file, const convert_options& options) {
  if (options.include.empty()) return {};
  text::selection object_filter(options.include, options.exclude);
  std::map<std::string, bool> is_selected;
  std::map<std::string, const hdf5::source_object*> objects;
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != hdf5::source_object::kind_type::dataset || object_filter.excludes(o.path)) continue;
    is_selected[o.path] = object_filter.matches(o.path);
    objects[o.path] = &o;
  }
  return text::unselected_coordinates(is_selected, [&](const std::string& path) {
    std::vector<std::string> references;
    hdf5::skip_reason([&] {  // damaged attributes are reported when they are converted
      const hdf5::handle dataset = file.open(*objects.at(path)), space(H5Dget_space(dataset), "get the dataspace");
      for (const auto& scales : hdf5::dimension_scales(dataset, hdf5::extent(space).size())) {
        for (const hobj_ref_t& scale : scales) references.push_back(file.target_of(dataset, &scale, H5R_OBJECT));
      }
      for (const char* name : text::coordinate_attributes) {
        if (H5Aexists(dataset, name) <= 0) continue;
        for (const std::string& value : hdf5::text_attribute(dataset, name)) {
          for (const std::string& word : text::names_in_attribute(value)) references.push_back(text::escape_name(word));
        }
      }
    });
    H5Eclear2(H5E_DEFAULT);
    return references;
  });
}

}  // namespace

hdf5_conversion::hdf5_conversion(const convert_options& requested, mode run_mode,
                                 std::shared_ptr<const append::append_target> grown)
    : options_(requested), grown_(std::move(grown)) {
  remote::init_s3(given_sources(options_.source, options_.concat), run_mode == mode::dry_run ? "" : options_.store,
                  options_.remote, options_.warning);
  order_sources();
  // the plan says which objects are selected, without which files may not be joined
  if (run_mode == mode::finalize) {
    open_store(run_mode);
    load_plan(*out_, options_, false);
  }
  // the source is opened, and its objects are selected, before anything is written or removed
  source_ = read_source(!out_ || out_->is_case_sensitive());
  warn_of_source();
  if (run_mode == mode::dry_run) return;
  if (!out_) open_store(run_mode);
  const bool begun = run_mode == mode::full && out_->found_unfinished(),
             goes_on = begun || attaches(run_mode) || run_mode == mode::finalize;
  const bool has_plan = goes_on && load_plan(*out_, options_, begun);
  if (has_plan || !out_->is_case_sensitive()) source_ = read_source(out_->is_case_sensitive());
  // readers of Parquet have all metadata in one file anyway, and cannot list nodes without a warning
  const bool consolidated = options_.consolidate.value_or(rules_ && rules_->consolidated && !grown_);
  if (options_.is_v2_copy()) out_ = zarr::make_v2_writer(std::move(out_), consolidated);
  else if (consolidated || (zarr::is_parquet_target(options_.store) && !grown_))
    out_ = zarr::make_consolidating_writer(std::move(out_));
  if (out_->can_resume()) open_journal(run_mode, goes_on);
}

// Decides how the source is opened or, of several files, in which order; the first one then is the source.
void hdf5_conversion::order_sources() {
  // if chunks are cut again, several of them need each chunk of the source: without a cache it would be decoded for each
  source_options_ = {.chunk_cache = options_.sets_chunks() ? options_.memory / 4 : 0,
                     .remote = options_.remote,
                     .cache = options_.memory / 4,
                     .external = options_.external,
                     .lock = options_.lock,
                     .netcdf3 = true};
  if (options_.concat) {
    source_options_.chunk_cache = options_.memory / 32;  // per open dataset
    sources_ = ordered_sources(options_, source_options_);
    if (options_.processes == 0) options_.processes = detail::usable_processors();
    options_.source = sources_.front();
  }
  name_ = split_source(options_.source);
}

// Opens the (first) source, with its requested objects, as the convention arranges them.
std::unique_ptr<hdf5::source_file> hdf5_conversion::open_source(bool tells_case_apart) {
  auto file = std::make_unique<hdf5::source_file>(name_.file, source_options_);
  file->limit_paths(path_capacity(options_.store));
  file->limit_expansion(options_.allow_expansion ? UINT64_MAX : std::max<std::uint64_t>(options_.memory, 64U << 20));
  file->walk(tells_case_apart, name_.object, [&](const std::string& group) {
    if (options_.progress) options_.progress({group, 0, 0, 0, 0});
  });
  rules_ = conventions::find_convention(*file, options_.convention);
  follow_links(*file, options_, rules_, tells_case_apart);
  conventions::override_schema(*file, rules_);
  coordinates_ = find_coordinates(*file, options_);
  text::selection object_filter(text::include_patterns(options_.include, options_.with_coordinates, coordinates_),
                                options_.exclude);
  file->select(object_filter);
  refuse_links(*file, options_);
  return file;
}

// Like open_source(), joined with the other files, if there are any.
std::unique_ptr<hdf5::source_file> hdf5_conversion::read_source(bool tells_case_apart) {
  auto file = open_source(tells_case_apart);
  if (options_.concat) {
    const auto in_other_process = [&] {  // which must not talk to the caller
      options_.progress = nullptr;
      options_.warning = nullptr;
      return open_source(tells_case_apart);
    };
    convert_options for_all = options_;  // the other files are selected like the first one
    for_all.include = text::include_patterns(options_.include, options_.with_coordinates, coordinates_);
    joined_ = join_files(*file, in_other_process, sources_, for_all, source_options_, tells_case_apart, grown_.get());
  }
  require_applicable_options(*file, options_);
  return file;
}

void hdf5_conversion::warn_of_source() const {
  if (options_.share) return;
  text::report_sentence(options_.note, text::coordinates_note(coordinates_, options_.with_coordinates));
  if (!options_.warning) return;
  if (source_->swmr())
    options_.warning("\"" + name_.file +
                     "\" is marked as open for writing (SWMR): what its writer has not brought to the file yet is not converted");
  if (io::is_remote(name_.file) && source_->etag().empty())
    options_.warning(remote::unnoticed_change_warning(name_.file, options_.remote));
  warn_of_links(*source_, options_);
  const std::string hint = rules_ || options_.convention ? "" : conventions::convention_hint(*source_);
  text::report_sentence(options_.warning, hint);
}

// True if the run takes part in what others began. Of a store in one file nothing is left of a run that was cut off: it is
// started over.
bool hdf5_conversion::attaches(mode run_mode) const {
  return run_mode == mode::worker || (run_mode == mode::resume && !zarr::is_one_file(options_.store));
}

void hdf5_conversion::open_store(mode run_mode) {
  using existing = zarr::store_writer_options::if_exists;
  zarr::store_writer_options options = target_options(options_, name_.file);
  options.target = run_mode == mode::finalize                                                  ? existing::finalize
                   : attaches(run_mode)                                                        ? existing::attach
                   : grown_                                                                    ? existing::append
                   : options_.overwrite                                                        ? existing::replace
                   : zarr::is_one_file(options_.store) || zarr::has_partitions(options_.store) ? existing::refuse
                                                                                               : existing::resume;
  options.shared = run_mode == mode::worker;
  out_ = zarr::make_store_writer(options_.store, options);
}

void hdf5_conversion::units_done() {
  std::vector<zarr::unit_key> units;
  for (const auto& [id, result] : results_) units.emplace_back(id.dataset, id.number);
  out_->end_units(units, target_options(options_, name_.file));
}

// Begins the journal or, if the run resumes a store, takes over the work in it.
void hdf5_conversion::open_journal(mode run_mode, bool goes_on) {
  journal_ = std::make_unique<journal>(*out_, options_, identity_of(*source_, joined_.checksum),
                                       run_mode == mode::finalize ? journal::start::finalize
                                       : goes_on                  ? journal::start::attach
                                                                  : journal::start::begin);
  if (!goes_on) return;
  results_ = journal_->read(run_mode != mode::finalize);
  // a share leaves this to the process that writes the metadata: each share would check all the work of the others
  if (!options_.share)
    check_journal(run_mode == mode::resume || run_mode == mode::full ? on_mismatch::reconvert : on_mismatch::refuse);
  if (options_.note && out_->found_unfinished() && !options_.share && run_mode != mode::finalize)
    options_.note("continuing the unfinished store \"" + options_.store + "\": " + text::pluralize(results_.size(), "unit") +
                  " " + (results_.size() == 1 ? "is" : "are") + " already made");
}

namespace {

std::uint64_t memory_limit_of(const convert_options& options) { return std::max<std::uint64_t>(options.memory, 16U << 20); }

// Upper limit of the memory for a chunk of this dataset, or of the array in a store that it goes on in, in whatever way; 0 if it
// has no chunks.
std::uint64_t max_chunk_memory(const hdf5::source_object& o, hid_t dataset) {
  const hdf5::handle properties(H5Dget_create_plist(dataset)), type(H5Dget_type(dataset));
  array::extents factors = H5Pget_layout(properties) == H5D_CHUNKED ? hdf5::chunk_extent(properties) : array::extents();
  if (o.joined && !o.joined->chunk.empty()) factors = o.joined->chunk;
  if (factors.empty()) return 0;
  factors.insert(factors.end(), {H5Tget_size(type), chunk_transcoder::max_memory_factor});
  return array::product(factors);
}

}  // namespace

void hdf5_conversion::prepare_queue() {
  if (queue_) return;
  unsigned threads = options_.threads ? options_.threads : detail::usable_processors();
  if (!out_->is_order_independent()) threads = 1;
  // chunks on a server are downloaded while their batches wait; but a log of units has one unit after the other
  const bool waits = out_->is_order_independent() || !out_->can_resume();
  const std::size_t read_ahead =
      waits && io::any_remote(given_sources(options_.source, options_.concat)) ? 2 * std::size_t{options_.remote.connections} : 0;
  queue_ = std::make_unique<io::thread_pool>(threads, memory_limit_of(options_) / 2, read_ahead);
  runner_ = std::make_unique<work_unit_runner>(
      *out_, options_, *queue_,
      work_unit_runner::callbacks{[this](const work_unit_id& id, work_unit_result&& r) { unit_done(id, std::move(r)); },
                                  [this](std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    bytes_done_ += n;
    report_progress();
                                  }});
  preflight();
}

void hdf5_conversion::preflight() {
  const bool measure = options_.progress && front_end_of(options_).measure_first;
  if (!measure && !options_.warning) return;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const hdf5::source_object& o = source_->objects()[i];
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    hdf5::handle d;
    hdf5::skip_reason([&] { d = source_->open(o); });  // reported when it is converted
    if (d && measure) bytes_ += o.joined ? o.joined->stored_bytes : H5Dget_storage_size(d);
    // a full plan takes time: only for datasets that may need a warning
    if (d && options_.warning && (options_.sets_chunks() || max_chunk_memory(o, d) > memory_limit_of(options_)))
      hdf5::skip_reason([&] { warn_of_chunks(o, *planned(i)); });
  }
  H5Eclear2(H5E_DEFAULT);
}

void hdf5_conversion::warn_of_chunks(const hdf5::source_object& o, const dataset_plan& dataset) const {
  std::uint64_t required = 0;
  const std::uint64_t chunk = array::saturating_mul(dataset.data.grid.chunk_elements(), dataset.data.element_size);
  for (std::size_t part = 0; part < dataset.parts().size(); ++part) {
    if (dataset.parts()[part].kind == dataset_part::kind_type::array)
      required = std::max(required, chunk_transcoder(*dataset.array(part)).memory());
  }
  const bool grows = in_store(o);
  if (grows)
    required = std::max(required, chunk_transcoder::max_memory_factor * chunk);  // its last chunk is decoded and re-encoded
  const std::string subject = grows ? "the array of dataset \"" + o.path + "\" in the store"
                                    : "dataset \"" + o.path + "\" of \"" + options_.source + "\"";
  const std::string sentence =
      text::chunk_memory_warning({subject, chunk, required}, memory_limit_of(options_),
                                 grows ? "make the store again with smaller chunks" : "repack the file with smaller chunks");
  text::report_sentence(options_.warning, sentence);
}

void count_source(const hdf5_conversion& converter, convert_result& result) {
  for (std::size_t i = 0; i < result.sources.size(); ++i) {
    result.sources[i].bytes = converter.files().list().at(i).state.size;
    result.source_bytes += result.sources[i].bytes;
  }
  if (!result.sources.empty()) return;
  hsize_t size = 0;
  if (H5Fget_filesize(converter.source().file(), &size) >= 0) result.source_bytes = size;
}

void hdf5_conversion::require_unchanged() const {
  source_->require_unchanged();
  if (joined_.files) joined_.files->require_unchanged();
  else source_->require_same_on_server();
}

void hdf5_conversion::report_progress() {
  if (options_.progress)
    options_.progress({current_path_, objects_done_, source_->objects().size(), bytes_done_, bytes_, bytes_resumed_});
}

void hdf5_conversion::set_current(const std::string& path) {
  const std::lock_guard lock(mutex_);
  current_path_ = path;
  report_progress();
}

void hdf5_conversion::unit_done(const work_unit_id& id, work_unit_result&& result) {
  source_->require_unchanged();  // from here on the journal is trusted
  const std::lock_guard lock(mutex_);
  out_->end_unit({id.dataset, id.number});
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
}

std::shared_ptr<dataset_plan> hdf5_conversion::opened(std::size_t index) {
  if (const auto entry = open_datasets_.find(index); entry != open_datasets_.end()) return entry->second;
  auto dataset = std::make_shared<dataset_plan>(*source_, source_->objects()[index], options_);
  // an open dataset costs libhdf5's chunk cache of 1 MiB (more if another chunk shape needs it), and the files that it consists
  // of
  const bool keep = !options_.sets_chunks() && dataset->data.layout != H5D_VIRTUAL && !dataset->data.external &&
                    dataset->data.object.place.file == 0;
  if (keep && open_datasets_.size() < (memory_limit_of(options_) / 8) >> 20) open_datasets_.emplace(index, dataset);
  return dataset;
}

std::shared_ptr<dataset_plan> hdf5_conversion::planned(std::size_t index) {
  auto dataset = opened(index);
  try {
    dataset->prepare();
  } catch (...) {
    close(index);
    throw;
  }
  return dataset;
}

std::vector<planned_unit> hdf5_conversion::units() {
  std::vector<planned_unit> result;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const hdf5::source_object& o = source_->objects()[i];
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    set_current(o.path);
    const auto skip_reason = hdf5::skip_reason([&] {
      const auto dataset = planned(i);
      for (std::uint64_t k = 0; k < dataset->units(); ++k) result.push_back({{i, k}, dataset->unit(k)});
    });
    if (skip_reason && (result.empty() || result.back().id.dataset != i)) result.push_back({{i, 0}, {}});
    H5Eclear2(H5E_DEFAULT);
  }
  return result;
}

void hdf5_conversion::run() {
  prepare_queue();
  if (journal_) {
    // of many datasets the number of units is not worth the time that it takes to plan each of them
    constexpr std::size_t max_objects = 256;
    const std::uint64_t unit_count = source_->objects().size() <= max_objects ? units().size() : 0;
    journal_->begin(unit_count, unit_count);
  }
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    if (source_->objects()[i].kind == hdf5::source_object::kind_type::dataset) run_dataset(i, nullptr);
  }
  finish_units();
}

void hdf5_conversion::finish_units() {
  runner_->finish();
  if (bytes_ > 0) {  // the bytes of resumed units, and of a share, are estimates
    const std::lock_guard lock(mutex_);
    bytes_done_ = bytes_;
    report_progress();
  }
  if (journal_) journal_->flush();
}

void hdf5_conversion::run(std::span<const planned_unit> units) {
  prepare_queue();
  for (std::size_t i = 0; i < units.size();) {
    const std::size_t index = units[i].id.dataset;
    std::vector<std::uint64_t> numbers;
    for (; i < units.size() && units[i].id.dataset == index; ++i) numbers.push_back(units[i].id.number);
    run_dataset(index, &numbers);
  }
  finish_units();
}

void hdf5_conversion::run_partition() {
  const std::vector<planned_unit> all_units = units(),
                                  own_units = units_of_partition(all_units, options_.share->index, options_.share->count);
  journal_->begin(all_units.size(), own_units.size());
  prepare_queue();
  if (bytes_ > 0) bytes_ = bytes_of(own_units);
  run(own_units);
  journal_->end();
}

void hdf5_conversion::run_dataset(std::size_t index, const std::vector<std::uint64_t>* numbers) {
  const hdf5::source_object& o = source_->objects()[index];
  set_current(o.path);
  const auto is_known = [&](std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return results_.contains({index, number});
  };
  std::shared_ptr<dataset_plan> dataset;
  const auto skip_reason = hdf5::skip_reason([&] {
    const hdf5::lock one_thread;
    dataset = planned(index);
    H5Eclear2(H5E_DEFAULT);
  });
  if (skip_reason) {
    work_unit_result skipped;
    skipped.skipped = *skip_reason;
    if (!is_known(0)) unit_done({index, 0}, std::move(skipped));
  } else {
    const std::uint64_t n = numbers ? numbers->size() : dataset->units();
    for (std::uint64_t k = 0; k < n; ++k) {
      const work_unit_id id{index, numbers ? (*numbers)[k] : k};
      if (is_known(id.number)) {
        const std::lock_guard lock(mutex_);
        bytes_done_ += dataset->unit(id.number).bytes;
        bytes_resumed_ += dataset->unit(id.number).bytes;
      } else {
        runner_->run(dataset, id);
      }
    }
  }
  const std::lock_guard lock(mutex_);
  ++objects_done_;
}

std::string hdf5_conversion::keep_partial_store() {
  queue_.reset();  // its threads may be about to complete units
  const std::uint64_t units = journal_ ? journal_->kept_units() : 0;
  if (units == 0) return {};
  try {
    require_unchanged();
  } catch (const zarrbits::error&) {
    return {};  // what another file has been made from this one is of no use
  }
  out_->keep_unfinished();
  return kept_work_message(options_, *journal_);
}

work_unit_result hdf5_conversion::take_result(std::size_t dataset) { return take_units(results_, dataset); }

namespace {

// Times that the array cannot have, such as hours in whole days, end a run, and so a plan. The values of a dimension are read for
// their order in any case; those of other variables are not read for a plan.
void require_representable(const hdf5::chunk_source& data, const convert_options& options) {
  constexpr std::uint64_t max_values = 1U << 20;  // at once
  const hdf5::source_object& o = data.object;
  if (!o.joined || !options.concat || data.dims.size() != 1 || text::base_name(o.store_path) != options.concat->dimension) return;
  for (const joined_part& part : o.joined->list) {
    for (std::uint64_t offset = 0; part.change && offset < part.count; offset += max_values) {
      const std::uint64_t n = std::min(max_values, part.count - offset);
      compressors::buffer values(static_cast<std::size_t>(n) * data.type.size);
      data.read_block(data.type.memory, data.type.size, {part.first + offset}, {n}, {n}, values);
    }
  }
}

}  // namespace

// About the bytes of the chunks of a dataset. What is made for it is kept for count_metadata(): it shows the form of an array.
void hdf5_conversion::estimate(std::size_t index, const std::shared_ptr<dataset_plan>& dataset, std::uint64_t sample_bytes,
                               planned_dataset& p) {
  if (auto measured = measure_chunks(dataset)) {
    p.store_bytes = measured->store_bytes;
    p.estimated_bytes = measured->store_bytes;
    results_[{index, 0}] = std::move(measured->result);
    return;
  }
  if (grown_ || options_.references) return;
  if (p.outcome == outcome::raw || dataset->parts().empty()) {
    p.estimated_bytes = p.store_bytes;
    return;
  }
  std::shared_ptr<dataset_plan> sampled = dataset;
  std::uint64_t overhead = 0;
  if (const hdf5::chunk_source& data = dataset->data; data.sharded()) {
    overhead = max_shard_index_bytes(data, data.max_stored_chunks());
    sampled = std::make_shared<dataset_plan>(*source_, source_->objects()[index], options_);
    sampled->prepare();
    sampled->remove_shards();
  }
  auto measured = sample_chunks(sampled, sample_bytes);
  if (!measured) return;
  p.estimated_bytes = std::min(p.store_bytes, measured->store_bytes + (measured->store_bytes > 0 ? overhead : 0));
  results_[{index, 0}] = std::move(measured->result);
}

// The bytes of all metadata, which are written for nobody. Reads all attributes. Empty if they are on a server, or cannot be
// read.
std::optional<std::uint64_t> hdf5_conversion::count_metadata() {
  if (grown_ || options_.references || io::any_remote(given_sources(options_.source, options_.concat))) return {};
  out_ = make_counting_writer();
  const bool consolidated = options_.consolidate.value_or(rules_ && rules_->consolidated);
  if (options_.is_v2_copy()) out_ = zarr::make_v2_writer(std::move(out_), consolidated);
  else if (consolidated) out_ = zarr::make_consolidating_writer(std::move(out_));
  std::optional<std::uint64_t> bytes;
  try {
    write_metadata(*this);
    bytes = out_->bytes();
  } catch (const std::exception&) {  // convert says what cannot be converted
  }
  H5Eclear2(H5E_DEFAULT);
  out_.reset();
  return bytes;
}

// Measures each dataset for its share of a second, by its bytes. A small one counts with the speed of the others.
std::optional<double> hdf5_conversion::estimate_seconds(const convert_plan& plan) {
  constexpr double duration = 1, shortest = 0.01;
  double all_bytes = 0, measured_bytes = 0, seconds = 0;
  for (const planned_dataset& p : plan.datasets) {
    if (p.outcome != outcome::skipped) all_bytes += static_cast<double>(p.source_bytes);
  }
  std::size_t number = 0;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    if (source_->objects()[i].kind != hdf5::source_object::kind_type::dataset) continue;
    const planned_dataset& p = plan.datasets.at(number++);
    const double bytes = static_cast<double>(p.source_bytes), slice = duration * bytes / std::max(1.0, all_bytes);
    if (p.outcome == outcome::skipped || slice < shortest) continue;
    set_current(p.path);
    hdf5::skip_reason([&] {
      const auto dataset = std::make_shared<dataset_plan>(*source_, source_->objects()[i], options_);
      dataset->prepare();
      dataset->remove_shards();
      const auto measured = measure_seconds(dataset, options_.threads ? options_.threads : detail::usable_processors(), slice);
      if (!measured) return;
      seconds += *measured;
      measured_bytes += bytes;
    });
    H5Eclear2(H5E_DEFAULT);
  }
  if (measured_bytes == 0) return {};
  return seconds * all_bytes / measured_bytes;
}

convert_plan hdf5_conversion::plan(const plan_options& further) {
  constexpr std::uint64_t all_samples = 256U << 20, largest_sample = 4U << 20, smallest_sample = 64U << 10;
  const std::uint64_t sample_bytes = std::clamp<std::uint64_t>(all_samples / std::max<std::size_t>(1, source_->objects().size()),
                                                               smallest_sample, largest_sample);
  convert_plan result;
  result.convention = convention();
  result.links = count_links(*source_);
  add_lost_links(*source_, result);
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const hdf5::source_object& o = source_->objects()[i];
    if (o.kind == hdf5::source_object::kind_type::group) ++result.groups;
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    set_current(o.path);
    planned_dataset p;
    p.path = o.path;
    const auto skip_reason = hdf5::skip_reason([&] {
      const auto planned = std::make_shared<dataset_plan>(*source_, o, options_);
      dataset_plan& dataset = *planned;
      p.source_bytes = dataset.data.stored_bytes;
      if (const std::string reason = hdf5::unsupported_reason(dataset.data.type); !reason.empty())
        throw hdf5::unsupported_dataset("its datatype is not supported: " + reason);
      dataset.prepare();
      if (!dataset.data.dependencies->missing_raw.empty() && array::product(dataset.data.dims) > 0)
        throw hdf5::unsupported_dataset("its external file \"" + text::escape_name(dataset.data.dependencies->missing_raw) +
                                        "\" cannot be opened");
      const std::string missing =
          dataset.data.layout == H5D_CHUNKED ? dataset.data.filters.unavailable_filters(dataset.data.type) : "";
      if (!missing.empty()) throw hdf5::unsupported_dataset("it needs HDF5 filter " + missing + ", which is not installed");
      require_representable(dataset.data, options_);
      describe(p, dataset, options_);
      if (options_.warning) warn_of_chunks(o, dataset);
      estimate(i, planned, sample_bytes, p);
      p.compressed = estimate_compression(dataset, p.store_bytes);
    });
    H5Eclear2(H5E_DEFAULT);
    if (skip_reason) {
      p = {.path = o.path,
           .outcome = outcome::skipped,
           .how = worded(*skip_reason),
           .codecs = {},
           .source_bytes = p.source_bytes,
           .units = {}};
    }
    result.datasets.push_back(std::move(p));
  }
  if (further.time) result.seconds = estimate_seconds(result);
  result.estimated_bytes = count_metadata();
  for (const planned_dataset& p : result.datasets) {
    if (p.outcome == outcome::skipped || !result.estimated_bytes) continue;
    if (p.estimated_bytes) *result.estimated_bytes += *p.estimated_bytes;
    else result.estimated_bytes.reset();
  }
  list_other_files(source_->external_files(), result.other_files, result.refused_files);
  result.sources = joined_.sources;
  require_unchanged();
  for (auto& refused : result.refused_files) refused.reason = worded(refused.reason);
  return result;
}

}  // namespace zarrbits::conversion
