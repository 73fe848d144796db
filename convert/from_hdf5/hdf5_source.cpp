// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/hdf5_source.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/file_order.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/from_hdf5/chunk_transcoder.hpp"
#include "convert/from_hdf5/file_identity.hpp"
#include "convert/from_hdf5/final_metadata.hpp"
#include "convert/from_hdf5/link_policy.hpp"
#include "convert/from_hdf5/option_checks.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/plan/plan_report.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"
#include "text/coordinates.hpp"
#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/selection.hpp"
#include "text/warning.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <map>
#include <utility>

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
  if (options.selection.include.empty()) return {};
  text::selection object_filter(options.selection.include, options.selection.exclude);
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

// A dataset, and the units in which its chunks are made.
class dataset_work final : public object_work {
 public:
  dataset_work(hdf5_source& source, std::size_t object) : source_(source), object_(object) {
    const auto reason = hdf5::skip_reason([&] {
      const hdf5::lock one_thread;
      plan_ = source_.planned(object_);
      H5Eclear2(H5E_DEFAULT);
    });
    if (reason) skip_reason_ = *reason;
  }

  const text::coded_reason& skip_reason() const override { return skip_reason_; }
  std::uint64_t units() const override { return plan_ ? plan_->units() : 1; }
  chunk_range unit(std::uint64_t number) const override { return plan_ ? plan_->unit(number) : chunk_range(); }
  std::optional<std::uint64_t> unit_of(std::string_view coordinates) const override {
    return plan_ && plan_->divisible() ? plan_->unit_of(coordinates) : std::nullopt;
  }
  void make(std::span<const std::uint64_t> numbers) override {
    for (const std::uint64_t number : numbers) source_.runner().run(plan_, {object_, number});
  }

 private:
  hdf5_source& source_;
  std::size_t object_;
  std::shared_ptr<dataset_plan> plan_;
  text::coded_reason skip_reason_;
};

}  // namespace

hdf5_source::hdf5_source(converter& run, convert_options& options, std::shared_ptr<const append::append_target> grown)
    : run_(run), options_(options), grown_(std::move(grown)) {
  order_sources();
}

// Decides how the source is opened or, of several files, in which order; the first one then is the source.
void hdf5_source::order_sources() {
  constexpr std::uint64_t own_memory = 32U << 20;  // of the process, with the queue's half of a small `memory`
  const std::uint64_t free_memory = options_.execution.memory - std::min(options_.execution.memory, own_memory);
  // if chunks are cut again, several of them need each chunk of the source: without a cache it would be decoded for each
  source_options_ = {.chunk_cache = options_.encoding.sets_chunks() ? free_memory / 4 : 0,
                     .remote = options_.remote,
                     .cache = options_.execution.memory / 4,
                     .external = options_.source.external,
                     .lock = options_.source.lock,
                     .netcdf3 = true};
  if (options_.source.concat) {
    source_options_.chunk_cache = options_.execution.memory / 32;  // per open dataset
    sources_ = ordered_sources(options_, [&](const std::string& source) {
      return first_value_of_file(source, options_.source.concat->dimension, source_options_);
    });
    if (options_.execution.processes == 0) options_.execution.processes = detail::usable_processors();
    options_.source.name = sources_.front();
  }
  name_ = split_source(options_.source.name);
}

// Opens the (first) source, with its requested objects, as the convention arranges them.
std::unique_ptr<hdf5::source_file> hdf5_source::open_first(bool is_case_sensitive) {
  auto file = std::make_unique<hdf5::source_file>(name_.file, source_options_);
  file->limit_paths(path_capacity(options_.target.name));
  file->limit_expansion(options_.execution.allow_expansion ? UINT64_MAX
                                                           : std::max<std::uint64_t>(options_.execution.memory, 64U << 20));
  file->walk(is_case_sensitive, name_.object, [&](const std::string& group) {
    if (options_.execution.progress) options_.execution.progress({group, 0, 0, 0, 0});
  });
  rules_ = conventions::find_convention(*file, options_.target.convention);
  follow_links(*file, options_, rules_, is_case_sensitive);
  conventions::override_schema(*file, rules_);
  coordinates_ = find_coordinates(*file, options_);
  text::selection object_filter(
      text::include_patterns(options_.selection.include, options_.selection.with_coordinates, coordinates_),
      options_.selection.exclude);
  file->select(object_filter);
  refuse_links(*file, options_);
  return file;
}

// The (first) source, joined with the other files, if there are any.
void hdf5_source::open(bool is_case_sensitive) {
  auto file = open_first(is_case_sensitive);
  if (options_.source.concat) {
    const auto in_other_process = [&] {  // which must not talk to the caller
      options_.execution.progress = nullptr;
      options_.execution.warning = nullptr;
      return open_first(is_case_sensitive);
    };
    convert_options for_all = options_;  // the other files are selected like the first one
    for_all.selection.include =
        text::include_patterns(options_.selection.include, options_.selection.with_coordinates, coordinates_);
    joined_ = join_files(*file, in_other_process, sources_, for_all, source_options_, is_case_sensitive, grown_.get());
  }
  require_applicable_options(*file, options_);
  file_ = std::move(file);
}

void hdf5_source::report_warnings() const {
  if (options_.execution.partition) return;
  text::report_sentence(options_.execution.note, text::coordinates_note(coordinates_, options_.selection.with_coordinates));
  if (!options_.execution.warning) return;
  if (file_->swmr())
    options_.execution.warning(
        "\"" + name_.file +
        "\" is marked as open for writing (SWMR): what its writer has not brought to the file yet is not converted");
  if (io::is_remote(name_.file) && file_->etag().empty())
    options_.execution.warning(remote::unnoticed_change_warning(name_.file, options_.remote));
  warn_of_links(*file_, options_);
  const std::string hint = rules_ || options_.target.convention ? "" : conventions::convention_hint(*file_);
  text::report_sentence(options_.execution.warning, hint);
}

source_identity hdf5_source::identity() { return identity_of(*file_, joined_.checksum); }

void hdf5_source::require_unchanged(change_check check) const {
  file_->require_unchanged();
  if (check == change_check::unit_done) return;
  if (joined_.files) joined_.files->require_unchanged();
  else file_->require_same_on_server();
}

std::shared_ptr<object_work> hdf5_source::work(std::size_t object) { return std::make_shared<dataset_work>(*this, object); }

// The number of units is not worth the time that it takes to plan each of many datasets.
bool hdf5_source::counts_units_quickly() const {
  constexpr std::size_t max_objects = 256;
  return size() <= max_objects;
}

bool hdf5_source::is_remote() const {
  return io::any_remote(given_sources(options_.source.name, options_.source.concat)) || io::any_remote(options_.source.external);
}

namespace {

std::uint64_t memory_limit_of(const convert_options& options) {
  return std::max<std::uint64_t>(options.execution.memory, 16U << 20);
}

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

std::uint64_t hdf5_source::begin_units(bool measure) {
  runner_ = std::make_unique<work_unit_runner>(
      run_.out(), options_, run_.queue(),
      work_unit_runner::callbacks{
          [this](const work_unit_id& id, work_unit_result&& result) { run_.unit_done(id, std::move(result)); },
          [this](std::uint64_t bytes) { run_.advance(bytes); }});
  std::uint64_t bytes = 0;
  if (!measure && !options_.execution.warning) return bytes;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!has_chunks(i)) continue;
    const hdf5::source_object& o = file_->objects()[i];
    hdf5::handle d;
    hdf5::skip_reason([&] { d = file_->open(o); });  // reported when it is converted
    if (d && measure) bytes += o.joined ? o.joined->stored_bytes : H5Dget_storage_size(d);
    // a full plan takes time: only for datasets that may need a warning
    if (d && options_.execution.warning &&
        (options_.encoding.sets_chunks() || max_chunk_memory(o, d) > memory_limit_of(options_)))
      hdf5::skip_reason([&] { warn_of_chunks(o, *planned(i)); });
  }
  H5Eclear2(H5E_DEFAULT);
  return bytes;
}

void hdf5_source::warn_of_chunks(const hdf5::source_object& o, const dataset_plan& dataset) const {
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
                                    : "dataset \"" + o.path + "\" of \"" + options_.source.name + "\"";
  const std::string sentence =
      text::chunk_memory_warning({subject, chunk, required}, memory_limit_of(options_),
                                 grows ? "make the store again with smaller chunks" : "repack the file with smaller chunks");
  text::report_sentence(options_.execution.warning, sentence);
}

std::shared_ptr<dataset_plan> hdf5_source::opened(std::size_t index) {
  if (const auto entry = open_datasets_.find(index); entry != open_datasets_.end()) return entry->second;
  auto dataset = std::make_shared<dataset_plan>(*file_, file_->objects()[index], options_);
  // an open dataset costs libhdf5's chunk cache of 1 MiB (more if another chunk shape needs it), and the files that it consists
  // of
  const bool keep = !options_.encoding.sets_chunks() && dataset->data.layout != H5D_VIRTUAL && !dataset->data.external &&
                    dataset->data.object.place.file == 0;
  if (keep && open_datasets_.size() < (memory_limit_of(options_) / 8) >> 20) open_datasets_.emplace(index, dataset);
  return dataset;
}

std::shared_ptr<dataset_plan> hdf5_source::planned(std::size_t index) {
  auto dataset = opened(index);
  try {
    dataset->prepare();
  } catch (...) {
    close(index);
    throw;
  }
  return dataset;
}

std::vector<converted_object> hdf5_source::write_metadata() { return conversion::write_metadata(*this); }

void hdf5_source::describe(convert_result& result, bool is_complete) {
  result.convention = convention();
  result.links = count_links(*file_);
  if (is_complete) {
    list_other_files(file_->external_files(), result.other_files, result.refused_files);
    for (auto& refused : result.refused_files) refused.reason = run_.worded(refused.reason);
  }
  for (std::size_t i = 0; i < result.sources.size(); ++i) {
    result.sources[i].bytes = files().list().at(i).state.size;
    result.source_bytes += result.sources[i].bytes;
  }
  hsize_t size = 0;
  if (result.sources.empty() && H5Fget_filesize(file_->file(), &size) >= 0) result.source_bytes = size;
}

}  // namespace zarrbits::conversion
