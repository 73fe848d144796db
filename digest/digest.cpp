// SPDX-License-Identifier: BSL-1.0
//
// The public functions: digest, its report.
//
#include <zarrbits/digest.hpp>
#include <zarrbits/version.hpp>

#include "digest/dandi_checksum.hpp"
#include "digest/hdf5_digest.hpp"
#include "digest/object_hashes.hpp"
#include "digest/partial_digests.hpp"
#include "digest/zarr_digest.hpp"
#include "hdf5/h5.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace zarrbits {

namespace {

// Sorts the arrays by their paths, and makes the digest of all; none of a share, or if an array has none.
void add_tree_digest(digest_report& report) {
  std::sort(report.arrays.begin(), report.arrays.end(),
            [](const array_digest& a, const array_digest& b) { return a.path < b.path; });
  if (report.attributes) {
    std::sort(report.attributes->begin(), report.attributes->end(),
              [](const attribute_digest& a, const attribute_digest& b) { return a.path < b.path; });
  }
  if (report.partition) return;
  text::sha256 sum;
  sum.add("zarrbits digest 1 tree\n");
  for (const array_digest& a : report.arrays) {
    if (a.digest.empty()) return;
    sum.add(a.digest + " " + std::to_string(a.path.size()) + ":" + a.path + "\n");
  }
  if (report.attributes) {
    sum.add("attributes\n");
    for (const attribute_digest& a : *report.attributes)
      sum.add(a.digest + " " + std::to_string(a.path.size()) + ":" + a.path + "\n");
  }
  report.digest = sum.hex();
}

}  // namespace

void check_options(const digest_options& options) {
  text::selection(options.include, options.exclude);
  if (options.memory < min_memory)
    throw error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                          ", too little to read chunks; use at least " + text::format_bytes(min_memory));
  if (options.partition && options.partition->index >= options.partition->count)
    throw error(errc::invalid_option, "`partition` counts from 0: the last of 4 is 3");
  if (options.partition && options.attributes)
    throw error(errc::invalid_option, "`partition` divides values, and `attributes` have no sums; use one of them");
}

digest_report digest(const digest_options& requested) {
  digest_options options = requested;
  options.source = io::redact_url(options.source);
  check_options(options);
  const auto begun = std::chrono::steady_clock::now();
  const hdf5::silence quiet;
  digest_report report;
  report.source = options.source;
  const std::string file = split_source(options.source).file;
  zarr::as_public_errors(file, file, errc::damaged_source, [&] {
    if (options.attributes) report.attributes.emplace();
    remote::init_s3({options.source}, "", options.remote, options.warning);
    zarr::probe_source(options.source, options.remote);
    if (zarr::is_store_name(options.source)) digesting::digest_zarr(options, report);
    else digesting::digest_hdf5(options, report);
  });
  if (options.partition) report.partition = {*options.partition, options.include, options.exclude};
  add_tree_digest(report);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

digest_report add_digests(const std::vector<std::string>& files) {
  digest_report report = digesting::add_reports(files);
  add_tree_digest(report);
  return report;
}

std::vector<object_hash> hash_objects(const digest_options& options) {
  check_options(options);
  return zarr::as_public_errors(options.source, options.source, errc::damaged_source,
                                [&] { return digesting::hash_objects(options, digesting::hash_function::sha256); });
}

std::string dandi_checksum(const digest_options& options) {
  check_options(options);
  return zarr::as_public_errors(options.source, options.source, errc::damaged_source, [&] {
    try {
      return digesting::tree_checksum(digesting::hash_objects(options, digesting::hash_function::md5));
    } catch (const nlohmann::json::exception&) {
      throw error(errc::unsupported, "\"" + options.source + "\" has an object whose name is not UTF-8; rename it",
                  {options.source});
    }
  });
}

std::string digest_report::report_json() const {
  using json = nlohmann::ordered_json;
  json list = json::array();
  for (const array_digest& a : arrays) {
    json entry = {{"path", a.path}};
    if (!a.digest.empty() || !a.sums.empty()) {
      entry["data_type"] = text::escape_invalid_utf8(a.data_type);
      entry["shape"] = a.shape;
    }
    entry["digest"] = a.digest.empty() ? json() : json(a.digest);
    if (!a.sums.empty()) {
      entry["sums"] = a.sums;
      entry["fill_sums"] = a.fill_sums;
    }
    if (!a.reason.empty()) entry.update({{"code", to_string(a.code)}, {"reason", a.reason}});
    list.push_back(std::move(entry));
  }
  json report = {{"version", 1}, {"digester", std::string("zarrbits ") + version()}, {"source", text::escape_name(source)}};
  if (partition) {
    report["partition"] = {{"index", partition->share.index},
                           {"count", partition->share.count},
                           {"include", partition->include},
                           {"exclude", partition->exclude}};
  }
  report["digest"] = digest.empty() ? json() : json(digest);
  if (attributes) {
    report["attributes"] = json::array();
    for (const attribute_digest& a : *attributes) report["attributes"].push_back({{"path", a.path}, {"digest", a.digest}});
  }
  report["seconds"] = seconds;
  report["arrays"] = std::move(list);
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
