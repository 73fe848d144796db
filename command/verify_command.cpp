// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits verify`: prints what zarrbits/verify.hpp finds.
//
#include "command/child_process.hpp"
#include "command/combined_source.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"
#include "command/source_list.hpp"
#include "io/remote_url.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/verify.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

namespace zarrbits::command {
namespace {

const char verify_footer[] =
    "Compares the groups, the shape, data type and fill value of each dataset, and every element. Decoders of its own\n"
    "read the store's zarr.json and chunks, and the chunks of the source whose filters they know; H5Dread reads the others, and "
    "one\n"
    "chunk of each dataset in addition. Also compares all attributes, the names of dimensions, links, named types,\n"
    "and the store's notes under zarrbits.\n\n"
    "Codecs read: bytes, packbits, numcodecs.packbits, vlen-utf8, vlen-bytes, transpose, sharding_indexed, gzip, zstd,\n"
    "blosc, crc32c, numcodecs.zlib, numcodecs.bz2, numcodecs.lz4, numcodecs.shuffle, numcodecs.fletcher32.\n"
    "verify does not trust the store's notes about itself: if it was made with --include, --exclude or from in.h5:/a/b, pass the "
    "same here.\n"
    "Sources with filters of plugins need HDF5_PLUGIN_PATH.\n\n"
    "A file that export made of a store is compared in the same way, in either order of the two.\n\n"
    "Two HDF5 files are compared with each other: objects, links, types, shapes, fill values, every element, attributes,\n"
    "order of creation, comments and user block; layout, chunks and filters may differ. H5Dread and H5Aread read both.\n\n"
    "Examples:\n"
    "  zarrbits export in.zarr out.nc && zarrbits verify in.zarr out.nc\n"
    "  zarrbits convert in.h5 out.zarr && zarrbits verify in.h5 out.zarr\n"
    "  zarrbits verify --json in.h5 out.zarr | python3 -m json.tool\n"
    "  zarrbits verify in.h5 out.zip\n"
    "  h5repack -f GZIP=4 in.h5 out.h5 && zarrbits verify in.h5 out.h5\n"
    "  zarrbits verify --concat time today.nc all.zarr --part\n\n"
    "Exit status: 0 all equal, 1 something differs, is missing on one side or cannot be read, 2 wrong usage, 3 nothing differs, "
    "but\n"
    "something could not be compared, or notes are only in the store.";

void print_findings(const verify_result& r) {
  const std::string place = r.is_hdf5_pair ? "only in the second file" : "only in the store";
  for (const finding& f : r.findings)
    std::cout << to_string(f.outcome) << ": " << printable(f.path) << " " << printable(with_flags(f.reason)) << '\n';
  for (const std::string& path : r.only_in_store) std::cout << "differs: " << printable(path) << " is " << place << '\n';
  for (const extra& e : r.extras) {
    std::cout << (e.kind == "note" ? "note: " : "differs: ") << printable(e.store_path) << " has, " << place << ", the " << e.kind
              << " " << quote(e.name) << '\n';
  }
}

// `source`: how sentences call it.
void print_counts(const verify_result& r, const std::string& source, const std::string& store) {
  // kinds of which there are some, and verdicts that occur
  const auto line = [](const char* label, const std::array<std::uint64_t, verdict_count>& counts) {
    std::string text;
    for (const verdict v : {verdict::equal, verdict::differs, verdict::missing, verdict::unreadable, verdict::unchecked}) {
      const std::uint64_t n = counts[static_cast<std::size_t>(v)];
      if (n > 0) text += (text.empty() ? " " : ", ") + std::to_string(n) + ' ' + to_string(v);
    }
    if (!text.empty()) std::cout << label << text << '\n';
  };
  line("datasets:", r.datasets);
  line("groups:", r.groups);
  line("attributes:", r.attributes);
  line("dimension names:", r.dimension_names);
  line("links:", r.links);
  line("named types:", r.named_types);
  line("notes:", r.notes);
  if (r.elements + r.elements_unchecked > 0)
    std::cout << "elements: " << r.elements << " equal"
              << (r.elements_unchecked > 0 ? ", " + std::to_string(r.elements_unchecked) + " unchecked" : std::string()) << '\n';
  const auto wrong =
      r.only_in_store.size() +
      static_cast<std::size_t>(
          std::count_if(r.findings.begin(), r.findings.end(), [](const finding& f) { return f.outcome > verdict::unchecked; }) +
          std::count_if(r.extras.begin(), r.extras.end(), [](const extra& e) { return e.kind != "note"; }));
  std::cout << (r.failed() ? "FAILED: " + text::pluralize(wrong, "difference") + " between " + quote(store) + " and " + source
                : r.incomplete() ? "INCOMPLETE: nothing differs, but not all of " + quote(store) + " could be compared"
                                 : "OK: " + quote(store) + " equals " + source)
            << '\n';
}

nlohmann::ordered_json counts_json(const std::array<std::uint64_t, verdict_count>& counts) {
  nlohmann::ordered_json j;
  for (std::size_t i = 0; i < verdict_count; ++i) j[to_string(static_cast<verdict>(i))] = counts[i];
  return j;
}

std::string report_json(const verify_result& r, const std::string& source, const std::string& store, int status) {
  nlohmann::ordered_json j = {{"version", 1}, {"source", source}, {"store", store}, {"exit_status", status}};
  j["datasets"] = counts_json(r.datasets);
  j["groups"] = counts_json(r.groups);
  j["elements"] = {{"equal", r.elements}, {"unchecked", r.elements_unchecked}};
  j["attributes"] = counts_json(r.attributes);
  j["dimension_names"] = counts_json(r.dimension_names);
  j["links"] = counts_json(r.links);
  j["named_types"] = counts_json(r.named_types);
  j["notes"] = counts_json(r.notes);
  j["only_in_store"] = r.only_in_store;
  j["extras"] = nlohmann::ordered_json::array();
  for (const extra& e : r.extras) j["extras"].push_back({{"store_path", e.store_path}, {"kind", e.kind}, {"name", e.name}});
  j["findings"] = nlohmann::ordered_json::array();
  for (const finding& f : r.findings) {
    nlohmann::ordered_json entry = {
        {"path", f.path}, {"kind", f.kind}, {"outcome", to_string(f.outcome)}, {"reason", with_flags(f.reason)}};
    if (!f.store_path.empty()) entry["store_path"] = f.store_path;
    if (!f.attribute.empty()) entry["attribute"] = f.attribute;
    if (f.has_index) entry["index"] = f.index;
    if (f.has_index || !f.source_value.empty()) {
      if (!f.field.empty()) entry["field"] = f.field;
      entry["source_value"] = f.source_value;
      entry["store_value"] = f.store_value;
    }
    j["findings"].push_back(std::move(entry));
  }
  return text::json_text(j, 1) + '\n';
}

}  // namespace

int verify_main(int argc, char** argv) {
  CLI::App app("Compares a Zarr v3 store with the HDF5 file that it was made from, or two HDF5 files.", "zarrbits verify");
  app.footer(verify_footer);
  verify_options options;
  bool as_json = false, quiet = false;
  std::string report;
  app.add_option("SOURCE", options.source, "The HDF5 file; in.h5:/a/b is one dataset or group of it, which the store was made of")
      ->required()
      ->type_name("in.h5[:/PATH]");
  app.add_option("STORE", options.store,
                 "The Zarr v3 store: a directory, a file OUT.zip, or s3://BUCKET/PREFIX; or a second HDF5 file")
      ->required()
      ->type_name("out.zarr");
  concat_arguments joined;
  add_concat_options(app, joined, false);
  app.add_flag("--part", options.part,
               "With --concat: these are some of the files in the store, such as the one that was appended last; compares their "
               "values alone, where the store says that they are")
      ->group("Several files");
  app.add_option("--include", options.include, "As given to convert: only this has to be in the store; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--with-coordinates", options.with_coordinates,
               "As given to convert: the coordinate variables of what --include matches have to be in the store, too");
  app.add_option("--exclude", options.exclude, "As given to convert: this need not be in the store; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--json", as_json, "Print one JSON object instead of text");
  app.add_option("--report", report, "Write that JSON object to this file; FILE.html: tables for people, as one page")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", quiet, "No progress, no counts; only differences");
  add_log_format_option(app);
  add_remote_options(app, options.remote, "Servers");
  add_external_option(app, options.external);
  add_no_lock_option(app, options.lock);
  std::string base;
  app.add_option("--base", base, "As given to convert: what references call local files, which are read")
      ->type_name("[FOLDER=]URL");
  std::string memory;
  app.add_option("--memory", memory,
                 "Limit the memory for chunks, strings and the references of a store, such as 512M (the default); a chunk that "
                 "needs more is compared alone")
      ->type_name("BYTES");
  std::string threads;
  app.add_option("--threads", threads,
                 "Threads that decode and compare chunks (default: the processors that the process may use)")
      ->type_name("N");
  std::string links;
  app.add_option("--links", links,
                 "As given to convert: with copy, the store must have what links lead to; with keep, notes are enough")
      ->type_name("keep|copy");
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  check_remote_options(options.remote);
  options.concat = take_sources(joined, options.source, options.store, options.remote, false);
  options.links = parse_links(links);
  options.base = parse_base(base);
  if (!memory.empty()) options.memory = parse_bytes("--memory", memory);
  options.threads = parse_threads(threads);
  if (options.links == link_policy::refuse) throw usage_error("--links is \"refuse\", which leaves no store; use keep or copy");
  const bool are_files = zarr::is_hdf5_name(options.store) && !zarr::is_read_as_store(options.source, true);
  const std::optional<combine_options> combination = find_combination(joined, options.source, options.concat, are_files);
  if (options.part) require_single_dimension(combination, "--part");
  options.is_combined = combination.has_value();
  check_options(options);
  combined_source combined(combination);
  const std::string file = split_source(options.source).file;
  if (!io::is_remote(file) && !std::filesystem::exists(file))
    throw error(errc::not_found, "verify: cannot open " + quote(file) + ": No such file or directory", {file});
  if (!report.empty()) {
    require_distinct_path(report, options.source, options.store);
    try_report(report);
  }
  options.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
  tune_heap(options.memory);
  return run_in_subprocess(
      file,
      [&](const auto& set_current) {
    const std::string source = options.source;
    const std::size_t count = options.concat ? 1 + options.concat->sources.size() : 1;
    combined.replace(options.source, options.concat, options.base, options.external, options.remote, options.lock, true,
                     set_current);
    verify_result r;
    {
      progress line(quiet);
      options.progress = [&](const verify_progress& p) {
        set_current(std::string(p.path));
        line.update({p.bytes_done, p.bytes, true, p.objects_done, p.objects, std::string(p.path)});
      };
      r = verify(options);
    }
    set_current("");
    if (combined.is_used()) options.source = source;
    if (r.is_exchanged) std::swap(options.source, options.store);
    const int status = r.failed() ? exit_failure : r.incomplete() ? exit_loss : exit_success;
    const std::string document = report_json(r, options.source, options.store, status);
    if (!report.empty()) write_report(report, document);
    if (as_json) {
      std::cout << printable_json(document);
    } else {
      print_findings(r);
      const std::string name = combined.is_used() ? "its " + text::pluralize(count, "source")
                               : r.is_hdf5_pair   ? quote(options.source)
                                                  : "its source";
      if (!quiet) print_counts(r, name, options.store);
    }
    return status;
      },
      [&](bool) { combined.remove(); });
}

}  // namespace zarrbits::command
