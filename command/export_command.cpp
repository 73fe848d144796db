// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits export`: a store becomes an HDF5 or netCDF-4 file.
//
#include "command/child_process.hpp"
#include "command/combined_source.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/digest_comparison.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"
#include "command/source_list.hpp"
#include "command/summary.hpp"
#include "command/terminal.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/export.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>

namespace zarrbits::command {
namespace {

const char export_footer[] =
    "Chunks that a filter of every HDF5 has in the same form are copied: bytes, gzip, blosc of shuffle and deflate,\n"
    "numcodecs.zlib, numcodecs.shuffle, numcodecs.fletcher32; with --filters any also packbits, zstd, blosc, numcodecs.bz2,\n"
    "numcodecs.lz4; those in shards, too. Others are encoded again. What convert noted in the store becomes what it was: types,\n"
    "links, references, limits. A target OUT.nc has netCDF's dimensions, and only what netCDF can hold; the store of a netCDF\n"
    "file gets its dimensions in OUT.h5, too.\n\n"
    "Examples:\n"
    "  zarrbits export in.zarr out.h5\n"
    "  zarrbits export in.zarr out.nc && ncdump -h out.nc\n"
    "  zarrbits export --include /run1 in.zarr run1.h5\n"
    "  zarrbits export in.zarr out.h5 && zarrbits verify out.h5 in.zarr\n\n"
    "Exit status: 0 everything is in the file, 1 failure, 2 wrong usage, 3 something is not in the file (the report says what).";

struct export_arguments {
  export_options options;
  concat_arguments joined;
  std::string filter, filters, format, page_size, threads, memory;
  std::string report;  // file for it; "": none
  bool netcdf = false, no_netcdf = false, has_digest = false, as_json = false, quiet = false, allow_lossy = false;
};

void parse_filter(const std::string& text, export_options& options) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "none") options.filter = export_filter::none;
  else if (name == "deflate") options.filter = export_filter::deflate;
  else if (name == "zstd") options.filter = export_filter::zstd;
  else throw usage_error("--filter is none, deflate or zstd, not " + quote(name));
  options.level = name == "zstd" ? 3 : 4;
  if (colon == std::string::npos) return;
  const std::uint64_t level = parse_count("--filter", text.substr(colon + 1));
  if (name == "none" || level > 22)
    throw usage_error("--filter takes deflate:1 to deflate:9 and zstd:1 to zstd:22, not " + quote(text));
  options.level = static_cast<int>(level);
}

void add_export_options(CLI::App& app, export_arguments& a) {
  export_options& o = a.options;
  app.add_option("STORE", o.store,
                 "The Zarr store: a directory, a file IN.zip, references, or s3://BUCKET/PREFIX; IN.zarr:/a/b is a node of it")
      ->required()
      ->type_name("in.zarr");
  app.add_option("FILE", o.target, "The file to write; OUT.nc gets netCDF's dimensions")->required()->type_name("out.h5|out.nc");
  add_concat_options(app, a.joined, false, true);
  app.add_flag("--overwrite", o.overwrite, "Replace FILE if it is an HDF5 file");
  app.add_option("--include", o.include,
                 "Export only what this path pattern matches, with the groups above and everything below; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--exclude", o.exclude, "Leave out what this pattern matches, and everything below it; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--filter", a.filter,
                 "Compress chunks that cannot be copied: none, deflate:LEVEL or zstd:LEVEL, after a shuffle (default: deflate:4)")
      ->type_name("none|deflate[:LEVEL]|zstd[:LEVEL]");
  app.add_option(
         "--filters", a.filters,
         "Copy chunks only into filters that every HDF5 has (standard, the default): deflate, shuffle, fletcher32; or into any, "
         "whose readers may need plugins")
      ->type_name("standard|any");
  app.add_flag("--netcdf", a.netcdf, "Dimensions as netCDF has them (default: if FILE is OUT.nc, or the store says so)");
  app.add_flag("--no-netcdf", a.no_netcdf, "Names of dimensions as HDF5's labels alone");
  app.add_option(
         "--libver", a.format,
         "The format of the file: compatible (the default), or latest, in which datasets that grow find their chunks faster")
      ->type_name("compatible|latest");
  app.add_option("--page-size", a.page_size,
                 "Write pages of this size, such as 4M, with metadata together: for files that are read from servers")
      ->type_name("BYTES");
  add_external_option(app, o.external);
  app.add_option("--threads", a.threads, "Threads that make chunks (default: the processors)")->type_name("N");
  app.add_option("--memory", a.memory, "Limit the memory for chunks and strings, such as 512M (the default)")->type_name("BYTES");
  app.add_flag("--fsync", o.fsync, "Flush the file to the disk before it gets its name");
  app.add_flag("--keep-going", o.keep_going, "Leave out chunks that are damaged, and report them, instead of stopping");
  app.add_flag("--digest", a.has_digest,
               "Read store and file again, compare the digests of all values, and note them in the file and the report");
  app.add_flag("--allow-lossy", a.allow_lossy, "Exit status 0 even if something is not in the file");
  app.add_option("--report", a.report, "Write the report on each object to this file, as JSON")->type_name("FILE.json");
  app.add_flag("--json", a.as_json, "Print the report on standard output: what became of every object");
  app.add_flag("-q,--quiet", a.quiet, "No progress, no table");
  add_log_format_option(app);
  add_remote_options(app, o.remote, "Servers");
}

// After them, the last name is the target.
void take_stores(export_arguments& a) {
  export_options& o = a.options;
  check_remote_options(o.remote);
  o.concat = take_sources(a.joined, o.store, o.target, o.remote, false);
  if (a.joined.combines()) (void)combination_of(a.joined, o.store, *o.concat);  // refuses stores
}

void read_arguments(export_arguments& a) {
  export_options& o = a.options;
  take_stores(a);
  if (!a.filter.empty()) parse_filter(a.filter, o);
  if (!a.filters.empty() && a.filters != "standard" && a.filters != "any")
    throw usage_error("--filters is standard or any, not " + quote(a.filters));
  if (a.filters == "standard" && o.filter == export_filter::zstd)
    throw usage_error("not every HDF5 has the filter of --filter zstd; leave out --filters standard");
  o.standard_filters = a.filters != "any";
  o.format = parse_libver(a.format);
  if (a.netcdf && a.no_netcdf) throw usage_error("use --netcdf or --no-netcdf, not both");
  if (a.netcdf || a.no_netcdf) o.netcdf = a.netcdf;
  if (!a.page_size.empty()) o.page_size = parse_bytes("--page-size", a.page_size);
  if (!a.memory.empty()) o.memory = parse_bytes("--memory", a.memory);
  o.threads = parse_threads(a.threads);
  check_options(o);
  if (o.concat && a.has_digest) throw usage_error("--digest compares one store with the file; remove it, or --concat");
  tune_heap(o.memory);
  if (!a.quiet) o.note = [](const std::string& sentence) { print_error("note: " + sentence); };
  o.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
}

// `file`: what the target is called until it is complete; this process has locked it.
digest_comparison export_comparison(const export_options& options, const std::string& file, const export_report& r) {
  digest_comparison c;
  c.source = options_to_digest(options.store, options.remote, options);
  c.source.include = options.include;
  c.source.exclude = options.exclude;
  c.source.external = options.external;
  c.target = options_to_digest(file, options.remote, options);
  c.target.lock = false;
  c.has_note = true;
  c.remedy = "no file was written: export it again, and check this machine's memory and disk if that fails, too";
  c.may_change_types = r.netcdf;
  for (const exported_object& o : r.objects) {
    if (o.kind != object_kind::dataset || (o.outcome != outcome::skipped && o.lost_chunks.empty())) continue;
    c.lost.push_back(o.store_path.empty() ? o.path : o.store_path);
    if (!o.lost_chunks.empty()) c.source.exclude.push_back(c.lost.back());
  }
  return c;
}

void print_export_losses(const export_report& r) {
  for (const exported_object& o : r.objects) {
    const std::string name =
        std::string(to_string(o.kind)) + " " + quote(o.path) + (o.attribute.empty() ? "" : " attribute " + quote(o.attribute));
    if (o.outcome == outcome::skipped) print_error("skipped " + name + ": " + o.reason);
    else if (!o.lost_chunks.empty()) print_error("lossy " + name + ": " + o.reason);
  }
  print_left_out(r.sources);
}

void print_table(const export_report& r) {
  struct sums {
    std::uint64_t objects = 0, store = 0, file = 0;
  };
  std::map<outcome, sums> rows;
  for (const exported_object& o : r.objects) {
    sums& s = rows[o.outcome];
    ++s.objects;
    s.store += o.store_bytes;
    s.file += o.file_bytes;
  }
  text_table table(
      {{"outcome"}, {"objects", text_table::right}, {"in store", text_table::right}, {"in file", text_table::right}});
  for (const auto& [kind, s] : rows) {
    table.add({to_string(kind), std::to_string(s.objects), text::format_bytes(s.store), text::format_bytes(s.file)},
              kind == outcome::skipped ? colour::red : colour::plain);
  }
  const std::string last = printable(r.target) + ": " + text::format_bytes(r.file_bytes) +
                           (r.netcdf ? ", with netCDF's dimensions, " : ", ") + duration_text(r.seconds) + '\n';
  std::set<std::string> plugins;
  for (const exported_object& o : r.objects) {
    std::istringstream names(o.filters);
    for (std::string name; names >> name;) {
      if (name.ends_with(',')) name.pop_back();
      if (name != "deflate" && name != "shuffle" && name != "fletcher32") plugins.insert(name);
    }
  }
  if (!plugins.empty()) {
    std::string names;
    for (const std::string& name : plugins) names += (names.empty() ? "" : ", ") + name;
    print_error("readers of " + quote(r.target) + " need HDF5's plugins for " + names + "; --filters standard needs none");
  }
  if (logs_json()) {
    write_log_line("info", {{"message", "done"}, {"bytes", r.file_bytes}, {"seconds", r.seconds}});
    return;
  }
  std::fputs((table.text(describe_terminal(STDERR_FILENO)) + joined_text(r.sources, "store") + last).c_str(), stderr);
}

}  // namespace

const CLI::App& export_parser() {
  static export_arguments a;
  static CLI::App app;
  static const bool is_complete = (add_export_options(app, a), true);
  return static_cast<void>(is_complete), app;
}

bool is_export(int argc, char** argv) {
  CLI::App app;
  export_arguments a;
  add_export_options(app, a);
  if (!can_parse(app, argc, argv)) return false;
  const std::vector<std::string>& more = a.joined.extra_names;
  if (!zarr::is_hdf5_name(more.empty() ? a.options.target : more.back())) return false;
  take_stores(a);
  return zarr::is_store_source(a.options.store, a.options.remote) &&
         zarr::is_read_as_store(a.options.store, a.options.concat.has_value());
}

int export_main(int argc, char** argv) {
  CLI::App app("Writes what a Zarr store has into an HDF5 or netCDF-4 file.", "zarrbits export");
  app.footer(export_footer);
  export_arguments a;
  add_export_options(app, a);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  read_arguments(a);
  export_options& options = a.options;
  require_json_report(a.report, options.store, options.target);
  return run_in_subprocess(
      options.store,
      [&](const std::function<void(const std::string&)>& set_current) {
    export_report r;
    text::json digests;
    {
      std::optional<progress> line(a.quiet);
      options.progress = [&](const std::string& path, std::uint64_t chunks_done, std::uint64_t chunks) {
        set_current(path);
        line->update({chunks_done, chunks, false, 0, 0, path});
      };
      options.before_done = [&](const std::string& file, const export_report& report) {
        line.reset();
        if (a.has_digest) digests = compare_digests(export_comparison(options, file, report), a.quiet, set_current);
      };
      r = export_store(options);
    }
    const int status = r.has_losses() && !a.allow_lossy ? exit_loss : exit_success;
    print_export_losses(r);
    std::string report = with_exit_status(r.report_json(), status);
    if (a.has_digest) report = report_with_digests(report, std::move(digests));
    set_current("");
    if (!a.report.empty()) write_report(a.report, report);
    if (a.as_json) std::cout << printable_json(report) << std::flush;
    if (!a.quiet) print_table(r);
    return status;
      },
      [&](bool) { zarr::atomic_file::remove_unfinished(options.target, zarr::unfinished_name(options.target)); });
}

}  // namespace zarrbits::command
