// SPDX-License-Identifier: BSL-1.0
#include "check/file_check.hpp"

#include "check/dataset_chunks.hpp"
#include "check/netcdf_dimensions_check.hpp"
#include "check/read_failure.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::checking {

namespace {

class file_check {
 public:
  file_check(const integrity_options& options, const source_name& name, finding_list& findings, integrity_report& report)
      : options_(options), name_(name), findings_(findings), report_(report) {}

  std::string run() {
    std::string digest_note;
    std::optional<hdf5::source_file> source;
    if (!succeeds("file", "/", [&] {
          source.emplace(
              name_.file,
              hdf5::source_options{
                  .remote = options_.remote, .cache = options_.memory / 4, .external = options_.external, .lock = options_.lock});
        }))
      return digest_note;
    report_.format = "HDF5";
    succeeds("file", "/", [&] {
      source->walk(true, name_.object);
      check_end(*source);
    });
    for (const hdf5::source_object& o : source->objects()) check_object(*source, o);
    if (name_.object.empty()) {
      check_netcdf_dimensions(*source, findings_);
      read_failure_of([&] { digest_note = hdf5::digest_note(source->file()); });  // check_attributes() reports it
    }
    if (!reports_metadata(options_)) findings_.clear();
    read_values();
    succeeds("file", "/", [&] { source->require_unchanged(); });
    return digest_note;
  }

 private:
  void add(finding_severity severity, const char* rule, const std::string& path, std::string key, std::string reason) {
    findings_.add({severity, rule, path, std::move(key), std::move(reason)});
  }
  template <class F>
  bool succeeds(const char* rule, const std::string& path, F&& run) {
    const auto failure = read_failure_of(run);
    H5Eclear2(H5E_DEFAULT);
    if (failure) add(failure->severity, rule, path, "", failure->reason);
    return !failure;
  }

  void check_end(const hdf5::source_file& source) {
    if (source.bytes()->remote()) return;  // libhdf5 asks only drivers that allow SWMR
    haddr_t end = 0;
    hdf5::check(H5Fget_eoa(source.file(), &end), "get the end of the file");
    const std::uint64_t size = source.state().size, used = end;
    if (size > used)
      add(finding_severity::notice, "file", "/", "",
          text::pluralize(size - used, "byte") + " after the end of the file that its superblock records, which no reader sees");
  }

  void check_object(hdf5::source_file& source, const hdf5::source_object& o) {
    if (options_.progress) options_.progress({o.path, 0, 0});
    if (!o.listing_error.empty())
      add(finding_severity::problem, "link", o.path, "", "its links cannot be listed: " + o.listing_error.sentence);
    std::optional<hdf5::handle> object;
    if (!succeeds("metadata", o.path, [&] { object = source.open(o); })) return;
    check_attributes(*object, o.path);
    if (o.kind == hdf5::source_object::kind_type::group) {
      ++report_.groups;
      check_links(*object, o);
    } else if (o.kind == hdf5::source_object::kind_type::dataset) {
      check_dataset(source, o);
    }
  }

  void check_links(hid_t group, const hdf5::source_object& o) {
    for (const hdf5::extra_link& link : o.links) {
      const std::string key = text::escape_name(link.name);
      if (link.kind == "broken") {
        const bool is_newer = link.code == reason_code::unsupported_feature;
        add(link.left_out || is_newer ? finding_severity::unchecked : finding_severity::problem, "link", o.path, key,
            link.detail);
      } else if (link.kind == "soft" || link.kind == "external") {
        const bool is_valid = H5Oexists_by_name(group, link.name.c_str(), H5P_DEFAULT) > 0;
        H5Eclear2(H5E_DEFAULT);
        if (!is_valid)
          add(finding_severity::notice, "link", o.path, key,
              (link.kind == "external" ? "an " : "a ") + link.kind + " link to " +
                  (link.file.empty() ? "" : "\"" + link.file + "\":") + "\"" + link.target + "\", which cannot be opened");
      }
    }
  }

  void check_attributes(hid_t object, const std::string& path) {
    std::vector<std::string> names;
    succeeds("attribute", path,
             [&] { hdf5::check(hdf5::list_attributes(object, H5_INDEX_NAME, H5_ITER_NATIVE, names), "list the attributes"); });
    for (const std::string& name : names) {
      const auto failure = read_failure_of([&] { read_attribute(object, name); });
      H5Eclear2(H5E_DEFAULT);
      if (failure) add(failure->severity, "attribute", path, text::escape_name(name), failure->reason);
    }
  }

  void read_attribute(hid_t object, const std::string& name) const {
    const hdf5::handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open the attribute"),
        stored(H5Aget_type(attribute), "get its type"), space(H5Aget_space(attribute), "get its dataspace");
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return;
    const std::uint64_t elements = array::product(hdf5::extent(space)), limit = options_.memory / 8;
    if (array::saturating_mul(elements, H5Tget_size(stored)) > limit)
      throw zarr::not_supported(reason_code::too_large,
                                "an attribute of more than " + text::format_bytes(limit) + "; increase `memory`");
    const hdf5::type_description type = hdf5::describe_type(stored);
    if (hdf5::holds_variable(type)) {
      hdf5::count_variable_bytes(attribute, type, elements, limit);  // reads all of them
      return;
    }
    std::vector<std::byte> values(static_cast<std::size_t>(elements * H5Tget_size(stored)));
    if (!values.empty()) hdf5::check(H5Aread(attribute, stored, values.data()), "read its value");
  }

  void check_dataset(hdf5::source_file& source, const hdf5::source_object& o) {
    const auto failure = read_failure_of([&] {
      dataset_chunks& dataset = datasets_.emplace_back(source, o);
      const hdf5::external_dependencies& other = *dataset.dataset().dependencies;
      if (other.missing + other.refused > 0)
        add(finding_severity::notice, "link", o.path, "",
            text::pluralize(other.missing + other.refused, "source") +
                " of this virtual dataset cannot be opened, and its values " + "are fill values" +
                (other.refusal_reason.empty() ? "" : ": " + other.refusal_reason));
      if (options_.metadata_only) return;
      dataset.list(max_chunks() - listed_);
      listed_ += dataset.listed();
    });
    H5Eclear2(H5E_DEFAULT);
    if (failure) add(failure->severity, "metadata", o.path, "", failure->reason);
    if (datasets_.empty() || datasets_.back().path() != o.path) report_.arrays.push_back({.path = o.path});
  }

  std::uint64_t max_chunks() const { return options_.memory / 4 / 16; }

  void read_values() {
    random_numbers random(options_.seed);
    std::uint64_t total = 0, done = 0;
    for (dataset_chunks& dataset : datasets_) dataset.sample(options_.sample, random);
    if (options_.partition) {
      chunk_partition own(*options_.partition, datasets_);
      for (dataset_chunks& dataset : datasets_) dataset.select(own);
    }
    for (const dataset_chunks& dataset : datasets_) total += dataset.bytes();
    {
      io::thread_pool pool(options_.threads ? options_.threads : detail::usable_processors(), options_.memory / 2);
      for (dataset_chunks& dataset : datasets_) {
        dataset.submit(pool, options_.memory, [&](std::uint64_t bytes) {
          done += bytes;
          if (options_.progress) options_.progress({dataset.path(), done, total});
        });
      }
      pool.finish();
    }
    for (dataset_chunks& dataset : datasets_) report_.arrays.push_back(dataset.report(options_, findings_));
    std::stable_sort(report_.arrays.begin(), report_.arrays.end(),
                     [](const checked_array& a, const checked_array& b) { return a.path < b.path; });
  }

  const integrity_options& options_;
  const source_name& name_;
  finding_list& findings_;
  integrity_report& report_;
  std::list<dataset_chunks> datasets_;
  std::uint64_t listed_ = 0;
};

}  // namespace

std::string check_file(const integrity_options& options, const source_name& name, finding_list& findings,
                       integrity_report& report) {
  return file_check(options, name, findings, report).run();
}

}  // namespace zarrbits::checking
