// SPDX-License-Identifier: BSL-1.0
//
// A dry run of an HDF5 source.
//
#include "array/chunk_grid.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/from_hdf5/chunk_measurement.hpp"
#include "convert/from_hdf5/compression_estimate.hpp"
#include "convert/from_hdf5/hdf5_source.hpp"
#include "convert/from_hdf5/link_policy.hpp"
#include "convert/plan/plan_report.hpp"
#include "text/node_names.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

// Times that the array cannot have, such as hours in whole days, end a run, and so a plan. The values of a dimension are read for
// their order in any case; those of other variables are not read for a plan.
void require_representable(const hdf5::chunk_source& data, const convert_options& options) {
  constexpr std::uint64_t max_values = 1U << 20;  // at once
  const hdf5::source_object& o = data.object;
  if (!o.joined || !options.source.concat || data.dims.size() != 1 ||
      text::base_name(o.store_path) != options.source.concat->dimension)
    return;
  for (const joined_part& part : o.joined->list) {
    for (std::uint64_t offset = 0; part.change && offset < part.count; offset += max_values) {
      const std::uint64_t n = std::min(max_values, part.count - offset);
      compressors::buffer values(static_cast<std::size_t>(n) * data.type.size);
      data.read_block(data.type.memory, data.type.size, {part.first + offset}, {n}, {n}, values);
    }
  }
}

}  // namespace

// About the bytes of the chunks of a dataset. What is made for it is kept for write_metadata(): it shows the form of an array.
void hdf5_source::estimate(std::size_t index, const std::shared_ptr<dataset_plan>& dataset, std::uint64_t sample_bytes,
                           planned_dataset& p) {
  if (auto measured = measure_chunks(dataset)) {
    p.store_bytes = measured->store_bytes;
    p.estimated_bytes = measured->store_bytes;
    run_.set_sample(index, std::move(measured->result));
    return;
  }
  if (grown_ || options_.target.references) return;
  if (p.outcome == outcome::raw || dataset->parts().empty()) {
    p.estimated_bytes = p.store_bytes;
    return;
  }
  std::shared_ptr<dataset_plan> sampled = dataset;
  std::uint64_t overhead = 0;
  if (const hdf5::chunk_source& data = dataset->data; data.sharded()) {
    overhead = max_shard_index_bytes(data, data.max_stored_chunks());
    sampled = std::make_shared<dataset_plan>(*file_, file_->objects()[index], options_);
    sampled->prepare();
    sampled->remove_shards();
  }
  auto measured = sample_chunks(sampled, sample_bytes);
  if (!measured) return;
  p.estimated_bytes = std::min(p.store_bytes, measured->store_bytes + (measured->store_bytes > 0 ? overhead : 0));
  run_.set_sample(index, std::move(measured->result));
}

// Measures each dataset for its share of a second, by its bytes. A small one counts with the speed of the others.
std::optional<double> hdf5_source::estimate_seconds(const convert_plan& plan) {
  constexpr double duration = 1, shortest = 0.01;
  double all_bytes = 0, measured_bytes = 0, seconds = 0;
  for (const planned_dataset& p : plan.datasets) {
    if (p.outcome != outcome::skipped) all_bytes += static_cast<double>(p.source_bytes);
  }
  std::size_t number = 0;
  for (std::size_t i = 0; i < file_->objects().size(); ++i) {
    if (file_->objects()[i].kind != hdf5::source_object::kind_type::dataset) continue;
    const planned_dataset& p = plan.datasets.at(number++);
    const double bytes = static_cast<double>(p.source_bytes), slice = duration * bytes / std::max(1.0, all_bytes);
    if (p.outcome == outcome::skipped || slice < shortest) continue;
    run_.set_current(p.path);
    hdf5::skip_reason([&] {
      const auto dataset = std::make_shared<dataset_plan>(*file_, file_->objects()[i], options_);
      dataset->prepare();
      dataset->remove_shards();
      const auto measured =
          measure_seconds(dataset, options_.execution.threads ? options_.execution.threads : detail::usable_processors(), slice);
      if (!measured) return;
      seconds += *measured;
      measured_bytes += bytes;
    });
    H5Eclear2(H5E_DEFAULT);
  }
  if (measured_bytes == 0) return {};
  return seconds * all_bytes / measured_bytes;
}

void hdf5_source::plan(convert_plan& result, const plan_options& further) {
  constexpr std::uint64_t all_samples = 256U << 20, largest_sample = 4U << 20, smallest_sample = 64U << 10;
  const std::uint64_t sample_bytes =
      std::clamp<std::uint64_t>(all_samples / std::max<std::size_t>(1, file_->objects().size()), smallest_sample, largest_sample);
  result.convention = convention();
  result.links = count_links(*file_);
  add_lost_links(*file_, result);
  for (std::size_t i = 0; i < file_->objects().size(); ++i) {
    const hdf5::source_object& o = file_->objects()[i];
    if (o.kind == hdf5::source_object::kind_type::group) ++result.groups;
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    run_.set_current(o.path);
    planned_dataset p;
    p.path = o.path;
    const auto skip_reason = hdf5::skip_reason([&] {
      const auto planned = std::make_shared<dataset_plan>(*file_, o, options_);
      dataset_plan& dataset = *planned;
      p.source_bytes = dataset.data.stored_bytes;
      if (const std::string reason = hdf5::unsupported_reason(dataset.data.type); !reason.empty())
        throw hdf5::unsupported_dataset(reason_code::unsupported_type, "its datatype is not supported: " + reason);
      dataset.prepare();
      if (!dataset.data.dependencies->missing_raw.empty() && array::product(dataset.data.dims) > 0)
        throw hdf5::unsupported_dataset(reason_code::missing_file, dataset.data.dependencies->missing_raw);
      const std::string missing =
          dataset.data.layout == H5D_CHUNKED ? dataset.data.filters.unavailable_filters(dataset.data.type) : "";
      if (!missing.empty())
        throw hdf5::unsupported_dataset(reason_code::missing_filter,
                                        "it needs HDF5 filter " + missing + ", which is not installed");
      require_representable(dataset.data, options_);
      conversion::describe(p, dataset, options_);
      if (options_.execution.warning) warn_of_chunks(o, dataset);
      estimate(i, planned, sample_bytes, p);
      p.compressed = estimate_compression(dataset, p.store_bytes);
    });
    H5Eclear2(H5E_DEFAULT);
    if (skip_reason) {
      p = {.path = o.path,
           .outcome = outcome::skipped,
           .how = run_.worded(skip_reason->sentence),
           .code = skip_reason->code,
           .codecs = {},
           .source_bytes = p.source_bytes,
           .units = {}};
    }
    result.datasets.push_back(std::move(p));
  }
  if (further.time) result.seconds = estimate_seconds(result);
  list_other_files(file_->external_files(), result.other_files, result.refused_files);
  for (auto& refused : result.refused_files) refused.reason = run_.worded(refused.reason);
  require_unchanged(change_check::complete);
}

}  // namespace zarrbits::conversion
