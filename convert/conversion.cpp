// SPDX-License-Identifier: BSL-1.0
#include "convert/conversion.hpp"

#include "convert/chunk_maker.hpp"
#include "convert/names.hpp"
#include "convert/selection.hpp"
#include "convert/store/consolidate.hpp"

#include <algorithm>
#include <vector>

namespace zarrbits::conversion {

conversion_run::conversion_run(const convert_options& options, mode how) : options_(options) {
  // the source is opened, and what is wanted of it found, before anything is written or removed
  const source_name name = split_source(options.source);
  selection wanted(options.include, options.exclude);
  const auto listed = [&](bool tells_case_apart) {
    // where chunks are cut anew, each of the source's is wanted by several: without a cache it would be decoded for each
    auto file = std::make_unique<source_file>(name.file, options.chunk.empty() ? 0 : options.memory / 4, options.endpoint);
    file->walk(tells_case_apart, name.object, [&](const std::string& group) {
      if (options.progress) options.progress({group, 0, 0, 0, 0});
    });
    file->select(wanted);
    return file;
  };
  source_ = listed(true);
  if (how == mode::look) return;
  using existing = sink_options::existing;
  const bool join = how == mode::join;
  out_ = make_sink(options.store, {.target = join ? existing::join : options.overwrite ? existing::replace : existing::refuse,
                                   .source = name.file, .sync = options.sync, .endpoint = is_s3(options.store) ? options.endpoint : ""});
  if (options.consolidate) out_ = consolidating(std::move(out_));
  if (!out_->tells_case_apart()) source_ = listed(false);
  if (!out_->keeps_unfinished()) {
    if (join) throw convert_error("nothing is left in \"" + options.store + "\" of a run that was cut off; convert it in one run");
    return;
  }
  journal_ = std::make_unique<journal>(*out_, options, *source_, join);
  if (join) results_ = journal_->read();
}

namespace {

std::uint64_t bound_of(const convert_options& options) { return std::max<std::uint64_t>(options.memory, 16U << 20); }

// More than any way needs to make a chunk of this dataset; 0 where it has none.
std::uint64_t largest_need(hid_t dataset) {
  const h5::handle properties(H5Dget_create_plist(dataset)), type(H5Dget_type(dataset));
  hsize_t chunk[H5S_MAX_RANK] = {};
  const int rank = H5Pget_layout(properties) == H5D_CHUNKED ? H5Pget_chunk(properties, H5S_MAX_RANK, chunk) : -1;
  if (rank < 0) return 0;
  std::vector<hsize_t> factors(chunk, chunk + rank);
  factors.insert(factors.end(), {H5Tget_size(type), chunk_maker::most_times});
  return product(factors);
}

}  // namespace

void conversion_run::prepare_queue() {
  if (queue_) return;
  unsigned threads = options_.threads ? options_.threads : usable_processors();
  if (!out_->any_order()) threads = 1;
  queue_ = std::make_unique<work_queue>(threads, bound_of(options_) / 2);
  runner_ = std::make_unique<unit_runner>(*source_, *out_, options_, *queue_,
                                          unit_runner::calls{[this](const unit_id& id, unit_result&& r) { unit_done(id, std::move(r)); },
                                                             [this](std::uint64_t n) {
                                                               const std::lock_guard held(mutex_);
                                                               bytes_done_ += n;
                                                               tell();
                                                             }});
  look_ahead();
}

void conversion_run::look_ahead() {
  const bool measure = options_.progress && options_.measure_first;
  if (!measure && !options_.warning) return;
  for (const source_object& o : source_->objects()) {
    if (o.kind != source_object::kind_type::dataset) continue;
    const h5::handle d(H5Oopen_by_addr(source_->file(), o.address));
    if (d && measure) bytes_ += H5Dget_storage_size(d);
    // the whole plan of a dataset takes its time: only for those of which there may be something to say
    if (d && options_.warning && (!options_.chunk.empty() || largest_need(d) > bound_of(options_))) warn_of_chunks(o);
  }
  H5Eclear2(H5E_DEFAULT);
}

void conversion_run::warn_of_chunks(const source_object& o) {
  std::uint64_t need = 0, chunk = 0;
  reason_to_skip([&] {
    dataset_plan dataset(*source_, o, options_);
    dataset.prepare();
    chunk = product(std::vector<hsize_t>{dataset.data.grid.chunk_elements(), dataset.data.element_size});
    for (const dataset_part& part : dataset.parts()) {
      if (part.kind != dataset_part::kind_type::array) continue;
      const array_plan plan(dataset.data, part.view, options_, {});
      need = std::max(need, chunk_maker(plan).memory());
    }
  });
  if (need <= bound_of(options_)) return;
  options_.warning("dataset \"" + o.path + "\" of \"" + options_.source + "\" has chunks of " + human_bytes(chunk) + ", each of which may take " +
                   human_bytes(need) + " of memory, more than the " + human_bytes(bound_of(options_)) +
                   " that are allowed; they are made one at a time: see that there is enough, or repack the file with smaller chunks");
}

void conversion_run::tell() {
  if (options_.progress) options_.progress({at_hand_, objects_done_, source_->objects().size(), bytes_done_, bytes_});
}

void conversion_run::at_hand(const std::string& path) {
  const std::lock_guard held(mutex_);
  at_hand_ = path;
  tell();
}

void conversion_run::unit_done(const unit_id& id, unit_result&& result) {
  const std::lock_guard held(mutex_);
  if (journal_) journal_->add(id, result);
  results_.insert_or_assign(id, std::move(result));
}

std::vector<planned_unit> conversion_run::units() {
  std::vector<planned_unit> all;
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    const source_object& o = source_->objects()[i];
    if (o.kind != source_object::kind_type::dataset) continue;
    at_hand(o.path);
    const auto why = reason_to_skip([&] {
      dataset_plan dataset(*source_, o, options_);
      dataset.prepare();
      for (std::uint64_t k = 0; k < dataset.units(); ++k) all.push_back({{i, k}, dataset.unit(k)});
    });
    if (why && (all.empty() || all.back().id.dataset != i)) all.push_back({{i, 0}, {}});
    H5Eclear2(H5E_DEFAULT);
  }
  return all;
}

std::vector<planned_unit> conversion_run::share_of(const std::vector<planned_unit>& units, unsigned index, unsigned count) {
  // opening a dataset and making an object cost about as much as copying this
  const auto work = [](const planned_unit& u) { return static_cast<double>(u.range.bytes + (u.range.count + 1) * 65536); };
  double all = 0, before = 0;
  for (const planned_unit& u : units) all += work(u);
  std::vector<planned_unit> mine;
  for (const planned_unit& u : units) {
    const double middle = before + work(u) / 2;
    before += work(u);
    if (std::min(count - 1, static_cast<unsigned>(middle / all * count)) == index) mine.push_back(u);
  }
  return mine;
}

void conversion_run::run() {
  prepare_queue();
  for (std::size_t i = 0; i < source_->objects().size(); ++i) {
    if (source_->objects()[i].kind == source_object::kind_type::dataset) run_dataset(i, nullptr);
  }
  runner_->finish();
  if (journal_) journal_->flush();
}

void conversion_run::run(std::span<const planned_unit> units) {
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

void conversion_run::run_dataset(std::size_t index, const std::vector<std::uint64_t>* numbers) {
  const source_object& o = source_->objects()[index];
  at_hand(o.path);
  const auto known = [&](std::uint64_t number) {
    const std::lock_guard held(mutex_);
    return results_.contains({index, number});
  };
  std::shared_ptr<dataset_plan> dataset;
  const auto why = reason_to_skip([&] {
    const h5::lock one_thread;
    dataset = std::make_shared<dataset_plan>(*source_, o, options_);
    dataset->prepare();
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

unit_result conversion_run::take(std::size_t dataset) {
  unit_result all;
  const auto first = results_.lower_bound({dataset, 0}), last = results_.lower_bound({dataset + 1, 0});
  for (auto at = first; at != last; ++at) all.add(std::move(at->second));
  results_.erase(first, last);
  return all;
}

}  // namespace zarrbits::conversion
