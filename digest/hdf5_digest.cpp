// SPDX-License-Identifier: BSL-1.0
#include "digest/hdf5_digest.hpp"

#include "convert/from_hdf5/dataset_metadata.hpp"
#include "convert/from_hdf5/hdf5_source.hpp"
#include "convert/from_hdf5/node_attributes.hpp"
#include "convert/from_hdf5/work_unit_runner.hpp"
#include "convert/pipeline/partition.hpp"
#include "digest/canonical_attributes.hpp"
#include "digest/digest_source.hpp"
#include "digest/partial_digests.hpp"
#include "digest/summing_writer.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "io/thread_pool.hpp"
#include "text/format.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace zarrbits::digesting {

namespace {

using conversion::work_unit_id;
using conversion::work_unit_result;

// Plain chunks, of which damaged ones are reported.
convert_options conversion_options(const digest_options& options) {
  convert_options c = conversion_source(options);
  c.source.lock = options.lock;
  c.execution.allow_expansion = options.allow_expansion;
  c.execution.keep_going = true;
  c.encoding.profile = profile::recode;
  c.encoding.compress = compression{.kind = compressor::none};
  c.encoding.codec = array_codec::bytes;
  c.execution.threads = options.threads;
  c.execution.warning = options.warning;
  return c;
}

class file_digest {
 public:
  explicit file_digest(const digest_options& options)
      : options_(options),
        conversion_(conversion_options(options), conversion::converter::mode::dry_run),
        source_(conversion_.source()),
        sums_(options.any_nan, std::max<std::uint64_t>(options.memory, 16U << 20)),
        queue_(options.threads ? options.threads : detail::usable_processors(), options.memory / 2),
        runner_(sums_, source_.options(), queue_,
                {[this](const work_unit_id& id, work_unit_result&& unit) { unit_done(id, unit); },
                 [this](std::uint64_t bytes) { advance(bytes); },
                 [this](const std::string& path, const metadata::array_metadata& m) { sums_.begin_array(path, m); }}) {}

  void run(digest_report& report) {
    bytes_ = source_.file().state().size;
    if (options_.partition) select_units();
    const auto& objects = source_.file().objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects[i].kind != hdf5::source_object::kind_type::dataset) continue;
      if (!options_.partition || own_units_.contains(i)) run_dataset(i);
    }
    runner_.finish();
    source_.require_unchanged(conversion::conversion_source::change_check::complete);
    for (const auto& [index, reason] : skipped_) sums_.drop(objects[index].store_path);
    for (const auto& [path, sum] : sums_.finished()) {
      array_digest& a = report.arrays.emplace_back(summed_array(path, *sum, options_.partition.has_value()));
      if (const auto note = notes_.find(path); note != notes_.end())
        text::set_reason(a, note->second.code, note->second.sentence);
    }
    for (const auto& [index, reason] : skipped_) report.arrays.push_back(skipped_array(objects[index].store_path, reason));
    for (std::size_t i = 0; report.attributes && i < objects.size(); ++i) {
      const std::string attributes = skipped_.contains(i) ? "" : attributes_of(i);
      if (!attributes.empty()) report.attributes->push_back({objects[i].store_path, attributes});
    }
  }

 private:
  const hdf5::source_object& object(std::size_t index) const { return source_.file().objects()[index]; }

  // Their digest; "" if it has none. A dimension without values has no node of its own.
  std::string attributes_of(std::size_t index) {
    using kind = hdf5::source_object::kind_type;
    const hdf5::source_object& o = object(index);
    if (o.kind == kind::dimension) return {};
    std::vector<hdf5::attribute_report> report;
    text::json attributes;
    if (o.kind == kind::dataset) {
      const auto plan = source_.opened(index);
      attributes = conversion::node_attributes(source_, o, plan->data.dataset, &plan->data.leaf(), report);
      source_.close(index);
    } else {
      attributes = conversion::node_attributes(source_, o, source_.file().open(o), nullptr, report);
    }
    for (const hdf5::attribute_report& a : report) {
      if (!a.skipped) continue;
      throw error(errc::unsupported,
                  "attribute \"" + a.name + "\" of \"" + o.path + "\" cannot be read: " + a.reason +
                      "; remove `attributes`, or set `exclude` to that object",
                  {options_.source, o.path});
    }
    return digest_attributes(attributes);
  }

  // A dataset without units is a part of the first share.
  void select_units() {
    const std::vector<conversion::planned_unit> units = conversion_.units(),
                                                own = conversion::units_of_partition(units, options_.partition->index,
                                                                                     options_.partition->count);
    std::set<std::size_t> with_units;
    for (const conversion::planned_unit& unit : units) with_units.insert(unit.id.dataset);
    for (const conversion::planned_unit& unit : own) own_units_[unit.id.dataset].push_back(unit.id.number);
    for (std::size_t i = 0; options_.partition->index == 0 && i < source_.file().objects().size(); ++i) {
      if (!with_units.contains(i)) own_units_[i];
    }
    bytes_ = conversion::bytes_of(own);
  }

  void run_dataset(std::size_t index) {
    {
      const std::lock_guard lock(mutex_);
      path_ = object(index).path;
      report_progress();
    }
    std::shared_ptr<conversion::dataset_plan> dataset;
    auto reason = hdf5::skip_reason([&] {
      const hdf5::lock one_thread;
      dataset = source_.planned(index);
      source_.close(index);
      H5Eclear2(H5E_DEFAULT);
      const hdf5::external_dependencies& others = *dataset->data.dependencies;
      if (others.missing > 0)
        throw hdf5::unsupported_dataset(reason_code::missing_file,
                                        text::pluralize(others.missing, "source") + " of the virtual dataset cannot be found");
      if (others.refused > 0)
        throw hdf5::unsupported_dataset(
            reason_code::refused_file,
            text::pluralize(others.refused, "source") + " of the virtual dataset must not be read: " + others.refusal_reason);
      if (dataset->data.null) return sums_.begin_array(object(index).store_path, conversion::null_metadata(*dataset));
      for (std::size_t part = 0; part < dataset->parts().size(); ++part) {
        const conversion::dataset_part& node = dataset->parts()[part];
        if (node.kind != conversion::dataset_part::kind_type::array) continue;
        const auto plan = dataset->array(part);
        sums_.begin_array(node.store_path, plan->meta);
        if (!plan->loss.empty()) notes_[node.store_path] = plan->loss;
      }
    });
    if (reason) {
      const std::lock_guard lock(mutex_);
      skipped_.emplace(index, *reason);
      return;
    }
    if (options_.partition) {
      for (const std::uint64_t unit : own_units_[index]) runner_.run(dataset, {index, unit});
      return;
    }
    for (std::uint64_t unit = 0; unit < dataset->units(); ++unit) runner_.run(dataset, {index, unit});
  }

  void unit_done(const work_unit_id& id, const work_unit_result& unit) {
    const std::lock_guard lock(mutex_);
    if (!unit.skipped.empty()) {
      skipped_.emplace(id.dataset, unit.skipped);
      return;
    }
    const std::string& path = object(id.dataset).store_path;
    for (const conversion::array_result& part : unit.arrays) {
      if (!part.lost_chunks.empty()) {
        const auto& [index, reason] = *part.lost_chunks.begin();
        throw error(errc::damaged_source,
                    "chunk " + conversion::format_index(index) + " of dataset \"" + object(id.dataset).path +
                        "\" cannot be read: " + reason + "; get the file again, or set `exclude` to that dataset",
                    {options_.source, object(id.dataset).path});
      }
      if (part.rounded) notes_[path] = {reason_code::rounded, "its values are rounded to float64, and count as such"};
      if (part.dangling)
        notes_[path] = {reason_code::dangling_reference, "a reference in it points nowhere, and counts as an empty one"};
    }
    for (const conversion::derived_array& derived : unit.derived_arrays) {
      if (derived.meta) sums_.end_derived(derived.store_path, *derived.meta);
    }
  }

  void advance(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ = std::min(bytes_, done_ + bytes);
    report_progress();
  }
  void report_progress() {
    if (options_.progress) options_.progress(path_, done_, bytes_);
  }

  const digest_options& options_;
  conversion::hdf5_conversion conversion_;
  conversion::hdf5_source& source_;
  summing_writer sums_;
  std::mutex mutex_;
  std::string path_;
  std::uint64_t done_ = 0, bytes_ = 0;
  std::map<std::size_t, std::vector<std::uint64_t>> own_units_;  // of a share, by dataset
  std::map<std::size_t, text::coded_reason> skipped_;            // datasets, with the reason
  std::map<std::string, text::coded_reason> notes_;              // by paths in a store
  io::thread_pool queue_;
  conversion::work_unit_runner runner_;
};

}  // namespace

void digest_hdf5(const digest_options& options, digest_report& report) { file_digest(options).run(report); }

}  // namespace zarrbits::digesting
