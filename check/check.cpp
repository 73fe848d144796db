// SPDX-License-Identifier: BSL-1.0
//
// The public functions: they find out what a name means, and which errors are findings.
//
#include <zarrbits/check.hpp>
#include <zarrbits/convert_options.hpp>
#include <zarrbits/digest.hpp>
#include <zarrbits/source_name.hpp>

#include "check/chunk_partition.hpp"
#include "check/file_check.hpp"
#include "check/leftovers.hpp"
#include "check/read_failure.hpp"
#include "check/store_check.hpp"
#include "digest/digest_note.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "zarr/read/zarr_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

namespace zarrbits {

namespace checking {

namespace {

namespace fs = std::filesystem;

io::store_kind kind_of(const std::string& name, const remote_access& remote) {
  if (io::is_remote(name)) {
    // a store in S3 is a prefix of names, and has none itself
    const bool is_object = zarr::probe_source(name, remote).has_value();
    const io::store_kind kind = zarr::kind_of_source(name);
    if (kind == io::store_kind::netcdf3) return kind;
    if (is_object || (io::is_web(name) && kind == io::store_kind::none)) return io::store_kind::none;
    return io::is_web(name) ? io::store_kind::web : io::store_kind::object_store;
  }
  std::error_code e;
  if (!fs::exists(name, e))
    throw error(errc::not_found, "cannot open \"" + name + "\": " + (e ? e.message() : "No such file or directory"), {name});
  return zarr::kind_of_source(name);
}

// What a run that writes this file, and was killed, left beside it.
void report_files_beside(const std::string& name, finding_list& findings) {
  std::error_code e;
  for (const std::string& other : {zarr::unfinished_name(name), io::partitions_path(name)}) {
    if (fs::exists(other, e))
      findings.add({finding_severity::notice, "leftover", "/", "",
                    "\"" + other + "\" is beside it: a run that replaces it is not complete, or was killed"});
  }
}

// The leftovers in a folder that is not a store yet. False without any.
bool report_unfinished(const std::string& name, const remote_access& remote, finding_list& findings) {
  bool has_leftovers = false;
  zarr::open_folder(name, remote).list([&](const zarr::store_entry& e) {
    const std::string reason = leftover_reason(e.name);
    if (reason.empty()) return true;
    has_leftovers = true;
    findings.add({finding_severity::problem, "leftover", "/", e.name, reason});
    return true;
  });
  return has_leftovers;
}

// Returns the note of the digest at the root; "" if absent.
std::string check_zarr(const integrity_options& options, const source_name& name, io::store_kind kind, finding_list& findings,
                       integrity_report& report) {
  const bool reads_all = !options.metadata_only && options.sample >= 1;
  std::optional<zarr::store_folder> top;
  const auto failure = read_failure_of([&] {
    zarr::store_folder root =
        zarr::open_store(name.file, options.remote, io::allowed_paths({name.file}, options.external), options.memory / 4,
                         reads_all ? zarr::access_pattern::full : zarr::access_pattern::partial);
    root.max_string_bytes = options.memory / 4;
    top = zarr::node_at(root, name.object);
  });
  if (failure) {
    const bool is_folder =
        kind == io::store_kind::directory || kind == io::store_kind::parquet || kind == io::store_kind::object_store;
    if (is_folder && report_unfinished(name.file, options.remote, findings)) return {};
    findings.add({failure->severity, "metadata", "/", "", failure->reason});
    return {};
  }
  check_store(*top, io::is_references(kind), options, findings, report);
  std::string note;
  read_failure_of([&] { note = zarr::noted_digest(*top); });  // check_store() reports metadata that cannot be read
  return note;
}

// Compares the values with the digest that was noted when they were written: they are read once more.
void check_digest(const integrity_options& options, const std::string& note, bool is_store, finding_list& findings,
                  integrity_report& report) {
  const auto add = [&](finding_severity severity, const std::string& reason) {
    findings.add({severity, "digest", "/", "", reason});
  };
  if (note.empty()) return;
  const std::string noted = digesting::parse_note(note);
  if (noted.empty())
    return add(finding_severity::unchecked, "the root notes a digest in a form that this version does not know: \"" +
                                                text::escape_invalid_utf8(note.substr(0, 200)) + "\"");
  if (options.metadata_only || options.sample < 1 || options.partition) {
    if (reports_metadata(options))
      add(finding_severity::notice, "the noted digest of all values was not compared, because not all values were read");
    return;
  }
  const bool has_damage =
      std::any_of(report.arrays.begin(), report.arrays.end(), [](const checked_array& a) { return a.damaged > 0; });
  if (has_damage) return;  // which is reported, and values that cannot be read have no digest
  const auto failure = read_failure_of([&] {
    const source_name name = split_source(options.name);
    const bool is_prefix = io::is_object_store(name.file) && is_store && !name.file.ends_with('/');
    const std::string file = name.file + (is_prefix ? "/" : "");  // else digest() takes it for a file
    const digest_report values = digest({.source = name.object.empty() ? file : file + ":" + name.object,
                                         .remote = options.remote,
                                         .external = options.external,
                                         .lock = options.lock,
                                         .threads = options.threads,
                                         .memory = options.memory,
                                         .progress = [&](const std::string& path, std::uint64_t done, std::uint64_t bytes) {
                                           if (options.progress) options.progress({path, done, bytes});
                                         }});
    report.digest = values.digest;
    for (const array_digest& a : values.arrays) {
      if (!a.digest.empty()) continue;
      return add(finding_severity::unchecked,
                 "the noted digest cannot be compared: array \"" + a.path + "\" has none: " + a.reason);
    }
    if (values.digest != noted)
      add(finding_severity::problem, "the digest of all values is " + values.digest + ", and " + noted +
                                         " was noted when they were written: they were changed since then");
  });
  if (failure) add(failure->severity, "the noted digest cannot be compared: " + failure->reason);
}

void check_tree(const integrity_options& options, finding_list& findings, integrity_report& report) {
  remote::init_s3(options.external, options.name, options.remote, options.warning);
  const source_name name = split_source(options.name);
  const io::store_kind kind = kind_of(name.file, options.remote);
  const bool is_store = kind != io::store_kind::none;
  const std::string note =
      is_store ? check_zarr(options, name, kind, findings, report) : check_file(options, name, findings, report);
  check_digest(options, note, is_store, findings, report);
  if (!io::is_remote(name.file) && reports_metadata(options)) report_files_beside(name.file, findings);
}

}  // namespace

}  // namespace checking

void check_options(const integrity_options& options) {
  if (options.name.empty()) throw error(errc::invalid_option, "there is no name of a store or a file to check");
  if (!(options.sample > 0 && options.sample <= 1))
    throw error(errc::invalid_option, "`sample` is a share of the chunks, more than 0% and at most 100%");
  if (options.metadata_only && options.sample < 1)
    throw error(errc::invalid_option, "`metadata_only` reads no chunks, and `sample` selects chunks; use one of them");
  if (options.partition && options.partition->index >= options.partition->count)
    throw error(errc::invalid_option, "`partition` counts from 0: the last of 4 is 3");
  if (options.partition && options.metadata_only)
    throw error(errc::invalid_option, "`metadata_only` reads no chunks, and `partition` divides chunks; use one of them");
  if (options.memory < min_memory)
    throw error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                          ", too little to check; use at least " + text::format_bytes(min_memory));
}

integrity_report check(const integrity_options& options) {
  check_options(options);
  const auto begun = std::chrono::steady_clock::now();
  const hdf5::silence quiet;
  integrity_report report;
  report.name = options.name;
  report.partition = options.partition;
  checking::finding_list findings(report);
  zarr::as_public_errors(options.name, options.name, errc::damaged_store,
                         [&] { checking::check_tree(options, findings, report); });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

}  // namespace zarrbits
